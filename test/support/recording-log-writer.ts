import { LogError, type LogRecord, type LogWriter } from '#contracts/ports/log.ts';

/** The log as the relay knows it, kept in an array. Several writers may share one. */
export class RecordedLog {
  readonly records: LogRecord[] = [];
  /** Size of each send, in order. */
  readonly sends: number[] = [];

  /** Records by key, without repeats that follow later records. */
  byKey(): ReadonlyMap<string, readonly LogRecord[]> {
    return Map.groupBy(this.records, (record) => record.key);
  }
}

/** Refuses a second send while one is under way, as the port requires of callers. */
export class RecordingLogWriter implements LogWriter {
  readonly log: RecordedLog;
  /** Milliseconds a send takes. */
  delayMs = 0;
  /** Called before anything is written; what it throws, the send throws. */
  beforeSend: (records: readonly LogRecord[]) => void | Promise<void> = () => {};
  #sending = false;

  constructor(log: RecordedLog = new RecordedLog()) {
    this.log = log;
  }

  async send(records: readonly LogRecord[]): Promise<void> {
    if (this.#sending) throw new LogError('fatal', 'a send is under way: one at a time');
    this.#sending = true;
    try {
      await this.beforeSend(records);
      if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
      this.log.records.push(...records);
      this.log.sends.push(records.length);
    } finally {
      this.#sending = false;
    }
  }

  async lastRecords(): ReturnType<LogWriter['lastRecords']> {
    return this.log.records.toSorted((a, b) => (a.position > b.position ? -1 : 1)).slice(0, 1);
  }

  async close(): Promise<void> {}
}

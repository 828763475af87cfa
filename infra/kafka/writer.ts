import type { Message, Producer, TopicMessages } from 'kafkajs';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { LogError, type LogRecord, type LogWriter } from '#contracts/ports/log.ts';
import { type Connection, connect, disconnect, type KafkaOptions } from './client.ts';
import { toMessage } from './cloudevents.ts';
import { lastRecords } from './last-records.ts';

const defaultPatienceMs = 30_000;
const sendWaits: BackOff = { firstMs: 100, maxMs: 2_000 };

const retriable = (error: unknown): boolean =>
  error instanceof Error &&
  (('retriable' in error && error.retriable === true) || error.name === 'KafkaJSNumberOfRetriesExceeded');

const partitionOf = ({ message }: { readonly message: Message }): number => {
  if (message.partition === undefined) throw new LogError('fatal', 'a record without a partition');
  return message.partition;
};

/**
 * kafkajs makes one record batch per partition and send; a broker refuses one over 1 MiB. Bytes, with an estimate for
 * headers.
 */
const largestSend = 900_000;
const headerBytes = 600;

/** Pieces that fit, in order. A single record always fits: the store refuses appends over 512 KiB. */
const pieces = (records: readonly LogRecord[]): LogRecord[][] => {
  const found: LogRecord[][] = [];
  let piece: LogRecord[] = [];
  let size = 0;
  for (const record of records) {
    const bytes = record.value.byteLength + record.metadata.byteLength + headerBytes;
    if (piece.length > 0 && size + bytes > largestSend) {
      found.push(piece);
      piece = [];
      size = 0;
    }
    piece.push(record);
    size += bytes;
  }
  if (piece.length > 0) found.push(piece);
  return found;
};

const batched = (records: readonly LogRecord[], connection: Connection): TopicMessages[] => {
  const source = connection.options.source ?? '/eventstore';
  const byTopic = Map.groupBy(records, (record) => record.topic);
  return [...byTopic].map(([topic, list]) => ({
    topic: connection.topicName(topic),
    messages: list.map((record) => toMessage(record, source)),
  }));
};

/**
 * The producer is idempotent: the broker drops a batch that it has, by sequence numbers that kafkajs reuses after a
 * failed send. So the numbers are right only while (1) one send is under way, because a second one would take the
 * numbers of the first and be dropped in its place, and (2) the send after a failed one is the same batch, or comes
 * from a new producer.
 */
class KafkaLogWriter implements LogWriter {
  readonly #connection: Connection;
  #producer: Producer | null = null;
  #sending = false;
  #closed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async send(records: readonly LogRecord[]): Promise<void> {
    if (this.#sending) throw new LogError('fatal', 'another send is under way: await it first');
    if (this.#closed) throw new LogError('unavailable', 'the writer is closed');
    this.#sending = true;
    try {
      for (const piece of pieces(records)) await this.#untilAcknowledged(batched(piece, this.#connection));
    } finally {
      this.#sending = false;
    }
  }

  lastRecords(): ReturnType<LogWriter['lastRecords']> {
    return lastRecords(this.#connection);
  }

  async #untilAcknowledged(topicMessages: TopicMessages[]): Promise<void> {
    const end = performance.now() + (this.#connection.options.patienceMs ?? defaultPatienceMs);
    for (let failures = 0; ; failures += 1) {
      try {
        const producer = await this.#connected();
        await producer.sendBatch({ acks: -1, topicMessages });
        return;
      } catch (cause) {
        const pause = backOff(failures, sendWaits);
        const over = this.#closed || performance.now() + pause > end;
        if (over || !retriable(cause)) await this.#drop();
        if (over) throw new LogError('unavailable', 'the log did not acknowledge the batch', { cause });
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async #connected(): Promise<Producer> {
    if (this.#producer !== null) return this.#producer;
    const producer = this.#connection.kafka.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      retry: { retries: 5, initialRetryTime: 100, maxRetryTime: 2000 },
      // Every record names its partition: all writers, whatever their client, must agree on it.
      createPartitioner: () => partitionOf,
    });
    try {
      await producer.connect();
    } catch (error) {
      await disconnect(producer);
      throw error;
    }
    this.#producer = producer;
    return producer;
  }

  async #drop(): Promise<void> {
    const old = this.#producer;
    this.#producer = null;
    if (old !== null) await disconnect(old);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
    await this.#connection.close();
  }
}

/** @throws LogError `partition_mismatch | unavailable` */
export const openKafkaLogWriter = async (options: KafkaOptions): Promise<LogWriter> =>
  new KafkaLogWriter(await connect(options));

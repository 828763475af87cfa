/**
 * Moves events from the store to the log: one active instance, in order, none left out. The checkpoint follows the
 * log's acknowledgement, so a crash in between repeats records and never drops one. An instance that lost its lease
 * without noticing (a zombie) may repeat a batch once more; readers of the log tolerate both.
 */
import { backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import { type EventStore, EventStoreError, type RecordedEvent } from '#contracts/ports/event-store.ts';
import { LogError, type LogRecord, type LogWriter } from '#contracts/ports/log.ts';
import { restAfter } from '#runtime/consuming/lanes.ts';
import { type LastEvent, requireHeadAt, requireSameHistory } from '#runtime/consuming/same-history.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { stopsLane } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { RelayQueue } from '#services/relay/queue.ts';
import { toRecord } from '#services/relay/record.ts';

export interface RelayOptions {
  readonly store: Pick<EventStore, 'subscribe' | 'readAll' | 'head'>;
  readonly writer: Pick<LogWriter, 'send' | 'lastRecords'>;
  readonly checkpoint: RelayCheckpoint;
  /** Name of this instance; no other instance has or had it. */
  readonly holder: string;
  readonly partitions: number;
  /** Ends the relay after the present batch. */
  readonly signal: AbortSignal;
  readonly logger?: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Milliseconds a lease lasts without renewal. Default 15,000. */
  readonly leaseMs?: number;
  /** Most records of one send. Default 500. */
  readonly maxBatch?: number;
  /** Most milliseconds that a record waits for others. Default 10. */
  readonly lingerMs?: number;
  /** Milliseconds between two comparisons with the store's head. Default 60,000. */
  readonly headLookMs?: number;
  /** How long the relay rests after its first stop, its second, and each later one. Default: a minute, 5 and 15. */
  readonly restsMs?: readonly number[];
}

interface RelayStatus {
  readonly role: 'standby' | 'active' | 'stopped';
  /** Why it stopped; null while it runs. It tries again after a rest. */
  readonly reason: string | null;
  /** Commit position up to which the log has acknowledged everything; null before this instance was active. */
  readonly position: bigint | null;
  /** Records read and not sent yet. */
  readonly waiting: number;
  /** The dependency that fails and is retried at once: the store, the log or the checkpoint. Null while none fails. */
  readonly trouble: string | null;
}

export interface Relay {
  /**
   * Resolves after the signal. An error that an immediate retry cannot fix stops the relay for a rest, and never ends
   * it.
   */
  readonly done: Promise<void>;
  status(): RelayStatus;
}

/** Bytes of records in memory beside the present batch. */
const bytesWaiting = 32 * 1_024 * 1_024;
/** Most batches in memory: the present one and a few behind it. */
const batchesWaiting = 4;
/** How often a position without records is saved, milliseconds. */
const markerMs = 1_000;
/** Pause before the same batch is sent again, or the store is read again: 100 ms doubling to 5 s. */
const pauseMs = (failures: number): number => backOff(failures, { firstMs: 100, maxMs: 5_000 });

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const startRelay = (options: RelayOptions): Relay => {
  const loop = new RelayLoop(options);
  return { done: loop.done, status: () => loop.status() };
};

class RelayLoop {
  readonly done: Promise<void>;
  readonly #options: RelayOptions;
  readonly #leaseMs: number;
  #role: RelayStatus['role'] = 'standby';
  #position: bigint | null = null;
  #queue: RelayQueue | null = null;
  #reason: string | null = null;
  /** By dependency: why its last try failed. */
  readonly #troubles = new Map<'store' | 'log' | 'checkpoint', string>();

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.done = this.#run();
  }

  status(): RelayStatus {
    const trouble = this.#troubles.size === 0 ? null : [...this.#troubles.values()].join('; ');
    const waiting = this.#queue?.waiting ?? 0;
    return { role: this.#role, reason: this.#reason, position: this.#position, waiting, trouble };
  }

  /**
   * Renews the lease until it is lost: by the database's answer, or without an answer for its whole duration. Own time
   * is monotonic.
   */
  async #keepLease(epoch: bigint, takenAt: number, stop: AbortSignal, lose: () => void): Promise<void> {
    let validUntil = takenAt + this.#leaseMs;
    const timer = setInterval(() => {
      if (performance.now() > validUntil) lose();
    }, this.#leaseMs / 20);
    try {
      while (!stop.aborted) {
        await pause(this.#leaseMs / 3, stop);
        if (stop.aborted) return;
        const sentAt = performance.now();
        const ours = await this.#options.checkpoint.renew(epoch, this.#leaseMs).catch((error: unknown) => {
          this.#options.logger?.warn({ err: error }, 'the relay could not renew its lease');
          return null;
        });
        if (ours === false) return lose();
        if (ours === true) validUntil = sentAt + this.#leaseMs;
      }
    } finally {
      clearInterval(timer);
    }
  }

  /** A log that was left by a restore has records of lost events: what follows them in it would never be in order. */
  async #requireOwnLog(): Promise<void> {
    const [newest] = await this.#options.writer.lastRecords();
    this.#troubles.delete('log');
    if (newest !== undefined) await requireHeadAt(this.#options.store, 'the log', newest.position);
  }

  /** A store that is replaced under a running relay by an older one has no new events to read. */
  async #watchHead(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await pause(this.#options.headLookMs ?? 60_000, stop);
      if (this.#position !== null && !stop.aborted) await requireHeadAt(this.#options.store, 'the log', this.#position);
    }
  }

  async #read(into: RelayQueue, last: LastEvent | null, stop: AbortSignal): Promise<void> {
    const take = (event: RecordedEvent): void => {
      const record = toRecord(event, this.#options.partitions);
      if (record === null) into.pass({ position: event.position, eventId: event.id });
      else into.add(record);
    };
    if (last !== null) {
      await requireSameHistory(this.#options.store, 'the relay', last);
      this.#troubles.delete('store');
    }
    for await (const item of this.#options.store.subscribe({ after: last?.position ?? null, signal: stop })) {
      this.#troubles.delete('store');
      if (item.kind === 'event') take(item.event);
      if (into.full) await into.room();
    }
    // A subscription that ends by itself at once, each time, would otherwise have the lease taken and released in a
    // busy loop.
    if (!stop.aborted) throw new EventStoreError('unavailable', 'the store ended its subscription');
  }

  /** Sends the same records until the log has acknowledged them. False when `stop` aborts before. */
  async #acknowledged(records: readonly LogRecord[], stop: AbortSignal): Promise<boolean> {
    for (let failures = 0; !stop.aborted; failures++) {
      try {
        if (records.length > 0) await this.#options.writer.send(records);
        this.#troubles.delete('log');
        return true;
      } catch (error) {
        if (stopsLane(error)) throw error;
        this.#troubles.set('log', wordsOf(error));
        this.#options.logger?.warn({ err: error, failures }, 'the log does not take the batch; it is sent again');
        await pause(pauseMs(failures), stop);
      }
    }
    return false;
  }

  /** Sends batch after batch, one at a time; one batch is saved while the next is sent. */
  async #send(from: RelayQueue, epoch: bigint, stop: AbortSignal, lose: () => void): Promise<void> {
    let saving: Promise<void> = Promise.resolve();
    const save = async (upTo: LastEvent): Promise<void> => {
      try {
        if (!(await this.#options.checkpoint.save(upTo, epoch))) return lose();
        this.#position = upTo.position;
        this.#troubles.delete('checkpoint');
      } catch (error) {
        this.#troubles.set('checkpoint', wordsOf(error));
        // The next save repeats it; until then a crash repeats more records.
        this.#options.logger?.warn({ err: error }, 'the relay could not save its position');
      }
    };
    await this.#requireOwnLog();
    for (let batch = await from.take(); batch !== null; batch = await from.take()) {
      if (!(await this.#acknowledged(batch.records, stop))) break;
      faultPoint('relay:after-send');
      await saving;
      // Also after the lease was lost: under an old epoch the save changes nothing.
      saving = save(batch.upTo);
    }
    await saving;
  }

  /** One term as the active instance. */
  async #lead({ epoch, last }: RelayLease, takenAt: number): Promise<void> {
    const over = new AbortController();
    const stop = AbortSignal.any([this.#options.signal, over.signal]);
    const lose = (): void => {
      if (!over.signal.aborted)
        this.#options.logger?.warn({ epoch: String(epoch) }, 'the relay lost its lease and stands by');
      over.abort();
    };
    const { maxBatch = 500, lingerMs = 10 } = this.#options;
    const mine = new RelayQueue({
      ...{ maxBatch, lingerMs, markerMs },
      ...{ maxWaiting: maxBatch * batchesWaiting, maxWaitingBytes: bytesWaiting },
    });
    const end = (): void => mine.end();
    stop.addEventListener('abort', end, { once: true });
    this.#queue = mine;
    this.#position = last?.position ?? null;
    this.#role = 'active';
    this.#reason = null;
    const until = <T>(work: Promise<T>): Promise<T> => work.finally(() => over.abort());
    const works = [
      until(this.#read(mine, last, stop)),
      until(this.#send(mine, epoch, stop, lose)),
      until(this.#keepLease(epoch, takenAt, stop, lose)),
      until(this.#watchHead(stop)),
    ];
    try {
      const ends = await Promise.allSettled(works);
      for (const work of ends) if (work.status === 'rejected') throw work.reason;
    } finally {
      stop.removeEventListener('abort', end);
      this.#queue = null;
      this.#role = 'standby';
      await this.#options.checkpoint.release(epoch).catch(() => {});
    }
  }

  async #run(): Promise<void> {
    let stops = 0;
    for (let failures = 0; !this.#options.signal.aborted; ) {
      let leading = false;
      const before = this.#position;
      try {
        const takenAt = performance.now();
        const lease = await this.#options.checkpoint.acquire(this.#options.holder, this.#leaseMs);
        this.#troubles.delete('checkpoint');
        if (lease === null) {
          // Troubles of a former term do not count for a standby.
          this.#troubles.clear();
          await pause(this.#leaseMs / 3, this.#options.signal);
          continue;
        }
        leading = true;
        this.#options.logger?.info(
          { epoch: String(lease.epoch), position: String(lease.last?.position) },
          'the relay is active',
        );
        await this.#lead(lease, takenAt);
        failures = 0;
      } catch (error) {
        if (this.#position !== before) failures = 0;
        if (!leading || !stopsLane(error)) {
          const of = error instanceof LogError ? 'log' : leading ? 'store' : 'checkpoint';
          this.#troubles.set(of, wordsOf(error));
          this.#options.logger?.warn({ err: error }, 'the relay begins again');
          await pause(pauseMs(failures++), this.#options.signal);
          continue;
        }
        stops = this.#position === before ? stops + 1 : 1;
        const restMs = restAfter(stops, this.#options.restsMs);
        this.#options.logger?.error({ err: error, restMs }, 'the relay stopped: it tries again after a rest');
        this.#role = 'stopped';
        this.#reason = wordsOf(error);
        await pause(restMs, this.#options.signal);
        this.#role = 'standby';
      }
    }
  }
}

/**
 * The relay's position and lease: one row. The epoch grows with every holder, and a save under an old epoch changes
 * nothing. Time is the database's.
 */
interface RelayLease {
  readonly epoch: bigint;
  /** The last event that the log has acknowledged; null = none yet. */
  readonly last: LastEvent | null;
}

export interface RelayCheckpoint {
  /** Takes the lease for `ttlMs` where it is free. Null while another instance holds it. */
  acquire(holder: string, ttlMs: number): Promise<RelayLease | null>;
  /** False when the lease of this epoch is lost. */
  renew(epoch: bigint, ttlMs: number): Promise<boolean>;
  /** Records that the log has acknowledged everything up to this event. False when the epoch is outdated. */
  save(last: LastEvent, epoch: bigint): Promise<boolean>;
  /** Lets the next instance take over at once. */
  release(epoch: bigint): Promise<void>;
}

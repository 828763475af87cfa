/**
 * One member of a group. kafkajs joins, fetches and beats, but must not decide where to read: the handlers own the
 * positions and store them with the effect. So on every join the new lanes are paused in the same turn (before the
 * first fetch), then loaded, sought and resumed.
 *
 * kafkajs reports lost lanes only after the fact. The epoch that `assigned` bumps keeps a former owner from writing;
 * nothing in this file does. The file is long because join, beat, fetch and leave share the state of one membership.
 */

import type { Consumer, ConsumerGroupJoinEvent, EachBatchPayload } from 'kafkajs';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import {
  type Lane,
  LogError,
  type LogSubscription,
  type Overrun,
  type SubscribeOptions,
} from '#contracts/ports/log.ts';
import { type Connection, disconnect, laneOf } from './client.ts';
import { toRecord } from './cloudevents.ts';

const defaultSessionTimeoutMs = 10_000;
const sessionWaits: BackOff = { firstMs: 100, maxMs: 5_000 };
/** Milliseconds after which the end of a session counts as the first in a row. */
const longSessionMs = 30_000;
const idleFetchMs = 250;
/** A join may take as long as the slowest member's batch; a client without a sign of life for longer is stuck. */
const rebalanceTimeoutMs = 30_000;
const stuckAfterMs = 60_000;
const overrunCheckMs = 30_000;

/** The progress of this member in one of its lanes. */
interface LaneProgress {
  next: bigint;
  position: bigint | null;
}

interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** An error of this type makes kafkajs join again. */
const rejoin = (lane: Lane): Error =>
  Object.assign(new Error(`fenced on ${lane}`), { type: 'REBALANCE_IN_PROGRESS', retriable: false });

const isFenced = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'fenced';

const newest = (a: bigint | null, b: bigint): bigint => (a !== null && a > b ? a : b);

export class KafkaSubscription implements LogSubscription {
  readonly done: Promise<void>;
  readonly #connection: Connection;
  readonly #options: SubscribeOptions;
  readonly #lanes = new Map<Lane, LaneProgress>();
  readonly #running = new Set<Promise<void>>();
  /** Counts joins and ended sessions: late callbacks of an older one must not touch the lanes. */
  #generation = 0;
  /** Aborts with the generation: stops reads of the store for its lanes. */
  #lost = new AbortController();
  #lastSign = performance.now();
  /** The consumer of the current session. */
  #consumer: Consumer | null = null;
  /** Ends the current session: null begins another one, a failure stops the subscription. */
  #endSession: (failure: { readonly error: unknown } | null) => void = () => undefined;

  constructor(connection: Connection, options: SubscribeOptions) {
    this.#connection = connection;
    this.#options = options;
    this.done = this.#run();
    // A caller that awaits `done` still gets the error; one that awaits it later must not bring the process down.
    this.done.catch(() => undefined);
  }

  lanes(): readonly Lane[] {
    return [...this.#lanes.keys()];
  }

  again(lane: Lane): void {
    if (this.#consumer === null || !this.#lanes.delete(lane)) return;
    const dash = lane.lastIndexOf('-');
    const at = { topic: lane.slice(0, dash), partition: Number(lane.slice(dash + 1)) };
    this.#pause(this.#consumer, at);
    this.#takeOrEnd(this.#consumer, [at]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#options;
    let shortSessions = 0;
    while (!signal.aborted) {
      const began = performance.now();
      const failure = await this.#session();
      if (failure !== null) throw failure.error;
      shortSessions = performance.now() - began > longSessionMs ? 0 : shortSessions + 1;
      if (!signal.aborted) await pause(backOff(shortSessions, sessionWaits), signal);
    }
  }

  /** From the connection to the end of one kafkajs consumer. A consumer that crashed is not reused. */
  async #session(): Promise<{ readonly error: unknown } | null> {
    const { signal, group, topics } = this.#options;
    const sessionTimeout = this.#connection.options.sessionTimeoutMs ?? defaultSessionTimeoutMs;
    const consumer = this.#connection.kafka.consumer({
      groupId: this.#connection.topicName(group),
      sessionTimeout,
      rebalanceTimeout: rebalanceTimeoutMs,
      heartbeatInterval: Math.floor(sessionTimeout / 5),
      maxWaitTimeInMs: idleFetchMs,
      allowAutoTopicCreation: false,
      retry: { retries: 5, initialRetryTime: 100, maxRetryTime: 2000, restartOnFailure: async () => false },
    });
    const ended = new Promise<{ readonly error: unknown } | null>((resolve) => {
      this.#endSession = resolve;
    });
    this.#consumer = consumer;
    const abort = (): void => this.#endSession(null);
    signal.addEventListener('abort', abort);
    const alive = (): void => {
      this.#lastSign = performance.now();
    };
    alive();
    consumer.on('consumer.fetch', alive);
    consumer.on('consumer.heartbeat', alive);
    let over = false;
    consumer.on('consumer.crash', () => this.#endSession(null));
    consumer.on('consumer.group_join', (event) => {
      if (!over) this.#joined(consumer, event);
    });
    const stuck = setInterval(() => {
      if (this.#running.size === 0 && performance.now() - this.#lastSign > stuckAfterMs) this.#endSession(null);
    }, 1000);
    // A lane that lost unread records to retention and gets no new ones shows no jump.
    const overrun = setInterval(async () => {
      if ((await this.#overrun(this.lanes())) === true) this.#endSession(null);
    }, overrunCheckMs);
    const start = async (): Promise<void> => {
      await consumer.connect();
      if (over) return;
      await consumer.subscribe({ topics: topics.map(this.#connection.topicName), fromBeginning: true });
      if (over) return;
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: this.#connection.options.concurrency ?? 4,
        eachBatch: (payload) => this.#track(this.#apply(payload, sessionTimeout / 5)),
      });
    };
    const started = start().catch(() => this.#endSession(null));
    try {
      if (signal.aborted) abort();
      return await ended;
    } finally {
      over = true;
      this.#consumer = null;
      this.#endGeneration();
      this.#lanes.clear();
      signal.removeEventListener('abort', abort);
      clearInterval(stuck);
      clearInterval(overrun);
      const left = disconnect(consumer);
      await Promise.allSettled(this.#running);
      await left;
      // A disconnect does not stop a consumer that is still joining: it would hold lanes without reading them.
      await disconnect({ disconnect: () => started.then(() => consumer.disconnect()) });
    }
  }

  #joined(consumer: Consumer, event: ConsumerGroupJoinEvent): void {
    this.#lastSign = performance.now();
    const mine = Object.entries(event.payload.memberAssignment).flatMap(([name, partitions]) =>
      partitions.map((partition) => ({ topic: this.#connection.topicOf(name), partition })),
    );
    for (const lane of mine) this.#pause(consumer, lane);
    this.#endGeneration();
    this.#lanes.clear();
    if (mine.length === 0) return;
    this.#takeOrEnd(consumer, mine);
  }

  #endGeneration(): void {
    this.#generation += 1;
    this.#lost.abort();
    this.#lost = new AbortController();
  }

  #takeOrEnd(consumer: Consumer, lanes: readonly TopicPartition[]): void {
    this.#track(this.#take(consumer, lanes, this.#generation)).catch((error) => {
      // A fault of the broker or another owner begins a new session; any other fault ends the subscription.
      const begin = isFenced(error) || (error instanceof LogError && error.code === 'unavailable');
      this.#endSession(begin ? null : { error });
    });
  }

  /** Loads the positions of all lanes, then resumes them. */
  async #take(consumer: Consumer, lanes: readonly TopicPartition[], generation: number): Promise<void> {
    // Batches of the former generation hold the former epoch: they end, committed or fenced, before it is bumped.
    await Promise.allSettled(this.#running);
    if (generation !== this.#generation) return;
    const stored = await this.#options.handlers.assigned(lanes.map(({ topic, partition }) => laneOf(topic, partition)));
    const positions = new Map(stored.map((position) => [position.lane, position]));
    // Read after the positions: an end read before them could lie below records that another member applied meanwhile.
    const bounds = await this.#connection.bounds([...new Set(lanes.map(({ topic }) => topic))]);
    const overrun: (Overrun & { readonly at: TopicPartition })[] = [];
    if (generation !== this.#generation) return;
    for (const at of lanes) {
      const lane = laneOf(at.topic, at.partition);
      const bound = bounds.get(lane);
      if (bound === undefined) throw new LogError('unavailable', `the log does not know ${lane}`);
      const from = positions.get(lane) ?? { lane, nextOffset: null, position: null };
      // A lane that was never read starts at its first record ever; when retention deleted that, the lane is out of
      // range too.
      const next = from.nextOffset ?? 0n;
      if (next < bound.first || next > bound.end) overrun.push({ at, from, firstOffset: bound.first });
      else this.#flow(consumer, at, { next, position: from.position });
    }
    if (overrun.length > 0) await this.#readStore(consumer, overrun, generation);
  }

  /** The store is read once for all out-of-range lanes; the other lanes go on meanwhile. */
  async #readStore(
    consumer: Consumer,
    overrun: readonly (Overrun & { readonly at: TopicPartition })[],
    generation: number,
  ): Promise<void> {
    const { outOfRange } = this.#options.handlers;
    if (outOfRange === undefined) {
      const lanes = overrun
        .map(({ from, firstOffset }) => `${from.lane} (the log begins at ${firstOffset})`)
        .join(', ');
      throw new LogError(
        'fatal',
        `the log no longer has the next records of these lanes, and the consumer cannot read the store: ${lanes}`,
      );
    }
    const moved = await outOfRange.call(this.#options.handlers, overrun, this.#lost.signal);
    if (generation !== this.#generation) return;
    const ends = new Map(moved.map((one) => [one.lane, one]));
    for (const { at, from, firstOffset } of overrun) {
      const end = ends.get(from.lane);
      this.#flow(consumer, at, { next: end?.nextOffset ?? firstOffset, position: end?.position ?? from.position });
    }
  }

  #flow(consumer: Consumer, at: TopicPartition, progress: LaneProgress): void {
    this.#seek(consumer, at, progress);
    this.#resume(consumer, at);
  }

  #seek(consumer: Consumer, { topic, partition }: TopicPartition, progress: LaneProgress): void {
    this.#lanes.set(laneOf(topic, partition), progress);
    consumer.seek({ topic: this.#connection.topicName(topic), partition, offset: progress.next.toString() });
  }

  #pause(consumer: Consumer, { topic, partition }: TopicPartition): void {
    consumer.pause([{ topic: this.#connection.topicName(topic), partitions: [partition] }]);
  }

  #resume(consumer: Consumer, { topic, partition }: TopicPartition): void {
    consumer.resume([{ topic: this.#connection.topicName(topic), partitions: [partition] }]);
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  async #apply(payload: EachBatchPayload, beatMs: number): Promise<void> {
    const { batch, isRunning, isStale, resolveOffset, heartbeat } = payload;
    const generation = this.#generation;
    const at = { topic: this.#connection.topicOf(batch.topic), partition: batch.partition };
    const lane = laneOf(at.topic, at.partition);
    const progress = this.#lanes.get(lane);
    if (progress === undefined) return;
    // kafkajs answers "out of range" with a silent jump to the first offset, so the jump is detected here. The next
    // session finds the lane out of range and reads the store. A jump ahead is never applied. A jump back repeats
    // records, unless the log was recreated, which only its bounds show: while they are unknown the session ends.
    const fetchedAt = BigInt((batch as unknown as { fetchedOffset: string }).fetchedOffset);
    if (fetchedAt > progress.next || (fetchedAt < progress.next && (await this.#overrun([lane])) !== false)) {
      return this.#endSession(null);
    }
    const max = this.#options.maxBatch ?? 500;
    for (let i = 0; i < batch.messages.length; i += max) {
      if (!isRunning() || isStale() || generation !== this.#generation || this.#options.signal.aborted) return;
      const slice = batch.messages.slice(i, i + max);
      const lastOne = i + slice.length === batch.messages.length;
      const last = lastOne ? batch.lastOffset() : (slice.at(-1)?.offset ?? batch.lastOffset());
      try {
        const records = slice.map((message) => toRecord(at.topic, at.partition, message));
        // A log that repeats older records does not move a position back.
        const position = records.reduce((so, record) => newest(so, record.position), progress.position);
        const nextOffset = BigInt(last) + 1n;
        await this.#beating(heartbeat, beatMs, this.#options.handlers.batch({ lane, records, nextOffset, position }));
        // `again` was called: an offset resolved now would overwrite the stored one.
        if (this.#lanes.get(lane) !== progress) return;
        progress.next = nextOffset;
        progress.position = position;
      } catch (error) {
        if (generation !== this.#generation) return;
        if (!isFenced(error)) return this.#endSession({ error });
        this.#lanes.delete(lane);
        // Two members that both believe they own the lane must not fence each other in step.
        await pause(50 + Math.random() * 200, this.#options.signal);
        throw rejoin(lane);
      }
      resolveOffset(slice.at(-1)?.offset ?? last);
      await heartbeat();
    }
  }

  /** Heartbeats while the handlers work: the member keeps the lane however long a batch takes. */
  async #beating(heartbeat: () => Promise<void>, everyMs: number, work: Promise<void>): Promise<void> {
    // A failed beat shows again in the one after the batch, where kafkajs can act on it.
    const timer = setInterval(() => heartbeat().catch(() => undefined), everyMs);
    try {
      await work;
    } finally {
      clearInterval(timer);
    }
  }

  /** Whether the log lacks the next record of one of these lanes. Null: the bounds of the log are unknown. */
  async #overrun(lanes: readonly Lane[]): Promise<boolean | null> {
    const bounds = await this.#connection.bounds(this.#options.topics).catch(() => null);
    if (bounds === null) return null;
    return lanes.some((lane) => {
      const progress = this.#lanes.get(lane);
      const bound = bounds.get(lane);
      return (
        progress !== undefined && bound !== undefined && (progress.next < bound.first || progress.next > bound.end)
      );
    });
  }
}

import { EventStoreError } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type TargetState, target } from '#domain/target.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { Histogram } from '#runtime/process/metrics.ts';
import { backOff } from '#runtime/work/back-off.ts';
import { type Lease, Leases } from '#runtime/work/leases.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { Claim, ClaimLost } from './claim.ts';
import type { Changes, PublisherDeps, Tools } from './deps.ts';
import { type DueRow, DueSearch, type Holding, LeftBehind } from './due.ts';
import { FairQueue } from './fair-queue.ts';
import { Files } from './files.ts';
import { Shares, type Taker, takeFairly } from './shares.ts';
import { SlotQueue } from './slot-queue.ts';
import { type Conditions, Subjects } from './subject.ts';
import { pause, until } from './time.ts';
import { UnknownSearch } from './unknown.ts';
import { type Rest, Work } from './work.ts';

/**
 * Finds targets a little ahead of their time, leases them in bulk, reads what they need, and lets each go at its
 * instant, never before it. The read model says where to look; what is done is decided by the streams alone.
 */

export type { PublisherDeps } from './deps.ts';

const leaseKind = 'target';

/** Streams read at once while preparing, so that what is due now still finds a connection. */
const preparing = 24;
/** Milliseconds before its time at which a target's account and client are read. */
const checkAheadMs = 500;
/** Rest of a target on which an error of ours fell, milliseconds. */
const errorRestMs = 30_000;
/** One question about an unknown outcome is asked at once for so many slots; they are not those of publishing. */
const slotsPerQuestion = 8;
const minQuestions = 16;
/** Between two looks of an idle publisher, milliseconds: far less than it looks ahead. */
const restingMs = 1_000;
/** For so long after an event, or after work of its own, it looks often, milliseconds: the read model is behind by less. */
const awakeMs = 5_000;
/** A loop that has not looked for work for this long is not well, milliseconds. */
const staleAfterMs = 10_000;

/** Brings a leased target as far as it can go now. */
type WorkOn = (row: DueRow, lease: Lease) => Promise<Rest>;

/** Runs until the signal aborts and what was begun has come to an end that needs no successor, or to its deadline. */
export const runPublisher = async (deps: PublisherDeps, signal: AbortSignal): Promise<void> => {
  await new Publisher(deps, signal).run();
};

class Publisher {
  readonly #tools: Tools;
  readonly #leases: Leases;
  readonly #subjects: Subjects;
  readonly #signal: AbortSignal;
  readonly #acting: SlotQueue;
  readonly #reading = new FairQueue(preparing);
  /** Target → its work. */
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #left = new LeftBehind();
  /** Targets leased at once: those under way, and a supply that is read ahead of its time. */
  readonly #supply: Shares;
  /** Questions about unknown outcomes, each from lease to answer. A million of them keep no post from its time. */
  readonly #questions: Shares;
  readonly #due: DueSearch;
  readonly #unknown: UnknownSearch;
  readonly #liveness = new Liveness(staleAfterMs);
  #awakeUntil = performance.now() + awakeMs;
  /** Version of the events at the last look. */
  #seen: number;
  readonly #changes: Changes | undefined;

  constructor(deps: PublisherDeps, signal: AbortSignal) {
    const { pool, registry, readiness, config, logger, clock } = deps;
    this.#signal = signal;
    this.#changes = deps.changes;
    this.#seen = deps.changes?.version ?? 0;
    this.#tools = {
      random: Math.random,
      pollMs: 100,
      aheadMs: 3_000,
      preparationLimitMs: 15 * 60_000,
      preparationIdleMs: 60_000,
      mediaLimitMs: 30 * 60_000,
      ...deps,
      now: clock.now,
      startedAt: clock.now(),
      files: new Files(deps.blobs, deps.workDir),
      lateness: registry === undefined ? null : latenessIn(registry),
    };
    this.#supply = new Shares(config.publishConcurrency * 2);
    this.#questions = new Shares(Math.max(minQuestions, Math.ceil(config.publishConcurrency / slotsPerQuestion)));
    this.#acting = new SlotQueue(config.publishConcurrency);
    this.#due = new DueSearch(pool, leaseKind);
    this.#unknown = new UnknownSearch(pool, leaseKind);
    this.#subjects = new Subjects(deps.store);
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      clock,
      ttlMs: config.leaseTtlMs,
      onError: (error) => logger.warn({ err: error }, 'leases could not be renewed or given back'),
    });
    readiness?.add('publisher', async () => this.#liveness.check(`holds ${this.#leases.size}`));
  }

  async run(): Promise<void> {
    const { logger, pollMs } = this.#tools;
    let failures = 0;
    try {
      while (!this.#signal.aborted) {
        let wait = pollMs;
        try {
          await this.#look();
          failures = 0;
        } catch (error) {
          logger.warn({ err: error }, 'looking for due work failed');
          failures += 1;
          wait = backOff(failures, { firstMs: pollMs, maxMs: 1_000 });
        }
        await this.#rest(wait);
      }
      // Calls that were made are waited for, so that their outcome is known; everything else stops at the signal.
      while (this.#underWay.size > 0) await Promise.all(this.#underWay.values());
    } finally {
      await this.#leases.close();
      await this.#tools.files.close();
    }
  }

  async #rest(ms: number): Promise<void> {
    const changes = this.#changes;
    if (changes === undefined || this.#underWay.size > 0) this.#awakeUntil = performance.now() + awakeMs;
    if (changes === undefined || performance.now() < this.#awakeUntil) await pause(ms, this.#signal);
    else {
      const woken = new AbortController();
      const stop = AbortSignal.any([this.#signal, woken.signal]);
      await Promise.race([pause(restingMs, stop), changes.changed(this.#seen, stop)]);
      woken.abort();
    }
    if (changes === undefined || changes.version === this.#seen) return;
    this.#seen = changes.version;
    this.#awakeUntil = performance.now() + awakeMs;
  }

  async #look(): Promise<void> {
    const { now, aheadMs } = this.#tools;
    this.#left.forget();
    const before = new Date(now() + aheadMs);
    await this.#lease(this.#supply, (holding) => this.#due.find(before, holding), this.#bring);
    await this.#lease(this.#questions, (holding) => this.#unknown.find(holding), this.#askFor);
    this.#liveness.looked();
  }

  /** Leases as many of what is found as have a slot, and begins with them. */
  async #lease(shares: Shares, find: (holding: Holding) => Promise<readonly DueRow[]>, work: WorkOn): Promise<void> {
    if (shares.free === 0) return;
    const found = await find({ held: [...this.#underWay.keys()], shares, left: this.#left });
    const taken = new Map(takeFairly(shares, found).map((row) => [row.id, row]));
    try {
      for (const lease of await this.#leases.acquire([...taken.keys()])) {
        const row = taken.get(lease.id);
        if (row === undefined) continue;
        taken.delete(lease.id);
        this.#begin(row, lease, work, shares);
      }
    } finally {
      for (const row of taken.values()) shares.give(row);
    }
  }

  #begin(row: DueRow, lease: Lease, work: WorkOn, shares: Shares): void {
    const done = this.#hold(row, lease, work).finally(() => {
      shares.give(row);
      this.#underWay.delete(row.id);
    });
    this.#underWay.set(row.id, done);
  }

  /** Keeps the lease until nothing can be done now; never rejects. */
  async #hold(row: DueRow, lease: Lease, work: WorkOn): Promise<void> {
    let rest: Rest = null;
    try {
      rest = await work(row, lease);
    } catch (error) {
      rest = this.#restAfter(error, row.id);
    }
    lease.release(rest === null ? {} : { notBeforeMs: rest });
  }

  readonly #bring: WorkOn = async (row, lease) => {
    const { now, aheadMs } = this.#tools;
    const stop = AbortSignal.any([lease.signal, this.#signal]);
    const claim = await this.#claimOf(row, lease);
    const live = claim.state;
    // A row without a stream: a store that was put back to an earlier day. Left alone, not asked for at every look.
    if (live.status === 'none') return errorRestMs;
    const at = nextInstant(live);
    // The row is behind its stream: it is found again, if there is something to do, when it has caught up.
    if (at === null || at > now() + aheadMs) {
      this.#leave(claim, row);
      return null;
    }
    await this.#reading.run(row.workspaceId, () => this.#subjects.content(live));
    await until(at - checkAheadMs, now, stop);
    if (stop.aborted) return null;
    const conditions = await this.#reading.run(row.workspaceId, () => this.#subjects.conditions(live));
    await until(at, now, stop);
    if (stop.aborted) return null;
    const work = this.#workOn(claim, conditions);
    const taker = takerOf(row, conditions);
    // Each segment of a thread takes its turn: a long one does not keep others from their time.
    let rest = await this.#acting.run(taker, () => work.run());
    while (rest === 'next turn') rest = await this.#acting.run(taker, () => work.run());
    this.#leave(claim, row);
    return rest;
  };

  /** What follows from the answer, a new attempt or the next segment, is due work like any other, and found as such. */
  readonly #askFor: WorkOn = async (row, lease) => {
    const claim = await this.#claimOf(row, lease);
    const live = claim.state;
    if (live.status === 'none') return errorRestMs;
    let rest: Rest = null;
    if (live.status === 'outcome_unknown') {
      const conditions = await this.#reading.run(row.workspaceId, () => this.#subjects.conditions(live));
      const answered = await this.#workOn(claim, conditions).run();
      rest = answered === 'next turn' ? null : answered;
    }
    this.#leave(claim, row);
    return rest;
  };

  async #claimOf(row: DueRow, lease: Lease): Promise<Claim> {
    const { store, now } = this.#tools;
    const loaded = await this.#reading.run(row.workspaceId, () => store.load(target, row.id));
    return new Claim(store, lease, loaded, now);
  }

  #workOn(claim: Claim, conditions: Conditions): Work {
    return new Work(this.#tools, this.#subjects, claim, conditions, this.#signal);
  }

  /** Remembers how far its stream was, so that a row that still shows the past is passed over. */
  #leave(claim: Claim, row: DueRow): void {
    if (claim.revision > row.revision) this.#left.add(row, claim.revision);
  }

  #restAfter(error: unknown, targetId: string): Rest {
    const { logger } = this.#tools;
    const conflict = error instanceof EventStoreError && error.code === 'wrong_expected_revision';
    if (error instanceof ClaimLost || error instanceof Rejection || conflict || this.#signal.aborted) {
      logger.debug({ err: error, targetId }, 'a target was left to somebody else');
      return null;
    }
    if (error instanceof Unavailable) {
      logger.warn({ err: error, targetId }, 'a target waits for the event store');
      return 1_000;
    }
    logger.error({ err: error, targetId }, 'a target could not be worked on');
    return errorRestMs;
  }
}

/** By the account itself: the row says of which network it is only once its read model knows the account. */
const takerOf = ({ workspaceId, network }: DueRow, { account: { state } }: Conditions): Taker => ({
  workspaceId,
  network: state.status === 'none' ? network : `${state.network}/${state.platform}`,
});

/** Instant, milliseconds, at which something can be done for it; null when nothing is left to do. */
const nextInstant = (state: TargetState): number | null => {
  switch (state.status) {
    case 'pending':
      return Date.parse(state.dueAt);
    case 'rate_limited':
      return Date.parse(state.retryAt);
    case 'publishing':
    case 'outcome_unknown':
      return 0;
    default:
      return null;
  }
};

const latenessIn = (registry: NonNullable<PublisherDeps['registry']>): Histogram =>
  new Histogram({
    name: 'publish_start_lateness_seconds',
    help: 'from the time a target was due to the start of its publish call',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [registry],
  });

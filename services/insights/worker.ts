import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { together } from '#runtime/process/lifecycle.ts';
import { LeasedWork } from '#runtime/work/leased-work.ts';
import { type Lease, LeaseLost } from '#runtime/work/leases.ts';
import { runPages } from '#runtime/work/noted-work.ts';
import { Rest, WakeSignal } from '#runtime/work/wake-signal.ts';
import { platforms } from '#schemas/common.ts';
import { choose, openTo } from './choose.ts';
import { closePage } from './closings.ts';
import type { InsightsDeps } from './deps.ts';
import { type DueAccount, DueAccountSearch } from './due.ts';
import { insightsGroup, onEvents, subscribedKinds, subscribedTypes } from './intake.ts';
import { PollJobs } from './jobs.ts';
import { workMetrics } from './metrics.ts';
import { type PollTools, pollAccount } from './poll-account.ts';
import { askPage, completeRefreshes } from './refreshes.ts';
import { type Cadence, cadence as usual } from './schedule.ts';

/**
 * Polls several accounts at once, each workspace and network within its share. A lease keeps two processes from polling
 * one account at the same time, so its network sees one caller.
 */

const leaseKind = 'metrics';
/** Rest of an account after a fault of this code, milliseconds. */
const errorRestMs = 30_000;
/** Rest of an account whose poll ended because a dependency was unavailable. */
const unavailableRest: BackOff = { firstMs: 1_000, maxMs: 10 * 60_000 };
/** Accounts for which the process counts such polls in a row. */
const maxRemembered = 10_000;
/** Accounts of each network that a search reads at least: with fewer due, none waits behind a large workspace. */
const minFound = 16;
const cleanEveryMs = 3_600_000;
const stalePolls = 10;
/** Nothing wakes the loop when an account becomes due, so it never waits longer than one poll interval. */
const maxPolls = 1;

export class InsightsWorker {
  readonly #deps: InsightsDeps;
  readonly #jobs: PollJobs;
  readonly #search: DueAccountSearch;
  readonly #work: LeasedWork<DueAccount>;
  readonly #tools: PollTools;
  /** By account: polls in a row that met an unavailable dependency. */
  readonly #unavailable = new Map<string, number>();
  /** When refreshes are completed next; monotonic milliseconds. */
  #completeAt = Number.NEGATIVE_INFINITY;
  readonly #completing: Rest;
  #cleanedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: InsightsDeps, cadence: Cadence, signal: AbortSignal) {
    const { pool, config, clock, logger, readiness, store, registry, pollMs = 1_000, callLimitMs = 60_000 } = deps;
    this.#deps = deps;
    this.#jobs = new PollJobs(pool);
    this.#search = new DueAccountSearch(pool, leaseKind);
    this.#completing = new Rest(pollMs);
    const wakeSignal = new WakeSignal();
    this.#work = new LeasedWork({
      ...{ pool, leaseKind, leaseTtlMs: config.leaseTtlMs, clock, logger, pollMs, maxPolls, stalePolls },
      ...{ wakeSignal, signal },
      idOf: ({ accountId }) => accountId,
      work: ({ accountId }, lease, stop) => this.#poll(accountId, lease, stop),
    });
    const gauges = { lag: () => this.#search.lag(), underWay: () => this.#work.size };
    const metrics = registry === undefined ? null : workMetrics(registry, gauges);
    this.#tools = { store, jobs: this.#jobs, cadence, callLimitMs, metrics, logger };
    readiness?.add('insights', async () => this.#work.liveness.check(`polls ${this.#work.size} accounts`));
  }

  run(): Promise<void> {
    return this.#work.run(() => this.#beginDue(), 'accounts to poll');
  }

  /** @returns false always: the end of a poll frees a slot and wakes the loop */
  async #beginDue(): Promise<boolean> {
    const { insightsConcurrency: slots } = this.#deps.config;
    const { running } = this.#work;
    const open = openTo(platforms, running, slots);
    const due = await this.#search.find(open, Math.max(slots - running.length, minFound));
    const chosen = choose(due, running, slots);
    this.#search.taken(chosen);
    await this.#work.begin(chosen);
    await this.#complete();
    await this.#clean();
    this.#work.liveness.searched();
    return false;
  }

  /** A search follows the end of each poll; refreshes are completed only at regular intervals, not at each search. */
  async #complete(): Promise<void> {
    if (performance.now() < this.#completeAt) return;
    const { pool, store, logger } = this.#deps;
    const completed = await completeRefreshes(pool, store, logger);
    // While polls run, refreshes of their accounts become complete soon.
    this.#completeAt = performance.now() + this.#completing.after(completed > 0 || this.#work.size > 0);
  }

  async #clean(): Promise<void> {
    if (performance.now() - this.#cleanedAt < cleanEveryMs) return;
    this.#cleanedAt = performance.now();
    await this.#jobs.clean(this.#tools.cadence.lifeMs);
  }

  /** @returns the account's rest, milliseconds; null: its jobs decide when it is due again */
  async #poll(accountId: string, lease: Lease, stop: AbortSignal): Promise<number | null> {
    try {
      let restMs: number | null = null;
      const cycle = await this.#jobs.pollCycle(accountId);
      if (cycle !== null && cycle.jobs.length > 0) {
        const source = this.#deps.sourceOf(cycle.network, cycle.platform);
        faultPoint('insights:leased');
        restMs = await pollAccount(cycle, source, lease, stop, this.#tools);
      }
      this.#unavailable.delete(accountId);
      return restMs;
    } catch (error) {
      return this.#restAfter(error, accountId, stop);
    }
  }

  #restAfter(error: unknown, accountId: string, stop: AbortSignal): number | null {
    const { logger } = this.#deps;
    if (stop.aborted || error instanceof LeaseLost) {
      logger.debug({ err: error, accountId }, 'another worker polls the account from here on');
      return null;
    }
    const isUnavailable = error instanceof Unavailable;
    logger[isUnavailable ? 'warn' : 'error']({ err: error, accountId }, 'an account could not be polled');
    if (!isUnavailable) return errorRestMs;
    const before = this.#unavailable.get(accountId) ?? 0;
    if (this.#unavailable.size >= maxRemembered) this.#unavailable.clear();
    this.#unavailable.set(accountId, before + 1);
    return backOff(before, unavailableRest);
  }
}

export interface InsightsProcess {
  /** Resolves when the signal ended it; rejects with an error that the log cannot recover from. */
  readonly done: Promise<void>;
  readonly consumers: readonly Consumer[];
}

/** The loops of the insights process: one consumes events, one polls due accounts, two work on pages. */
export const startInsights = (deps: InsightsDeps, signal: AbortSignal): InsightsProcess => {
  const { log, eventStore, store, codec, pool, logger, config, sourceOf, pollMs = 1_000 } = deps;
  const cadence: Cadence = { ...usual, youngMs: config.insightsYoungDelaysMs, ...deps.cadence };
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const [closings, asks] = [new WakeSignal(), new WakeSignal()];
  const onNoted = (): void => {
    closings.wake();
    asks.wake();
  };
  const intake = consume({
    log,
    store: eventStore,
    pool,
    codec,
    group: insightsGroup,
    topics: ['posts', 'workspace'],
    kinds: subscribedKinds,
    types: subscribedTypes,
    replay: 'never',
    apply: (tx, events) => onEvents(tx, events, { store, sourceOf, cadence, onNoted }),
    signal: stop,
    logger,
  });
  const worker = new InsightsWorker(deps, cadence, stop);
  const shared = { logger, pollMs, signal: stop };
  const pages = [
    runPages('closed clients', () => closePage(pool), { ...shared, wakeSignal: closings }),
    runPages('refreshes', () => askPage(pool, { store, sourceOf, cadence }), { ...shared, wakeSignal: asks }),
  ];
  return { done: together([intake.done, worker.run(), ...pages], failed), consumers: [intake] };
};

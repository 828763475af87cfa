import { setTimeout as delay } from 'node:timers/promises';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type BackOff, backOff } from '#runtime/work/back-off.ts';
import { type Lease, LeaseLost, Leases } from '#runtime/work/leases.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { Rest } from '#runtime/work/wake-signal.ts';
import { platforms } from '#schemas/common.ts';
import { choose, openTo } from './choose.ts';
import type { MetricsDeps } from './deps.ts';
import { type DueAccount, DueSearch } from './due.ts';
import { Jobs } from './jobs.ts';
import { workMetrics } from './metrics.ts';
import { pollAccount, type TurnTools } from './poll-account.ts';
import { completeRefreshes } from './refreshes.ts';
import type { Cadence } from './schedule.ts';

/**
 * Finds accounts of which something is due, leases them, and asks for some at once, each workspace and network within its
 * share. An account has one turn at a time, wherever: its network sees one caller.
 */

const leaseKind = 'metrics';
/** Rest of an account on which an error of ours fell, milliseconds. */
const errorRestMs = 30_000;
/** Of one whose turn ended because a part of ours was away, milliseconds: doubled with each in a row. */
const unavailableRest: BackOff = { firstMs: 1_000, maxMs: 10 * 60_000 };
/** Accounts of which it is remembered how often in a row. */
const maxAway = 10_000;
/** With no more of a network's accounts due than this nobody stands behind anybody. */
const minFound = 16;
const cleanEveryMs = 3_600_000;

export class Worker {
  readonly #deps: MetricsDeps;
  readonly #cadence: Cadence;
  readonly #signal: AbortSignal;
  readonly #jobs: Jobs;
  readonly #leases: Leases;
  readonly #search: DueSearch;
  /** Turns under way. */
  readonly #underWay = new Map<Promise<void>, DueAccount>();
  /** By account: turns in a row. */
  readonly #away = new Map<string, number>();
  readonly #liveness: Liveness;
  /** When refreshes are completed next; monotonic milliseconds. */
  #completeAt = Number.NEGATIVE_INFINITY;
  readonly #completing: Rest;
  #cleanedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: MetricsDeps, cadence: Cadence, signal: AbortSignal) {
    const { pool, config, clock, logger, readiness, pollMs = 1_000 } = deps;
    this.#deps = deps;
    this.#cadence = cadence;
    this.#signal = signal;
    this.#jobs = new Jobs(pool);
    this.#liveness = new Liveness(10 * pollMs);
    this.#search = new DueSearch(pool, leaseKind);
    this.#completing = new Rest(pollMs);
    this.#leases = new Leases({
      pool,
      kind: leaseKind,
      ttlMs: config.leaseTtlMs,
      ...(clock === undefined ? {} : { clock }),
      onError: (error) => logger.warn({ err: error }, 'leases could not be renewed or given back'),
    });
    readiness?.add('insights', async () => this.#liveness.check(`asks for ${this.#underWay.size} accounts`));
  }

  async run(): Promise<void> {
    const { store, registry, logger, pollMs = 1_000, callLimitMs = 60_000 } = this.#deps;
    const about = { lag: () => this.#search.lag(), underWay: () => this.#underWay.size };
    const metrics = registry === undefined ? null : workMetrics(registry, about);
    const tools: TurnTools = { store, jobs: this.#jobs, cadence: this.#cadence, callLimitMs, metrics, logger };
    try {
      while (!this.#signal.aborted) {
        await this.#look(tools);
        const wait = delay(pollMs, undefined, { signal: this.#signal }).catch(() => undefined);
        // A turn that ends makes room, and its account may have more.
        await Promise.race([wait, ...this.#underWay.keys()]);
      }
      await Promise.all(this.#underWay.keys());
    } finally {
      await this.#leases.close();
    }
  }

  async #look(tools: TurnTools): Promise<void> {
    const { pool, store, logger, config } = this.#deps;
    try {
      const places = config.insightsConcurrency;
      // What was given back must be seen to be free.
      await this.#leases.flush();
      const open = openTo(platforms, this.#underWay.values(), places);
      const due = await this.#search.find(open, Math.max(places - this.#underWay.size, minFound));
      const chosen = choose(due, this.#underWay.values(), places);
      this.#search.taken(chosen);
      for (const lease of await this.#leases.acquire(chosen.map(({ accountId }) => accountId))) {
        const one = chosen.find(({ accountId }) => accountId === lease.id);
        if (one !== undefined) this.#begin(one, lease, tools);
      }
      // A look follows the end of each turn; what is complete by then waits for the next regular one.
      if (performance.now() >= this.#completeAt) {
        const completed = await completeRefreshes(pool, store, logger);
        // Those of whom turns are under way are complete soon.
        this.#completeAt = performance.now() + this.#completing.after(completed > 0 || this.#underWay.size > 0);
      }
      await this.#clean();
      this.#liveness.looked();
    } catch (error) {
      logger.warn({ err: error }, 'looking for figures to ask for failed');
    }
  }

  async #clean(): Promise<void> {
    if (performance.now() - this.#cleanedAt < cleanEveryMs) return;
    this.#cleanedAt = performance.now();
    await this.#jobs.clean(this.#cadence.lifeMs);
  }

  #begin(one: DueAccount, lease: Lease, tools: TurnTools): void {
    const turn = this.#hold(one.accountId, lease, tools).finally(() => this.#underWay.delete(turn));
    this.#underWay.set(turn, one);
  }

  /** Never rejects. */
  async #hold(accountId: string, lease: Lease, tools: TurnTools): Promise<void> {
    const stop = AbortSignal.any([lease.signal, this.#signal]);
    let rest: number | null = null;
    try {
      const turn = await this.#jobs.turn(accountId);
      if (turn !== null && turn.jobs.length > 0) {
        const source = this.#deps.sourceOf(turn.network, turn.platform);
        faultPoint('insights:leased');
        rest = await pollAccount(turn, source, lease, stop, tools);
      }
      this.#away.delete(accountId);
    } catch (error) {
      rest = this.#restAfter(error, accountId, stop);
    }
    lease.release(rest === null ? {} : { notBeforeMs: rest });
  }

  #restAfter(error: unknown, accountId: string, stop: AbortSignal): number | null {
    const { logger } = this.#deps;
    if (stop.aborted || error instanceof LeaseLost) {
      logger.debug({ err: error, accountId }, 'an account was left to somebody else');
      return null;
    }
    const away = error instanceof Unavailable;
    logger[away ? 'warn' : 'error']({ err: error, accountId }, 'an account could not be asked for its figures');
    if (!away) return errorRestMs;
    const before = this.#away.get(accountId) ?? 0;
    if (this.#away.size >= maxAway) this.#away.clear();
    this.#away.set(accountId, before + 1);
    return backOff(before, unavailableRest);
  }
}

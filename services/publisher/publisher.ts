import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { postingRulesOf } from '#projections/queries/posting-rules.ts';
import { takenPosts } from '#projections/queries/restored-targets.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { Gauge, Histogram } from '#runtime/process/metrics.ts';
import { networkRestsCheck, publishingCheck, restoreCheck } from '#runtime/process/telemetry.ts';
import { takeFairly } from '#runtime/work/fair-pick.ts';
import { type Lease, Leases } from '#runtime/work/leases.ts';
import { Liveness } from '#runtime/work/liveness.ts';
import { NetworkRests } from '#runtime/work/network-rests.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { Restores } from '#runtime/work/restores.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { Slots } from '#runtime/work/slots.ts';
import { platforms } from '#schemas/common.ts';
import { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import { CadenceSlots } from './account-slots.ts';
import { AskedSearch } from './asked-search.ts';
import type { Changes, PublisherDeps, Tools } from './deps.ts';
import { DueSearch } from './due-search.ts';
import { Files } from './files.ts';
import { ClaimLost } from './leased-target.ts';
import { absencePolicy, processingRest } from './reconcile-schedule.ts';
import type { SearchScope } from './search.ts';
import { type DueRow, publisherSlots } from './shares.ts';
import { StaleRows } from './stale-rows.ts';
import { TargetWorker } from './target-worker.ts';
import { WaitingFiles } from './waiting-files.ts';
import type { RestMs } from './work.ts';

/**
 * Finds targets a little ahead of their time, leases them in bulk and works on them. The read model
 * only names candidates; the streams alone decide what happens.
 */

export type { PublisherDeps } from './deps.ts';

/** Milliseconds that a target rests after an unexpected error of this publisher. */
const errorRestMs = 30_000;
/** Milliseconds that a target rests while the event store is unavailable. */
const storeRestMs = 1_000;
/** Publishing slots per slot for questions about outcomes that are not known yet. */
const slotsPerQuestion = 8;
const minQuestions = 16;
/** Milliseconds between two searches of an idle publisher; must be far less than `aheadMs`. */
const idlePollMs = 1_000;
/** Milliseconds of frequent searches after an event or after own work, because the read model lags by less. */
const awakeMs = 5_000;
/** Milliseconds without a search after which the process is not ready. */
const staleAfterMs = 10_000;

/** Between two looks at a target whose renditions are not ready; a file that moves ends the rest. */
const mediaRest: BackOff = { firstMs: 500, maxMs: 30_000 };

/** Works on one leased target until no step is due. */
type WorkOn = (row: DueRow, lease: Lease) => Promise<RestMs>;

/** Runs until the signal aborts, then until each call in flight has an outcome or reaches its deadline. */
export const runPublisher = async (deps: PublisherDeps, signal: AbortSignal): Promise<void> => {
  await new Publisher(deps, signal).run();
};

class Publisher {
  readonly #tools: Tools;
  readonly #signal: AbortSignal;
  readonly #leases: Leases;
  readonly #worker: TargetWorker;
  readonly #clocks: SandboxClocks;
  /** Target id → the work on the target. */
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #staleRows = new StaleRows();
  /** Slots for leased targets: running ones, and a supply that is read ahead of its time. */
  readonly #supply: Slots;
  /** Slots for questions about outcomes that are not known yet. They are separate, so that many do not delay a post. */
  readonly #questions: Slots;
  readonly #due: DueSearch;
  readonly #asked: AskedSearch;
  readonly #changes: Changes | undefined;
  /** Version of the changes at the last search. */
  #seen: number;
  readonly #liveness = new Liveness(staleAfterMs);
  #awakeUntil = performance.now() + awakeMs;

  constructor(deps: PublisherDeps, signal: AbortSignal) {
    const { pool, registry, readiness, config, logger, clock, accountsOf = () => null } = deps;
    this.#signal = signal;
    this.#clocks = deps.sandboxClocks ?? new SandboxClocks(pool);
    this.#changes = deps.changes;
    this.#seen = deps.changes?.version ?? 0;
    this.#tools = {
      random: Math.random,
      pollMs: 100,
      aheadMs: 3_000,
      preparationLimitMs: 15 * 60_000,
      preparationIdleMs: 60_000,
      mediaLimitMs: 30 * 60_000,
      absencePolicy,
      processingRest,
      rateLimitBackOff: { firstMs: 1_000, maxMs: 15 * 60_000 },
      mediaRest,
      ...deps,
      calls: deps.calls ?? null,
      accountsOf,
      asked: new AskedAccounts({
        ...{ sourceOf: accountsOf, clock: clock.now, logger },
        ...(deps.factsKeptMs === undefined ? {} : { keptMs: deps.factsKeptMs }),
      }),
      now: clock.now,
      clockAheadMs: () => 0,
      sinceMove: () => 0,
      startedAt: clock.now(),
      files: new Files(deps.blobs, deps.workDir),
      hold: new PublishingHold(pool, config.publishing ?? 'on'),
      networkRests: new NetworkRests({ pool, now: clock.now, versionOf: versionsOf(deps), logger }),
      waitingFiles: new WaitingFiles(pool, leaseKindOfTargets, deps.mediaRest ?? mediaRest),
      restores: new Restores(pool),
      lookedBack: { asked: 0, open: 0, found: 0, oldestDue: Number.POSITIVE_INFINITY, declared: null },
      takenPosts: (accountId, except, ids) => takenPosts(pool, accountId, except, ids),
      cadence: {
        rules: async (workspaceId) => (await postingRulesOf(pool, workspaceId)).cadence,
        slots: new CadenceSlots(pool),
      },
      lateness: registry === undefined ? null : latenessIn(registry),
      processing: registry === undefined ? null : processingIn(registry),
    };
    this.#supply = publisherSlots(config.publishConcurrency * 2);
    this.#questions = publisherSlots(Math.max(minQuestions, Math.ceil(config.publishConcurrency / slotsPerQuestion)));
    this.#due = new DueSearch(pool, leaseKindOfTargets, {
      heldBySetting: config.publishing === 'hold',
      moved: () => this.#clocks.moved(),
      resting: async () => (await this.#tools.networkRests.all()).map(({ network }) => network),
    });
    this.#asked = new AskedSearch(pool, leaseKindOfTargets);
    this.#worker = new TargetWorker(this.#tools, this.#clocks, this.#staleRows, signal);
    this.#leases = new Leases({
      pool,
      kind: leaseKindOfTargets,
      clock,
      ttlMs: config.leaseTtlMs,
      onError: (error) => logger.warn({ err: error }, 'could not renew or release leases; retrying'),
    });
    if (registry !== undefined) showRests(registry, this.#tools.networkRests);
    readiness?.add(publishingCheck, () => this.#tools.hold.line());
    readiness?.add(networkRestsCheck, () => this.#tools.networkRests.line());
    readiness?.add(restoreCheck, () => this.#tools.restores.line());
    readiness?.add('publisher', async () => this.#liveness.check(`holds ${this.#leases.size}`));
  }

  async run(): Promise<void> {
    const { logger, pollMs } = this.#tools;
    let failures = 0;
    try {
      while (!this.#signal.aborted) {
        let wait = pollMs;
        try {
          await this.#search();
          failures = 0;
        } catch (error) {
          logger.warn({ err: error }, 'the search for due work failed');
          failures += 1;
          wait = backOff(failures, { firstMs: pollMs, maxMs: 1_000 });
        }
        await this.#rest(wait);
      }
      // Calls in flight run to their end, so that their outcome is known; all other work stops at the signal.
      while (this.#underWay.size > 0) await Promise.all(this.#underWay.values());
    } finally {
      await this.#leases.close();
      await this.#tools.calls?.close();
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
      await Promise.race([pause(idlePollMs, stop), changes.changed(this.#seen, stop)]);
      woken.abort();
    }
    if (changes === undefined || changes.version === this.#seen) return;
    this.#seen = changes.version;
    this.#awakeUntil = performance.now() + awakeMs;
  }

  async #search(): Promise<void> {
    const { now, aheadMs } = this.#tools;
    const worker = this.#worker;
    this.#staleRows.expire();
    await this.#clocks.read();
    const before = new Date(now() + aheadMs);
    const findDue = (scope: SearchScope) => this.#due.find(before, scope);
    await this.#lease(this.#supply, findDue, (row, lease) => worker.publishDue(row, lease));
    const findAsked = (scope: SearchScope) => this.#asked.find(scope);
    await this.#lease(this.#questions, findAsked, (row, lease) => worker.settleOpen(row, lease));
    await this.#tools.waitingFiles.wake();
    this.#liveness.searched();
  }

  /** Leases as many of the found targets as have a slot, and begins to work on them. */
  async #lease(slots: Slots, find: (scope: SearchScope) => Promise<readonly DueRow[]>, work: WorkOn): Promise<void> {
    if (slots.free === 0) return;
    const found = await find({ underWay: [...this.#underWay.keys()], slots, staleRows: this.#staleRows });
    const taken = new Map(takeFairly(found, { slots, takerOf: (row) => row }).map((row) => [row.id, row]));
    try {
      for (const lease of await this.#leases.acquire([...taken.keys()])) {
        const row = taken.get(lease.id);
        if (row === undefined) continue;
        taken.delete(lease.id);
        this.#begin(row, lease, work, slots);
      }
    } finally {
      for (const row of taken.values()) slots.give(row);
    }
  }

  #begin(row: DueRow, lease: Lease, work: WorkOn, slots: Slots): void {
    const done = this.#workAndRelease(row, lease, work).finally(() => {
      slots.give(row);
      this.#underWay.delete(row.id);
    });
    this.#underWay.set(row.id, done);
  }

  /** Never rejects. */
  async #workAndRelease(row: DueRow, lease: Lease, work: WorkOn): Promise<void> {
    let rest: RestMs = null;
    try {
      rest = await work(row, lease);
    } catch (error) {
      rest = this.#restAfter(error, row.id);
    }
    lease.release(rest === null ? {} : { notBeforeMs: rest });
  }

  #restAfter(error: unknown, targetId: string): RestMs {
    const { logger } = this.#tools;
    const conflict = isConflict(error);
    if (error instanceof ClaimLost || error instanceof Rejection || conflict || this.#signal.aborted) {
      logger.debug({ err: error, targetId }, 'claim lost; another worker continues the target');
      return null;
    }
    if (error instanceof Unavailable) {
      logger.warn({ err: error, targetId }, 'event store unavailable; the target rests');
      return storeRestMs;
    }
    logger.error({ err: error, targetId }, 'work on a target failed; the target rests');
    return errorRestMs;
  }
}

/** `live/linkedin` → what its adapter asks for. */
const versionsOf =
  ({ adapterOf }: PublisherDeps) =>
  (network: string): string | null => {
    const [mode, name] = network.split('/');
    const platform = platforms.find((one) => one === name);
    if (platform === undefined) return null;
    return adapterOf(mode === 'live' ? 'live' : 'sandbox', platform)?.apiVersion?.(platform) ?? null;
  };

const showRests = (registry: NonNullable<PublisherDeps['registry']>, rests: NetworkRests): void => {
  new Gauge({
    name: 'network_resting',
    help: '1 while targets of the network wait, since it no longer answers the version of its API that this process asks for',
    labelNames: ['network', 'version'],
    registers: [registry],
    async collect() {
      const known = await rests.all().catch(() => null);
      this.reset();
      for (const { network, version } of known ?? []) this.set({ network, version }, 1);
    },
  });
};

const latenessIn = (registry: NonNullable<PublisherDeps['registry']>): Histogram =>
  new Histogram({
    name: 'publish_start_lateness_seconds',
    help: 'seconds from the time of an attempt to publish a target to the start of its call',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [registry],
  });

const processingIn = (registry: NonNullable<PublisherDeps['registry']>): Histogram =>
  new Histogram({
    name: 'publish_processing_seconds',
    help: 'seconds from the acceptance of a post by its network to its end; end: shown, refused, or not_shown within the limit of the network',
    labelNames: ['platform', 'end'],
    buckets: [1, 10, 60, 300, 1_800, 7_200, 28_800, 86_400],
    registers: [registry],
  });

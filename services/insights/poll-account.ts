import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import type { Json } from '#contracts/ports/platform.ts';
import type {
  AccountInsightsAnswer,
  InsightsAccount,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import { type AccountState, account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { type MediaState, media } from '#domain/media.ts';
import { useOf } from '#domain/platforms/index.ts';
import { contentFor } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { workspace } from '#domain/workspace.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { wellFormedInstant, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { type Lease, LeaseLost } from '#runtime/work/leases.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import { lapse } from '#services/workflows/accounts/lapse.ts';
import type { AccountRest, Job, Parked, PollCycle, PollJobs, Tried } from './jobs.ts';
import type { WorkMetrics } from './metrics.ts';
import { contextOf, type ObservedAnswer, type Observing, observe, recordProfile } from './observe.ts';
import { type Cadence, nextNight, nextObservation, nextTry } from './schedule.ts';

/** How a post was published, which decides the figures that its network has. For a thread its head counts. */
interface Shown {
  readonly use: MediaUse;
  readonly hasVideo: boolean;
}

const kindOf = (state: MediaState): MediaKind => {
  if (state.status === 'none' || state.status === 'offered') return 'image';
  return (state.status === 'deleted' ? state.kind : state.stored?.kind) ?? 'image';
};

const shownOf = async (store: DomainStore, targetId: string): Promise<Shown> => {
  const { state } = await store.load(target, targetId);
  if (state.status === 'none') throw new BrokenInvariant(`target ${targetId} has no stream`);
  const { state: its } = await store.load(post, state.common.postId, state.common.postRevision);
  if (its.status !== 'live')
    throw new BrokenInvariant(`post ${state.common.postId} has no plan at revision ${state.common.postRevision}`);
  const { segments, overrides } = contentFor(newestBody(its), state.common.platform);
  const kinds = await Promise.all(segments[0].mediaIds.map(async (id) => kindOf((await store.load(media, id)).state)));
  const hasVideo = kinds.some((kind) => kind === 'video' || kind === 'gif');
  return { use: useOf(state.common.platform, overrides, kinds), hasVideo };
};

export interface PollTools {
  readonly store: DomainStore;
  readonly jobs: PollJobs;
  readonly cadence: Cadence;
  readonly callLimitMs: number;
  readonly metrics: WorkMetrics | null;
  readonly logger: Logger;
}

type Answer = PostInsightsAnswer | AccountInsightsAnswer | { readonly kind: 'no adapter' };

/** Streams written at once. */
const width = 16;
/** The longest rest that a network may ask for, milliseconds: its clock may be wrong. */
const longestRestMs = 24 * 3_600_000;
const shortestRestMs = 1_000;
/** Rests after rate limits that name no time ahead. */
const unnamedRest: BackOff = { firstMs: 60_000, maxMs: longestRestMs };
/** Rest of an account whose row is behind its stream, milliseconds. */
const behindRestMs = 1_000;
/** Rest until the consumer has read the event that ends the polling of an account with a dead token, milliseconds. */
const deadRestMs = 60_000;
/** Bytes that are kept of a parked answer. */
const maxParked = 16 * 1024;

/**
 * One poll of an account: the worker asks its network for the due figures, appends the answers to the streams, and
 * gives each job its next due time. If the process dies between the append and the new due time, the next worker asks
 * again for the same due instant, finds its event in the stream and appends nothing.
 * @returns milliseconds in which no worker polls the account again; null: its jobs decide
 */
export const pollAccount = async (
  cycle: PollCycle,
  source: InsightsSource | null,
  lease: Lease,
  stop: AbortSignal,
  tools: PollTools,
): Promise<number | null> => {
  const [loaded, closed] = await Promise.all([tools.store.load(account, cycle.accountId), isClosed(cycle, tools)]);
  // The account's row is behind its stream: an event on its way will end the polling.
  if (loaded.state.status !== 'connected') return behindRestMs;
  if (closed) {
    await tools.jobs.forget(cycle.accountId);
    return null;
  }
  const jobs = await withUse(cycle.jobs, tools);
  const { externalId, username } = loaded.state;
  const asked = { id: cycle.accountId, externalId, username, workspaceId: cycle.workspaceId };
  const answers = source === null ? jobs.map(() => noAdapter) : await ask(cycle, asked, jobs, source, stop, tools);
  stop.throwIfAborted();
  faultPoint('insights:after-fetch');
  // Answers about a client that was erased meanwhile are not recorded.
  if (await isClosed(cycle, tools)) {
    await tools.jobs.forget(cycle.accountId);
    return null;
  }
  const timezone = cycle.workspaceTimezone ?? (await zoneOf(tools.store, cycle.workspaceId));
  const observing: Observing = {
    ...{ store: tools.store, cycle, lease, timezone },
    source: source?.insightsVersion ?? '',
    goneMs: tools.cadence.goneMs,
    maxAheadMs: source?.maxAheadMs ?? null,
  };
  // What a network bills is looked at less often.
  const nightAgesMs = source?.nightAgesMs ?? null;
  const ended = new Ended(cycle, timezone, { ...tools, cadence: { ...tools.cadence, nightAgesMs } });
  for (let at = 0; at < jobs.length; at += width) {
    const some = jobs.slice(at, at + width);
    await Promise.all(some.map((job, place) => ended.take(observing, job, answers[at + place] ?? silent)));
  }
  faultPoint('insights:after-observed');
  await noteProfile(cycle, loaded, answers, tools);
  const [first] = cycle.jobs;
  if (ended.dead !== null && first !== undefined) {
    await lapse(tools.store, cycle.accountId, ended.dead, contextOf(cycle, first), loaded.revision);
  }
  if (!lease.isHeld()) throw new LeaseLost(lease.id);
  await tools.jobs.tried(cycle, ended.tried, ended.parked, ended.rest);
  faultPoint('insights:after-tried');
  return null;
};

const noAdapter = { kind: 'no adapter' } as const;
const silent = { kind: 'unavailable', reason: 'it gave no answer' } as const;
const refused = { kind: 'unavailable', reason: 'the token does not do for it' } as const;

/** Reads the client's stream, because the row in this process's tables may be behind. */
const isClosed = async ({ clientId }: PollCycle, { store }: PollTools): Promise<boolean> => {
  const { state } = await store.load(client, clientId);
  return state.status === 'archived' || (state.status === 'live' && state.erased);
};

const withUse = async (jobs: readonly Job[], { store, jobs: rows, logger }: PollTools): Promise<readonly Job[]> => {
  const known: Job[] = [];
  for (const job of jobs) {
    if (job.kind === 'account' || job.use !== null) {
      known.push(job);
      continue;
    }
    try {
      const { use, hasVideo } = await shownOf(store, job.id);
      await rows.learn(job.id, use, hasVideo);
      known.push({ ...job, use, hasVideo });
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      // Asks as for a feed post, since most posts are one; figures that the network then does not know stay absent.
      logger.error({ err: error, targetId: job.id }, 'how a post went out could not be read');
      known.push({ ...job, use: 'feed' });
    }
  }
  return known;
};

const subjectOf = (job: Job): InsightsSubject => ({
  targetId: job.id,
  externalId: job.externalId ?? '',
  publishedAt: (job.publishedAt ?? new Date(0)).toISOString(),
  use: job.use ?? 'feed',
  hasVideo: job.hasVideo ?? false,
});

/** One answer for each job, in their order. After a rate limit, or with a dead token, it asks nothing more. */
const ask = async (
  { platform }: PollCycle,
  asked: InsightsAccount,
  jobs: readonly Job[],
  source: InsightsSource,
  stop: AbortSignal,
  tools: PollTools,
): Promise<readonly Answer[]> => {
  const posts = jobs.filter(({ kind }) => kind === 'post');
  /** Keeps the answers that came before the call failed. */
  const call = async <One extends Answer>(
    max: number,
    fetch: (signal: AbortSignal) => AsyncIterable<One> | Iterable<Promise<One>>,
  ): Promise<readonly One[]> => {
    const answers: One[] = [];
    try {
      for await (const one of fetch(AbortSignal.any([stop, AbortSignal.timeout(tools.callLimitMs)]))) {
        if (answers.push(one) >= max) break;
      }
    } catch (error) {
      stop.throwIfAborted();
      tools.logger.error({ err: error, platform }, 'asking a network for figures ended with an error');
    }
    return answers;
  };
  const [ofAccount = silent]: readonly Answer[] =
    posts.length === jobs.length
      ? []
      : await call(1, (signal) => [source.fetchAccountInsights(platform, asked, signal)]);
  const over =
    posts.length < jobs.length && (ofAccount.kind === 'rate_limited' || ofAccount.kind === 'reauth_required');
  const ofPosts: readonly Answer[] =
    posts.length === 0 || over
      ? []
      : await call(posts.length, (signal) => source.fetchPostInsights(platform, asked, posts.map(subjectOf), signal));
  const missing = over ? ofAccount : silent;
  const byPost = new Map(posts.map(({ id }, at) => [id, ofPosts[at] ?? missing]));
  const answers = jobs.map((job) => (job.kind === 'account' ? ofAccount : (byPost.get(job.id) ?? missing)));
  // A token that the network accepted for one post is not dead: a refusal for another post concerns that post alone.
  const alive =
    ofAccount.kind !== 'reauth_required' && answers.some(({ kind }) => kind === 'reported' || kind === 'removed');
  return alive ? answers.map((one) => (one.kind === 'reauth_required' ? refused : one)) : answers;
};

/** The workspace's zone from its stream, for use until its event has reached this process. */
const zoneOf = async (store: DomainStore, workspaceId: string): Promise<string> => {
  const { state } = await store.load(workspace, workspaceId);
  return state.status === 'none' ? 'UTC' : state.timezone;
};

/** The jobs of one poll cycle after their answers. */
class Ended {
  readonly tried: Tried[] = [];
  readonly parked: Parked[] = [];
  rest: AccountRest | null = null;
  /** Why the token is dead; null: it is not. */
  dead: string | null = null;
  readonly #cycle: PollCycle;
  readonly #workspaceTimezone: string;
  readonly #tools: PollTools;

  constructor(cycle: PollCycle, workspaceTimezone: string, tools: PollTools) {
    this.#cycle = cycle;
    this.#workspaceTimezone = workspaceTimezone;
    this.#tools = tools;
  }

  /** Networks name the end of a rest in real time. */
  get #realNow(): number {
    return this.#cycle.now.getTime() - this.#cycle.aheadMs;
  }

  async take(observing: Observing, job: Job, answer: Answer): Promise<void> {
    const { platform } = this.#cycle;
    const { metrics } = this.#tools;
    switch (answer.kind) {
      case 'no adapter':
        this.#next(job, { failed: true });
        return;
      case 'rate_limited':
        metrics?.failed(platform, answer.kind);
        this.#limited(Date.parse(wellFormedInstant(answer.retryAt) ?? ''));
        return;
      case 'reauth_required':
        metrics?.failed(platform, answer.kind);
        this.dead ??= wellFormedText(answer.reason, 500);
        this.#rest(this.#realNow + deadRestMs, false);
        return;
      case 'unavailable':
        metrics?.failed(platform, answer.kind);
        this.#again(job);
        return;
      default:
        await this.#observe(observing, job, answer);
    }
  }

  async #observe(observing: Observing, job: Job, answer: ObservedAnswer): Promise<void> {
    const { platform, now } = this.#cycle;
    const { metrics, logger, cadence } = this.#tools;
    try {
      const seen = await observe(observing, job, answer);
      if (seen.kind === 'nonsense') {
        metrics?.parked(platform);
        this.parked.push({ job, reason: wellFormedText(seen.reason, 500), raw: rawText(seen.raw) });
        this.#next(job, { failed: true });
        return;
      }
      metrics?.fetched(platform);
      if (seen.kind === 'recorded') {
        for (const { field, reason } of seen.odd) {
          metrics?.odd(platform, field);
          logger.debug({ platform, field, reason, id: job.id }, 'a figure that no count can be was left out');
        }
        this.#next(job, { answered: true, seenRevision: seen.revision });
      } else if (seen.kind === 'gone' || seen.kind === 'expired')
        this.tried.push({ ...this.#unanswered(job), dueAt: null, answered: true });
      else {
        const dueAt = new Date(now.getTime() + cadence.goneMs);
        this.tried.push({ ...this.#unanswered(job), dueAt, answered: true, goneAt: seen.goneAt });
      }
    } catch (error) {
      if (isInfrastructureFault(error) || error instanceof LeaseLost) throw error;
      // The account's other answers are still recorded.
      logger.error({ err: error, id: job.id }, 'an answer of a network could not be recorded');
      this.#again(job);
    }
  }

  #unanswered(job: Job): Omit<Tried, 'dueAt'> {
    return { job, answered: false, failed: false, failures: 0, goneAt: null, seenRevision: null };
  }

  #regular(job: Job): number | null {
    const { accountId, now } = this.#cycle;
    const timezone = this.#workspaceTimezone;
    if (job.kind === 'account') return nextNight(now.getTime(), this.#cycle.timezone ?? timezone, accountId);
    const publishedAt = job.publishedAt?.getTime() ?? 0;
    const { use } = job;
    return nextObservation({ publishedAt, use, accountId, timezone }, now.getTime(), this.#tools.cadence);
  }

  #next(job: Job, how: Partial<Tried>): void {
    const at = this.#regular(job);
    this.tried.push({ ...this.#unanswered(job), dueAt: at === null ? null : new Date(at), ...how });
  }

  #again(job: Job): void {
    const { cadence } = this.#tools;
    const failures = job.failures + 1;
    const at = nextTry(failures, this.#cycle.now.getTime(), this.#regular(job), cadence);
    const dueAt = at === null ? null : new Date(at);
    const counted = failures > cadence.retryMs.length ? 0 : failures;
    this.tried.push({ ...this.#unanswered(job), dueAt, failed: true, failures: counted, goneAt: job.goneAt });
  }

  #limited(named: number): void {
    const { limits } = this.#cycle;
    const at = this.#realNow;
    this.#rest(named > at ? named : at + backOff(limits, unnamedRest), true);
  }

  #rest(wanted: number, limited: boolean): void {
    const now = this.#realNow;
    const until = new Date(Math.min(Math.max(wanted, now + shortestRestMs), now + longestRestMs));
    if (this.rest === null || until > this.rest.until) this.rest = { until, limited };
  }
}

/** The first bytes of the answer as text, without half a character at the end. */
const rawText = (raw: Json | null): string =>
  Buffer.from(JSON.stringify(raw))
    .subarray(0, maxParked)
    .toString()
    .replaceAll('\0', '')
    .replace(/\uFFFD+$/, '');

const noteProfile = async (
  cycle: PollCycle,
  loaded: Loaded<AccountState>,
  answers: readonly Answer[],
  { store }: PollTools,
): Promise<void> => {
  for (const [at, job] of cycle.jobs.entries()) {
    const answer = answers[at];
    if (job.kind !== 'account' || answer?.kind !== 'reported' || !('profile' in answer)) continue;
    await recordProfile(store, cycle.accountId, loaded, answer.profile, contextOf(cycle, job));
  }
};

/** The sandbox as a source of figures: it reports on its own posts, by a clock that tests can move ahead. */
import type { Json } from '#contracts/ports/platform.ts';
import type {
  AccountInsightsAnswer,
  InsightsAccount,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import type { Members } from '../shared/members.ts';
import { accountAnswer } from './account-insights.ts';
import { countingOf, dayMs } from './curves.ts';
import { type Fault, type FaultName, faultsOf } from './faults.ts';
import { shownProfile } from './ids.ts';
import type { Shown } from './imitation.ts';
import { imitations } from './imitations.ts';
import type { MeasuredPost, Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';

/** Figures of a post, in its network's own members and shapes. */

/** The figures of a story stop growing after a day. */
export function postAnswer(shown: Shown): Members {
  const { platform, post } = shown;
  const { spreadMs, postInsights } = imitations[platform];
  const ageMs = post.use === 'story' ? Math.min(shown.ageMs, dayMs) : shown.ageMs;
  return postInsights(shown, countingOf(spreadMs, post.externalId, ageMs));
}

type Refusal = Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;

const unavailable = (reason: string): Refusal => ({ kind: 'unavailable', reason });

/** Days are in UTC: an account's figures are those of yesterday and of some days before. */
const dayBefore = (now: Date, days: number): string =>
  new Date(now.getTime() - days * dayMs).toISOString().slice(0, 10);

/** Faults of reading, in the order in which they apply. */
const refusals: Readonly<Partial<Record<FaultName, (fault: Fault) => Refusal>>> = {
  token_death: () => ({ kind: 'reauth_required', reason: 'The access token is no longer valid' }),
  metrics_token_death: () => ({ kind: 'reauth_required', reason: 'The access token is no longer valid' }),
  metrics_rate_limit: ({ durationMs }) => ({
    kind: 'rate_limited',
    retryAt: new Date(Date.now() + (durationMs ?? 2000)).toISOString(),
  }),
  metrics_down: () => unavailable('503 Service Unavailable'),
};

export class SandboxInsights implements InsightsSource {
  readonly insightsVersion = 'sandbox/1';
  readonly minIntervalMs = 0;
  /** No bound, because tests move the network's clock. */
  readonly maxAheadMs = null;
  readonly #network: Network;

  constructor(network: Network) {
    this.#network = network;
  }

  async *fetchPostInsights(
    platform: Platform,
    account: InsightsAccount,
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncIterable<PostInsightsAnswer> {
    signal.throwIfAborted();
    if (posts.length === 0) return;
    let left = posts;
    try {
      const own = faultsOf('', account.username);
      const refused = await this.#refusal(`metrics/${account.id}`, own);
      if (refused !== null) {
        yield* posts.map(() => refused);
        return;
      }
      const targetIds = posts.map(({ targetId }) => targetId);
      const { now, found } = await this.#network.measured(platform, account, targetIds);
      signal.throwIfAborted();
      for (const post of posts) {
        const known = found.find(
          ({ targetId, externalId }) => targetId === post.targetId && externalId === post.externalId,
        );
        yield await this.#answer(platform, post, known, now, own);
        left = left.slice(1);
      }
    } catch (error) {
      if (!(error instanceof NetworkUnavailable)) throw error;
      yield* left.map(() => unavailable(error.message));
    }
  }

  /** The sandbox answers `removed` also for a post that it never had. */
  async #answer(
    platform: Platform,
    post: InsightsSubject,
    known: MeasuredPost | undefined,
    now: Date,
    own: readonly Fault[],
  ): Promise<PostInsightsAnswer> {
    const observedAt = now.toISOString();
    const removed = { kind: 'removed', raw: null, observedAt } as const;
    if (known === undefined || (known.removedAt !== null && known.removedAt <= now)) return removed;
    if (post.use === 'story' && known.ageMs >= dayMs) return removed;
    // A `token_death` in the text concerns publishing alone, not reads of figures.
    const scripted = faultsOf(known.content, null).filter(({ name }) => name !== 'token_death');
    const met = `metrics/${post.targetId}`;
    const refused = await this.#refusal(met, scripted);
    if (refused !== null) return refused;
    const gone = [...own, ...scripted].find(({ name }) => name === 'removed');
    if (gone !== undefined && known.ageMs >= (gone.durationMs ?? 0)) return removed;
    const raw = postAnswer({ platform, post, permalink: known.permalink, ageMs: known.ageMs });
    const nonsense = await this.#strikes(met, [...own, ...scripted], 'metrics_nonsense');
    return { kind: 'reported', raw: nonsense ? spoilt(raw) : raw, observedAt };
  }

  async fetchAccountInsights(
    platform: Platform,
    account: InsightsAccount,
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer> {
    signal.throwIfAborted();
    try {
      const own = faultsOf('', account.username);
      const met = `metrics/${account.id}/account`;
      const refused = await this.#refusal(met, own);
      if (refused !== null) return refused;
      const now = await this.#network.now(account.workspaceId);
      signal.throwIfAborted();
      const { raw, earlier } = accountAnswer(platform, account.externalId, now.getTime());
      const nonsense = await this.#strikes(met, own, 'metrics_nonsense');
      return {
        kind: 'reported',
        raw: nonsense ? spoilt(raw) : raw,
        observedAt: now.toISOString(),
        figuresOf: dayBefore(now, 1),
        ...(account.username === null ? {} : { profile: shownProfile(platform, account.username) }),
        earlier: earlier.map((figures, place) => ({ day: dayBefore(now, place + 2), raw: figures })),
      };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return unavailable(error.message);
      throw error;
    }
  }

  async #strikes(met: string, faults: readonly Fault[], name: FaultName): Promise<Fault | null> {
    const fault = faults.find((one) => one.name === name);
    return fault !== undefined && (await this.#network.fires(met, fault)) ? fault : null;
  }

  async #refusal(met: string, faults: readonly Fault[]): Promise<Refusal | null> {
    for (const [name, answer] of Object.entries(refusals) as [FaultName, (fault: Fault) => Refusal][]) {
      const fault = await this.#strikes(met, faults, name);
      if (fault !== null) return answer(fault);
    }
    return null;
  }
}

/** Replaces every number by an impossible one: negative, too great, or text, in turn. */
function spoilt(raw: Json): Json {
  let met = 0;
  const spoil = (value: Json): Json => {
    if (typeof value === 'number' || (typeof value === 'string' && /^\d+$/.test(value))) {
      met += 1;
      return [-1, 1e308, 'many'][(met - 1) % 3] ?? -1;
    }
    if (Array.isArray(value)) return value.map(spoil);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, spoil(one as Json)]));
  };
  const answer = spoil(raw);
  // Without a number to spoil the answer becomes a list, which is invalid too.
  return met === 0 ? [answer] : answer;
}

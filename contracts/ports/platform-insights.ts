/** How the house asks a social network for figures. Every platform adapter is a source; the sandbox reports on its own posts. */
import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, PostFigures } from '#schemas/insights.ts';
import type { MediaUse } from '#schemas/media.ts';
import type { Json, PublishRequest } from './platform.ts';

/** A post the network is asked about. */
export interface InsightsSubject {
  readonly targetId: string;
  readonly externalId: string;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** How its media went out; `feed` for text too. */
  readonly use: MediaUse;
  readonly hasVideo: boolean;
}

export interface Reported<Field extends string> {
  readonly kind: 'reported';
  readonly raw: Json;
  readonly observedAt: string;
  /**
   * Figures the adapter asked for. One of these that the network left out is null, a figure nobody asked for is absent.
   * Not given: the adapter asked for what `raw` holds.
   */
  readonly fields?: readonly Field[];
}

/**
 * What a network reported of a post. `raw` holds the network's own members under its own names (each network's
 * `insights.ts` in `services/domain/platforms/` reads them); the adapter adds nothing. `observedAt`: ISO 8601, by the
 * network's clock.
 */
export type PostInsightsAnswer =
  | Reported<keyof PostFigures>
  /** The network answers and no longer has the post. `raw`: the last thing it reports of it, null where that is nothing. */
  | { readonly kind: 'removed'; readonly raw: Json | null; readonly observedAt: string }
  /** `retryAt`: ISO 8601, by our own clock. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string }
  | { readonly kind: 'reauth_required'; readonly reason: string }
  /** The network did not answer, or refused for now: ask again later. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** One day of the network's own calendar that is over there. */
export interface ReportedDay {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** In the shape of the answer, for this day, without figures of the present moment such as followers. */
  readonly raw: Json;
}

/** Days to ask for where a network reports more than one: some networks revise a day, and a poll may miss a night. */
export const accountDays = 7;

/**
 * `figuresOf`: `YYYY-MM-DD`, the day of the network's calendar that the daily figures are of; null: the network has no
 * daily figures. `earlier`: days before that one, in any order, each as the network reports it now.
 */
export type AccountInsightsAnswer =
  | (Reported<keyof AccountFigures | 'demographics'> & {
      readonly figuresOf: string | null;
      readonly earlier?: readonly ReportedDay[];
    })
  | Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;

export interface InsightsSource {
  /** Adapter and version of what it asks for: `sandbox/1`. */
  readonly insightsVersion: string;
  /** Milliseconds after a request for figures within which a person's wish for fresh ones starts no other request. */
  readonly minIntervalMs: number;
  /** Milliseconds that the network's clock may be ahead of ours; a later `observedAt` is nonsense. Null: no bound. */
  readonly maxAheadMs: number | null;
  /**
   * One answer for each post, in the order of `posts`, each as soon as it arrives, so that a call that fails later costs
   * none of them.
   * @param signal aborts the calls
   */
  fetchPostInsights(
    platform: Platform,
    account: PublishRequest['account'],
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncIterable<PostInsightsAnswer>;
  /**
   * Figures of the account for a day that is over at the network, for the days before it (`accountDays` in all) where the
   * network has them, and its followers and demographics now.
   */
  fetchAccountInsights(
    platform: Platform,
    account: PublishRequest['account'],
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer>;
}

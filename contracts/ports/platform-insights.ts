/** A source of figures. Every platform adapter is one; the sandbox reports on its own posts. */
import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, PostFigures } from '#schemas/insights.ts';
import type { MediaUse } from '#schemas/media.ts';
import type { Json, PublishRequest } from './platform.ts';

/** A post whose figures are requested. */
export interface InsightsSubject {
  readonly targetId: string;
  readonly externalId: string;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** How its media was published; `feed` for text too. */
  readonly use: MediaUse;
  readonly hasVideo: boolean;
}

export interface Reported<Field extends string> {
  readonly kind: 'reported';
  readonly raw: Json;
  readonly observedAt: string;
  /**
   * Figures that the adapter asked for. One of these that the network left out is null; any other figure is absent.
   * Without this list the adapter asked for exactly the figures in `raw`.
   */
  readonly fields?: readonly Field[];
}

/**
 * A network's answer about a post. `raw` holds the network's own members under its own names (each network's
 * `insights.ts` in `services/domain/platforms/` reads them); the adapter adds nothing. `observedAt`: ISO 8601, by the
 * network's clock.
 */
export type PostInsightsAnswer =
  | Reported<keyof PostFigures>
  /**
   * The network answers and no longer has the post. `raw`: its last answer about the post, null where there is none.
   */
  | { readonly kind: 'removed'; readonly raw: Json | null; readonly observedAt: string }
  /** `retryAt`: ISO 8601, by our own clock. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string }
  | { readonly kind: 'reauth_required'; readonly reason: string }
  /** The network did not answer, or refuses for now: ask again later. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A past day of the network's own calendar. */
export interface ReportedDay {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** In the shape of the answer, for this day only: without present figures such as followers. */
  readonly raw: Json;
}

/** Days to request where a network reports several: some networks revise a day, and a poll may miss a night. */
export const accountDays = 7;

/** How the network shows the account now; null: it shows none. */
export interface ReportedProfile {
  readonly username: string | null;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
}

/**
 * `figuresOf`: `YYYY-MM-DD`, the day of the daily figures in the network's calendar; null: the network has no daily
 * figures. `earlier`: days before that one, in any order, each as the network reports it now.
 * `profile`: absent where the network does not tell it with the figures.
 */
export type AccountInsightsAnswer =
  | (Reported<keyof AccountFigures | 'demographics'> & {
      readonly figuresOf: string | null;
      readonly earlier?: readonly ReportedDay[];
      readonly profile?: ReportedProfile;
    })
  | Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;

/** The account that is asked about. */
export type InsightsAccount = PublishRequest['account'] & {
  /** Whose reads they are, for a network that bills them. */
  readonly workspaceId: string;
};

export interface InsightsSource {
  /** The adapter and the version of its requests: `sandbox/1`. */
  readonly insightsVersion: string;
  /** Milliseconds after an answer in which a person's refresh causes no further request. */
  readonly minIntervalMs: number;
  /**
   * Ages of a post, milliseconds, rising, of each of which only the next midnight has an observation: for a network that
   * bills reads. What a post gains in between falls on the day of the observation. Absent: every midnight.
   */
  readonly nightAgesMs?: readonly number[];
  /** Milliseconds that the network's clock may be ahead of ours; a later `observedAt` is refused. Null: no bound. */
  readonly maxAheadMs: number | null;
  /**
   * One answer for each post, in the order of `posts`, each as soon as it arrives, so that a later failure loses none
   * of them.
   * @param signal aborts the calls
   */
  fetchPostInsights(
    platform: Platform,
    account: InsightsAccount,
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncIterable<PostInsightsAnswer>;
  /**
   * Figures of the account for the newest past day of the network, for the days before it (`accountDays` in all) where
   * the network has them, and its followers and demographics now.
   */
  fetchAccountInsights(
    platform: Platform,
    account: InsightsAccount,
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer>;
}

/** A social network as it is asked for figures. Part of every platform adapter; the sandbox tells those of its own posts. */
import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, PostFigures } from '#schemas/insights.ts';
import type { MediaUse } from '#schemas/media.ts';
import type { Json, PublishRequest } from './platform.ts';

/** A post as its network is asked about it. */
export interface MetricsSubject {
  readonly targetId: string;
  readonly externalId: string;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** How its media went out; `feed` for text too. */
  readonly use: MediaUse;
  readonly hasVideo: boolean;
}

export interface Told<Field extends string> {
  readonly kind: 'told';
  readonly raw: Json;
  readonly observedAt: string;
  /** Figures it was asked for: what it does not tell of these is null, what it was not asked for is absent. Not given: what it told. */
  readonly fields?: readonly Field[];
}

/**
 * What a network told. `raw` holds its own members by its own names (see `services/domain/platforms/metrics/`), nothing
 * added: a member that it does not tell is not there. `observedAt`: ISO 8601, by its own clock.
 */
export type MetricsAnswer =
  | Told<keyof PostFigures>
  /** The post is gone from the network, which can still be asked. `raw`: the last it tells of it, null if nothing. */
  | { readonly kind: 'removed'; readonly raw: Json | null; readonly observedAt: string }
  /** `retryAt`: ISO 8601, by our own clock. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string }
  | { readonly kind: 'reauth_required'; readonly reason: string }
  /** Away, or not willing now: ask again later. */
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A day of the network's own that is over for it. */
export interface ToldDay {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** In the shape of the answer, of this day, without what is told of now. */
  readonly raw: Json;
}

/** Days that an account is asked for where its network tells more than one: some networks revise them, and nights are missed. */
export const accountDays = 7;

/**
 * `figuresOf`: `YYYY-MM-DD`, the network's own day that its daily figures are of; null: it tells none. `earlier`: days before
 * that one, in any order, each as the network tells it now.
 */
export type AccountMetricsAnswer =
  | (Told<keyof AccountFigures | 'demographics'> & {
      readonly figuresOf: string | null;
      readonly earlier?: readonly ToldDay[];
    })
  | Exclude<MetricsAnswer, { kind: 'told' | 'removed' }>;

export interface MetricsSource {
  /** Adapter and version of what it asks for: `sandbox/1`. */
  readonly metricsVersion: string;
  /** Milliseconds: what was asked less than this ago is not asked again because a person wants it fresh. */
  readonly minIntervalMs: number;
  /** Milliseconds that its clock may be ahead of ours; what it tells of a later time is nonsense. Null: as far as it likes. */
  readonly maxAheadMs: number | null;
  /**
   * One answer for each post, in their order, each as soon as it is had: what was told before a call failed is kept.
   * @param signal aborts the calls
   */
  fetchPostMetrics(
    platform: Platform,
    account: PublishRequest['account'],
    posts: readonly MetricsSubject[],
    signal: AbortSignal,
  ): AsyncIterable<MetricsAnswer>;
  /**
   * Figures of the account on a day that is over for the network, and of the `accountDays` before where it has them; its
   * followers now, its demographics.
   */
  fetchAccountMetrics(
    platform: Platform,
    account: PublishRequest['account'],
    signal: AbortSignal,
  ): Promise<AccountMetricsAnswer>;
}

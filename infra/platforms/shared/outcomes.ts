import type { PublishOutcome } from '#contracts/ports/platform.ts';
import { lastInstant } from './members.ts';

/** What became of a boundary call that published nothing that its answer names. */
export type NotPublished = Exclude<PublishOutcome, { readonly kind: 'published' | 'accepted' }>;

/** The same of a call before the boundary. */
export type Failed = Exclude<NotPublished, { readonly kind: 'nothing_sent' }>;

/** What would only wait before the boundary has left nothing behind it. */
export const nothingSent = (failed: Failed): NotPublished =>
  failed.kind === 'deferred' ? { ...failed, kind: 'nothing_sent' } : failed;

/**
 * The instant that a network names for the next try, as it names it: the publisher alone judges one that is past or far.
 * @param at milliseconds since the epoch
 */
export const namedInstant = (at: number): string => new Date(Math.min(Math.max(at, 0), lastInstant)).toISOString();

const dayMs = 86_400_000;

/** When the next day of UTC begins, milliseconds since the epoch. */
export const nextDay = (now: number): number => (Math.floor(now / dayMs) + 1) * dayMs;

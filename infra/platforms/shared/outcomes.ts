import type { PublishOutcome } from '#contracts/ports/platform.ts';

/** What became of a boundary call that published nothing that its answer names. */
export type NotPublished = Exclude<PublishOutcome, { readonly kind: 'published' }>;

/** The same of a call before the boundary. */
export type Failed = Exclude<NotPublished, { readonly kind: 'nothing_sent' }>;

/** What would only wait before the boundary has left nothing behind it. */
export const behindBoundary = (failed: Failed): NotPublished =>
  failed.kind === 'deferred' ? { ...failed, kind: 'nothing_sent' } : failed;

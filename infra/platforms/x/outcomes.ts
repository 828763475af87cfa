import { behindBoundary, type Failed, type NotPublished, namedInstant } from '../shared/outcomes.ts';
import type { XResult } from './api.ts';
import { failureOf, meaningOf, notReached, reauth, unknown } from './errors.ts';
import { exhausted } from './limits.ts';

export type NotOk = Exclude<XResult, { readonly kind: 'ok' }>;

/** X refills an account's calls every 15 minutes. */
const quarterMs = 900_000;
const unpaidMs = 900_000;
/** Until a refresh is tried again. */
const tokenMs = 30_000;

const limitedUntil = (until: number, failure: Failed['failure']): Failed => ({
  kind: 'rate_limited',
  retryAt: namedInstant(until),
  failure,
});

/** What a call means that can make nothing visible: all that may pass is tried again. */
export const beforeCreate = (result: NotOk, now: number): Failed => {
  switch (result.kind) {
    case 'lapsed':
      return { kind: 'failed', failure: reauth(result.reason) };
    case 'resting':
      return limitedUntil(result.rest.until, result.rest.failure);
    case 'unavailable':
    case 'unsent':
    case 'silent':
      return { kind: 'deferred', failure: notReached(result.reason) };
    case 'refused': {
      const { category, scope } = meaningOf(result);
      const failure = failureOf(result);
      // The operator must pay; the account and its post are all right, so the post waits.
      if (scope === 'app' && category === 'permission') return limitedUntil(now + unpaidMs, failure);
      if (category === 'rate_limited') {
        return limitedUntil(exhausted(result.headers, now, now + quarterMs * (scope === 'app' ? 4 : 1)).named, failure);
      }
      return category === 'platform_down' ? { kind: 'deferred', failure } : { kind: 'failed', failure };
    }
  }
};

/** What the create call means: a server that fails may have made the post first; one that refuses has made nothing. */
export const ofCreate = (result: NotOk, now: number): NotPublished => {
  if (result.kind === 'silent') return { kind: 'unknown', failure: unknown(result.reason) };
  // The token had ended: X made nothing, so the post need not be looked for.
  if (result.kind === 'unavailable') return limitedUntil(now + tokenMs, notReached(result.reason));
  if (result.kind === 'refused' && result.status >= 500) {
    return { kind: 'unknown', failure: unknown(`${result.status} ${failureOf(result).platformMessage ?? ''}`.trim()) };
  }
  return behindBoundary(beforeCreate(result, now));
};

import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { type Bucket, windowsOf as windowsIn } from '../kit/limits.ts';
import type { BlueskyOptions } from './options.ts';
import type { XrpcResult } from './xrpc.ts';

/**
 * What the headers of a write say of the account's limit (docs.bsky.app, "Rate Limits"). The server counts points, of
 * which a record that is put costs two, and one that is created three (`@atproto/pds` 0.5.35); it tells of the bucket with
 * the least left. Buckets of the calling address are no limit of
 * an account; they have other lengths.
 */

const bucket: Bucket = {
  ...{ policy: 'ratelimit-policy', remaining: 'ratelimit-remaining', reset: 'ratelimit-reset', resetIs: 'epoch' },
  ...{ names: { 3600: '1 hour', 86400: '24 hours' }, perPost: 2 },
};

export const windowsOf = (headers: Readonly<Record<string, string>>): readonly ObservedWindow[] =>
  windowsIn([bucket], headers, 0);

export const tellLimits = (
  { onLimits }: Pick<BlueskyOptions, 'onLimits'>,
  { accountId }: NetworkCall['subject'],
  result: XrpcResult,
): void => {
  const windows = 'headers' in result ? windowsOf(result.headers) : [];
  if (windows.length > 0) onLimits?.(accountId, windows);
};

import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { BlueskyOptions } from './options.ts';
import type { XrpcResult } from './xrpc.ts';

/**
 * What the headers of a write say of the account's limit (docs.bsky.app, "Rate Limits"). The server counts points, of
 * which a record that is put costs two, and one that is created three (`@atproto/pds` 0.5.35); it tells of the bucket with
 * the least left. Buckets of the calling address are no limit of
 * an account; they have other lengths.
 */

const pointsPerRecord = 2;
const names: Readonly<Record<number, string>> = { 3600: '1 hour', 86400: '24 hours' };

const wholeOf = (text: string | undefined): number => (/^\d{1,12}$/.test(text ?? '') ? Number(text) : Number.NaN);

export const windowsOf = (headers: Readonly<Record<string, string>>): readonly ObservedWindow[] => {
  const [, points, length] = /^(\d{1,12});w=(\d{1,9})$/.exec(headers['ratelimit-policy'] ?? '') ?? [];
  const [most, seconds] = [wholeOf(points), wholeOf(length)];
  const left = wholeOf(headers['ratelimit-remaining']);
  const reset = wholeOf(headers['ratelimit-reset']);
  const name = names[seconds];
  if (name === undefined || [most, left, reset].some(Number.isNaN)) return [];
  const limit = Math.floor(most / pointsPerRecord);
  const remaining = Math.floor(Math.min(left, most) / pointsPerRecord);
  return [{ name, seconds, limit, used: limit - remaining, resetsAt: new Date(reset * 1_000).toISOString() }];
};

export const tellLimits = (
  { onLimits }: Pick<BlueskyOptions, 'onLimits'>,
  { accountId }: NetworkCall['subject'],
  result: XrpcResult,
): void => {
  const windows = 'headers' in result ? windowsOf(result.headers) : [];
  if (windows.length > 0) onLimits?.(accountId, windows);
};

import type { Json } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';

/** Text from a network, before it becomes an event: well-formed, without NUL, no longer than its schema allows. */

export const cleanText = (text: string, most: number): string => {
  const whole = text.toWellFormed().replaceAll('\0', '');
  if (whole.length <= most) return whole;
  const last = whole.charCodeAt(most - 1);
  // A pair is not cut in half.
  return whole.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
};

const orNull = (text: string | null, most: number): string | null => (text === null ? null : cleanText(text, most));

export const cleanFailure = (failure: Failure): Failure => ({
  category: failure.category,
  code: cleanText(failure.code, 100) || 'unknown',
  message: cleanText(failure.message, 2000),
  platformCode: orNull(failure.platformCode, 200),
  platformMessage: orNull(failure.platformMessage, 2000),
  retryable: failure.retryable,
  actor: failure.actor,
  mediaId: failure.mediaId,
});

/** ISO 8601 with milliseconds; `fallback` where the network's own is none. */
export const cleanInstant = (text: string, fallback: string): string => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) || at.getUTCFullYear() > 9999 || at.getUTCFullYear() < 0
    ? fallback
    : at.toISOString();
};

/** Whether a reply can name it. */
export const isId = (text: string): boolean => text !== '' && cleanText(text, 500) === text;

export const cleanPresent = (
  said: { readonly externalId: string; readonly permalink: string | null; readonly publishedAt: string },
  now: string,
) => ({
  externalId: cleanText(said.externalId, 500) || 'unknown',
  permalink: orNull(said.permalink, 2000),
  publishedAt: cleanInstant(said.publishedAt, now),
});

export const cleanJson = (value: Json): Json => {
  if (typeof value === 'string') return cleanText(value, value.length);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cleanJson);
  return Object.fromEntries(
    Object.entries(value as { readonly [key: string]: Json }).map(([key, member]) => [
      cleanText(key, key.length),
      cleanJson(member),
    ]),
  );
};

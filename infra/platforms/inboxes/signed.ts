import { createHmac, timingSafeEqual } from 'node:crypto';
import type { InboundVerdict } from '#contracts/ports/network-inbox.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { instantOf, integerIn, textIn } from '../shared/members.ts';

/** What the forms of signed calls have in common. */

const hmacOf = (secret: string, pieces: readonly (string | Buffer)[]): Buffer => {
  const hmac = createHmac('sha256', secret);
  for (const piece of pieces) hmac.update(piece);
  return hmac.digest();
};

export const hexHmac = (secret: string, ...pieces: readonly (string | Buffer)[]): string =>
  hmacOf(secret, pieces).toString('hex');

/** Whether the app's secret signed the pieces, in a time that does not tell how much of the signature is right. */
export const isSigned = (given: Buffer, secret: string, ...pieces: readonly (string | Buffer)[]): boolean => {
  const expected = hmacOf(secret, pieces);
  return given.length === expected.length && timingSafeEqual(given, expected);
};

export const refused = (reason: string): InboundVerdict => ({ kind: 'refused', reason });

/** An id of a person or an account, or a URN. A short number stands in JSON as one; null: it is no id. */
export const personIn = (value: Json | undefined, name: string): string | null => {
  const text = textIn(value, name) ?? integerIn(value, name)?.toString() ?? '';
  return /^[\w:.~-]{1,200}$/.test(text) ? text : null;
};

/** ISO 8601 of the end of a second that the network names. Null: it names none. */
export const endOfSecond = (seconds: number | null): string | null =>
  seconds === null ? null : instantOf(seconds * 1_000 + 999);

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secrets } from '#runtime/identity/secrets.ts';

/**
 * The token of an invite is derived from its id and the key version its event names: nothing stored holds one, and a
 * replay shows the same. 16 bytes of id and 32 of HMAC, base64url.
 */

const macOf = (secrets: Secrets, inviteId: string, keyVersion: string): Buffer =>
  createHmac('sha256', secrets.subKey('secrets', keyVersion)).update(`invite\n${inviteId}`, 'utf8').digest();

export const inviteToken = (secrets: Secrets, inviteId: string, keyVersion: string): string =>
  Buffer.concat([Buffer.from(inviteId.replaceAll('-', ''), 'hex'), macOf(secrets, inviteId, keyVersion)]).toString(
    'base64url',
  );

const length = 48;

/**
 * The id that a token names; null when the text has not the form of a token. `isGenuine` says whether the token is
 * genuine.
 */
export const claimedInviteId = (token: string): string | null => {
  if (!/^[A-Za-z0-9_-]{64}$/.test(token)) return null;
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== length) return null;
  const hex = bytes.toString('hex', 0, 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

/** Compares in constant time. False also when the key version is gone. */
export const isGenuine = (secrets: Secrets, token: string, inviteId: string, keyVersion: string): boolean => {
  if (!secrets.has(keyVersion)) return false;
  const given = Buffer.from(token, 'base64url').subarray(16);
  const expected = macOf(secrets, inviteId, keyVersion);
  return given.length === expected.length && timingSafeEqual(given, expected);
};

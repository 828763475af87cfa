import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secrets } from './secrets.ts';

/**
 * The token of a link is derived from the ids that it names and the key version of its event: nothing stored holds one,
 * and a replay shows the same. 16 bytes of each id and 32 of HMAC, base64url.
 */

/** What a link is for: the token of one is none of another. */
export type LinkKind = 'invite' | 'approval' | 'team' | 'team_mail';

const idBytes = 16;
const macBytes = 32;

const macOf = (secrets: Secrets, kind: LinkKind, [first, second]: readonly string[], keyVersion: string): Buffer => {
  const mac = createHmac('sha256', secrets.subKey('secrets', keyVersion));
  if (kind === 'invite') return mac.update(`invite\n${first}`, 'utf8').digest();
  if (kind === 'team') return mac.update(`team\n${first}`, 'utf8').digest();
  if (kind === 'team_mail') return mac.update(`team mail\n${first}`, 'utf8').digest();
  return mac.update(`approval\n${first}\n${second}`, 'utf8').digest();
};

export const linkToken = (secrets: Secrets, kind: LinkKind, ids: readonly string[], keyVersion: string): string => {
  const named = ids.map((id) => Buffer.from(id.replaceAll('-', ''), 'hex'));
  return Buffer.concat([...named, macOf(secrets, kind, ids, keyVersion)]).toString('base64url');
};

/**
 * The ids that a token names; null when the text has not the form of a token of so many. `isGenuine` says whether the
 * token is genuine.
 */
export const claimedIds = (token: string, count: number): readonly string[] | null => {
  const length = count * idBytes + macBytes;
  if (token.length !== Math.ceil((length * 4) / 3) || !/^[A-Za-z0-9_-]*$/.test(token)) return null;
  const bytes = Buffer.from(token, 'base64url');
  // Two spellings of the last character may give the same bytes: only one of them is the token.
  if (bytes.length !== length || bytes.toString('base64url') !== token) return null;
  return Array.from({ length: count }, (_, at) => {
    const hex = bytes.toString('hex', at * idBytes, (at + 1) * idBytes);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  });
};

/** Compares in constant time. False also when the key version is gone. */
export const isGenuine = (
  secrets: Secrets,
  kind: LinkKind,
  token: string,
  ids: readonly string[],
  keyVersion: string,
): boolean => {
  if (!secrets.has(keyVersion)) return false;
  const given = Buffer.from(token, 'base64url').subarray(ids.length * idBytes);
  const expected = macOf(secrets, kind, ids, keyVersion);
  return given.length === expected.length && timingSafeEqual(given, expected);
};

import type { Credential } from '#contracts/ports/credentials.ts';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { type Members, textIn } from '../shared/members.ts';
import type { NotOk } from './errors.ts';
import { refreshTokens } from './oauth.ts';
import type { Kit } from './tables.ts';

/** The token of an account, refreshed through the store: one process asks the network, and the others get what it got. */

export interface OpenSession {
  readonly kind: 'open';
  readonly token: string;
  /** Of the credential. */
  readonly version: number;
  /** All that the consent gave: a network may keep more beside the token. */
  readonly secret: Members;
}

export type SessionAnswer = OpenSession | Extract<NotOk, { readonly kind: 'lapsed' | 'unavailable' }>;

/** A token with less left is refreshed before it is used. */
const spareMs = 300_000;

const missing = { kind: 'lapsed', reason: 'there are no credentials of the account' } as const;

const openOf = ({ secret, version }: Credential): SessionAnswer => {
  const token = textIn(secret, 'accessToken');
  return token === null ? missing : { kind: 'open', token, version, secret };
};

/** A token that works for some minutes. */
export const sessionOf = async (
  kit: Kit,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<SessionAnswer> => {
  const kept = await kit.credentials.read(subject.accountId);
  if (kept === null) return missing;
  // A token of a page has no end of its own.
  if (kept.secret.accessUntil === null) return openOf(kept);
  const left = Date.parse(textIn(kept.secret, 'accessUntil') ?? '') - kit.clock();
  if (left > spareMs) return openOf(kept);
  return refreshedSession(kit, subject, kept.version, signal);
};

/** @param seen version of the credential that the network refused, or that is about to end */
export const refreshedSession = async (
  kit: Kit,
  subject: NetworkCall['subject'],
  seen: number,
  signal: AbortSignal,
): Promise<SessionAnswer> => {
  const { http, app, clock, tables } = kit;
  const tools = { http, app, clock, oauth: tables.oauth };
  const ask = (former: Credential, until: AbortSignal) => refreshTokens(tools, former, subject, until);
  const result = await kit.credentials.refresh(subject.accountId, seen, ask, signal);
  if (result.kind === 'current') return openOf(result.credential);
  if (result.kind === 'missing') return missing;
  if (result.kind === 'unavailable') return result;
  return { kind: 'lapsed', reason: result.reason };
};

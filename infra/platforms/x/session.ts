import type { Credential } from '#contracts/ports/credentials.ts';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { textIn } from '../shared/members.ts';
import { refreshTokens } from './oauth.ts';
import type { XOptions } from './options.ts';

export interface Open {
  readonly kind: 'open';
  readonly token: string;
  /** Of the credential. */
  readonly version: number;
}

export type Session =
  | Open
  | { readonly kind: 'lapsed'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A token with less left is refreshed before it is used. */
const spareMs = 300_000;

const missing = { kind: 'lapsed', reason: 'there are no credentials of the account' } as const;

const openOf = ({ secret, version }: Credential): Session => {
  const token = textIn(secret, 'accessToken');
  return token === null ? missing : { kind: 'open', token, version };
};

/** A token that works for some minutes. */
export const sessionOf = async (
  options: XOptions,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Session> => {
  const kept = await options.credentials.read(subject.accountId);
  if (kept === null) return missing;
  const left = Date.parse(textIn(kept.secret, 'accessUntil') ?? '') - options.clock();
  return left > spareMs ? openOf(kept) : refreshed(options, subject, kept.version, signal);
};

/** @param seen version of the credential that X refused, or that is about to end */
export const refreshed = async (
  options: XOptions,
  subject: NetworkCall['subject'],
  seen: number,
  signal: AbortSignal,
): Promise<Session> => {
  const { http, app, clock, api } = options;
  const oauth = { http, app, clock, ...(api === undefined ? {} : { api }) };
  const ask = (former: Credential, until: AbortSignal) => refreshTokens(oauth, former, subject, until);
  const result = await options.credentials.refresh(subject.accountId, seen, ask, signal);
  if (result.kind === 'current') return openOf(result.credential);
  if (result.kind === 'missing') return missing;
  if (result.kind === 'unavailable') return result;
  return { kind: 'lapsed', reason: result.reason };
};

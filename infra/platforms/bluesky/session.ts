import type { Credential, CredentialStore, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { instantOf, type Members, textIn } from '../shared/members.ts';
import type { BoundToken } from './oauth/dpop.ts';
import { consentOf, refreshConsent, revokeConsent, type TokenOptions } from './oauth/tokens.ts';
import { xrpc } from './xrpc.ts';

/**
 * Sessions. Those of an app password have an access token of two hours, and a refresh token that changes with each use
 * (com.atproto.server.refreshSession); the password itself is not kept. Those of a consent are in `oauth/`.
 */

interface PasswordSecret {
  /** Origin of the personal data server. */
  readonly service: string;
  readonly did: string;
  readonly accessJwt: string;
  readonly refreshJwt: string;
  /** ISO 8601, until which the access token works. */
  readonly accessUntil: string;
}

/** What a call needs, whichever way the account was connected. */
export interface SessionSecret {
  /** Origin of the personal data server. */
  readonly service: string;
  readonly did: string;
  readonly token: string | BoundToken;
  /** ISO 8601, until which the token works. */
  readonly accessUntil: string;
}

export type Session =
  | { readonly kind: 'open'; readonly secret: SessionSecret; readonly version: number }
  | { readonly kind: 'lapsed'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A token is used until so many milliseconds before its end: a post with a video takes its time. */
const spareMs = 600_000;

const passwordOf = ({ secret }: Credential): PasswordSecret => ({
  service: textIn(secret, 'service') ?? '',
  did: textIn(secret, 'did') ?? '',
  accessJwt: textIn(secret, 'accessJwt') ?? '',
  refreshJwt: textIn(secret, 'refreshJwt') ?? '',
  accessUntil: textIn(secret, 'accessUntil') ?? '',
});

const secretOf = (credential: Credential): SessionSecret => {
  const consent = consentOf(credential);
  if (consent !== null) {
    const { service, did, accessUntil, accessToken, dpopKey } = consent;
    return { service, did, accessUntil, token: { token: accessToken, key: dpopKey } };
  }
  const { service, did, accessUntil, accessJwt } = passwordOf(credential);
  return { service, did, accessUntil, token: accessJwt };
};

/** `exp` of a token, ISO 8601; null: it has none that is an instant from 1970 to 9999. */
export const endOf = (jwt: string): string | null => {
  try {
    const { exp } = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as { exp?: unknown };
    return typeof exp === 'number' ? instantOf(exp * 1_000) : null;
  } catch {
    return null;
  }
};

/** Characters of a token; those of the reference server have some 500. A server may be anybody's. */
const maxToken = 16_384;

/** What a session's answer gives us to keep; null: the answer lacks it. */
export const credentialOf = (service: string, data: Members): NewCredential | null => {
  const { accessJwt, refreshJwt, did } = data;
  if (typeof accessJwt !== 'string' || typeof refreshJwt !== 'string' || typeof did !== 'string') return null;
  if (Math.max(accessJwt.length, refreshJwt.length) > maxToken) return null;
  const accessUntil = endOf(accessJwt);
  if (accessUntil === null) return null;
  return { secret: { service, did, accessJwt, refreshJwt, accessUntil }, expiresAt: endOf(refreshJwt) };
};

/** Errors after which only a new consent helps. */
const lapses = new Set([
  ...['ExpiredToken', 'InvalidToken', 'AccountTakedown', 'AccountDeactivated', 'AccountNotFound'],
  'AuthenticationRequired',
]);

/** Spends the refresh token, once. */
export const refreshSession = async (
  options: TokenOptions,
  former: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const consent = consentOf(former);
  if (consent !== null) return refreshConsent(options, consent, subject, signal);
  const { http } = options;
  const { service, refreshJwt } = passwordOf(former);
  const nsid = 'com.atproto.server.refreshSession';
  const result = await xrpc(http, { service, nsid, input: 'none', token: refreshJwt, subject, isSecret: true }, signal);
  if (result.kind === 'refused') {
    const words = `${result.error}: ${result.message}`;
    return { kind: lapses.has(result.error) ? 'refused' : 'unavailable', reason: words };
  }
  // What was not answered may have been carried out: then the former token is spent.
  if (result.kind === 'silent') return { kind: 'unavailable', reason: result.reason, isSilent: true };
  if (result.kind !== 'ok') return { kind: 'unavailable', reason: result.reason };
  const credential = credentialOf(service, result.data);
  return credential === null
    ? { kind: 'unavailable', reason: 'the answer has no tokens', isSilent: true }
    : { kind: 'refreshed', credential };
};

/**
 * Ends the session (com.atproto.server.deleteSession). A token that the server no longer takes opens nothing; any other
 * refusal may leave the session open.
 */
export const endSession = async (
  options: Pick<TokenOptions, 'http' | 'keys'>,
  credential: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<'revoked' | 'unavailable'> => {
  const consent = consentOf(credential);
  if (consent !== null) return revokeConsent(options, consent, subject, signal);
  const { http } = options;
  const { service, refreshJwt } = passwordOf(credential);
  const nsid = 'com.atproto.server.deleteSession';
  const result = await xrpc(http, { service, nsid, input: 'none', token: refreshJwt, subject, isSecret: true }, signal);
  if (result.kind === 'ok') return 'revoked';
  return result.kind === 'refused' && lapses.has(result.error) ? 'revoked' : 'unavailable';
};

export class BlueskySessions {
  readonly #options: TokenOptions;
  readonly #credentials: CredentialStore;

  constructor(options: TokenOptions, credentials: CredentialStore) {
    this.#options = options;
    this.#credentials = credentials;
  }

  /** A session whose access token works for a while. */
  async of(subject: NetworkCall['subject'], signal: AbortSignal): Promise<Session> {
    const kept = await this.#credentials.read(subject.accountId);
    if (kept === null) return { kind: 'lapsed', reason: 'there are no credentials of the account' };
    const secret = secretOf(kept);
    if (Date.parse(secret.accessUntil) - this.#options.clock() > spareMs)
      return { kind: 'open', secret, version: kept.version };
    return this.refreshed(subject, kept.version, signal);
  }

  /** @param seen the version that a server refused, or that is about to end */
  async refreshed(subject: NetworkCall['subject'], seen: number, signal: AbortSignal): Promise<Session> {
    const ask = (former: Credential, until: AbortSignal) => refreshSession(this.#options, former, subject, until);
    const result = await this.#credentials.refresh(subject.accountId, seen, ask, signal);
    if (result.kind === 'current') {
      return { kind: 'open', secret: secretOf(result.credential), version: result.credential.version };
    }
    if (result.kind === 'missing') return { kind: 'lapsed', reason: 'there are no credentials of the account' };
    return result.kind === 'lapsed' ? { kind: 'lapsed', reason: result.reason } : result;
  }
}

import type { Credential, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { integerIn, type Members, membersOf, parsed, textIn } from '../../shared/members.ts';
import { type ProofKeys, proofOfClient } from './client.ts';
import { type DpopKey, sendBound } from './dpop.ts';

/**
 * Tokens of a consent: an access token of an hour at most, and a refresh token that changes with each use. Both are bound
 * to a key of their own.
 */

export interface ConsentSecret {
  /** Origin of the personal data server. */
  readonly service: string;
  readonly did: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  /** ISO 8601, until which the access token works. */
  readonly accessUntil: string;
  readonly dpopKey: DpopKey;
  readonly issuer: string;
  readonly tokenEndpoint: string;
  /** Null: the server takes nothing back. */
  readonly revocationEndpoint: string | null;
  readonly clientId: string;
  /** Id of the key by which the client proved itself; null: it has none. */
  readonly kid: string | null;
}

export interface TokenOptions {
  readonly http: NetworkHttp;
  readonly keys: ProofKeys;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

/** Null: the credential is no consent's. */
export const consentOf = ({ secret }: Pick<Credential, 'secret'>): ConsentSecret | null => {
  const dpopKey = membersOf(secret.dpopKey ?? null);
  if (dpopKey === null) return null;
  return {
    ...{ service: textIn(secret, 'service') ?? '', did: textIn(secret, 'did') ?? '' },
    ...{ accessToken: textIn(secret, 'accessToken') ?? '', refreshToken: textIn(secret, 'refreshToken') ?? '' },
    ...{ accessUntil: textIn(secret, 'accessUntil') ?? '', dpopKey, issuer: textIn(secret, 'issuer') ?? '' },
    tokenEndpoint: textIn(secret, 'tokenEndpoint') ?? '',
    revocationEndpoint: textIn(secret, 'revocationEndpoint'),
    ...{ clientId: textIn(secret, 'clientId') ?? '', kid: textIn(secret, 'kid') },
  };
};

const dayMs = 86_400_000;
/** A refresh token that nobody uses ends after three months (`@atproto/oauth-provider`, REFRESH_LIFETIME_EXTENDED). */
const unusedMs = 90 * dayMs;

/**
 * A client without a key has two weeks, which no refresh makes longer: nothing is watched ahead there, or the watch would
 * refresh it without an end.
 */
export const credentialOfConsent = (secret: ConsentSecret, now: number): NewCredential => ({
  secret: { ...secret } as { readonly [name: string]: Json },
  expiresAt: secret.kid === null ? null : new Date(now + unusedMs).toISOString(),
});

/** Characters of a token. A server may be anybody's. */
const maxToken = 16_384;

const form = (fields: Readonly<Record<string, string>>): Buffer => Buffer.from(new URLSearchParams(fields).toString());

const callTo = (
  url: string,
  fields: Readonly<Record<string, string>>,
  subject: NetworkCall['subject'],
): NetworkCall => ({
  method: 'POST',
  url,
  headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
  body: [form(fields)],
  subject,
  isSecret: true,
});

/** What the answer gives; null: it lacks a part, or is about somebody else. */
const renewed = (former: ConsentSecret, data: Members | null, now: number): ConsentSecret | null => {
  const [accessToken, refreshToken] = [textIn(data, 'access_token'), textIn(data, 'refresh_token')];
  const seconds = integerIn(data, 'expires_in');
  if (accessToken === null || accessToken.length > maxToken || (refreshToken?.length ?? 0) > maxToken) return null;
  if (textIn(data, 'sub') !== former.did) return null;
  const lasts = Math.min(Math.max(seconds ?? 300, 1), 3_600) * 1_000;
  const accessUntil = new Date(now + lasts).toISOString();
  return { ...former, accessToken, accessUntil, ...(refreshToken === null ? {} : { refreshToken }) };
};

/** Spends the refresh token, once. */
export const refreshConsent = async (
  { http, keys, clock }: TokenOptions,
  former: ConsentSecret,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const client = await proofOfClient(former, keys);
  if (client === null)
    return { kind: 'unavailable', reason: 'the key of our client for this session is not configured' };
  const fields = { grant_type: 'refresh_token', refresh_token: former.refreshToken, ...client };
  const call = callTo(former.tokenEndpoint, fields, subject);
  const result = await sendBound(http, call, { token: null, key: former.dpopKey }, signal);
  if (result.kind === 'silent') return { kind: 'unavailable', reason: result.reason, isSilent: true };
  if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
  const data = membersOf(parsed(result.body));
  if (result.status === 200) {
    const secret = renewed(former, data, clock());
    return secret === null
      ? { kind: 'unavailable', reason: 'the answer has no tokens of this account', isSilent: true }
      : { kind: 'refreshed', credential: credentialOfConsent(secret, clock()) };
  }
  const error = textIn(data, 'error') ?? String(result.status);
  const reason = `${error}: ${textIn(data, 'error_description') ?? ''}`;
  // Every other refusal may be our own mistake, which costs no owner a new consent.
  return { kind: result.status < 500 && error === 'invalid_grant' ? 'refused' : 'unavailable', reason };
};

/**
 * Takes both tokens back (RFC 7009): a server answers 200 also for a token that it does not know. A refusal is about our
 * client or the call, and leaves the session open.
 */
export const revokeConsent = async (
  { http, keys }: Pick<TokenOptions, 'http' | 'keys'>,
  secret: ConsentSecret,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<'revoked' | 'unavailable'> => {
  if (secret.revocationEndpoint === null) return 'revoked';
  const client = await proofOfClient(secret, keys);
  // Nobody can prove any more that the session is ours: it ends by itself.
  if (client === null) return 'revoked';
  const fields = { token: secret.refreshToken, token_type_hint: 'refresh_token', ...client };
  const call = callTo(secret.revocationEndpoint, fields, subject);
  const result = await sendBound(http, call, { token: null, key: secret.dpopKey }, signal);
  if (result.kind !== 'answered') return 'unavailable';
  return result.status === 200 || result.status === 204 ? 'revoked' : 'unavailable';
};

import { createHash, randomBytes } from 'node:crypto';
import type { Credential, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { nobody } from '../shared/findings.ts';
import { type Members, numberIn, parsed, textIn } from '../shared/members.ts';
import { defaultApi, type XApp } from './options.ts';

/**
 * OAuth 2 of X: authorization code with PKCE, an access token of two hours, and a refresh token that each use replaces
 * (docs.x.com, "OAuth 2.0 Authorization Code Flow with PKCE").
 */

export interface OAuthOptions {
  readonly http: NetworkHttp;
  readonly app: XApp;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Default `https://api.x.com`. */
  readonly api?: string;
  /** Default `https://x.com/i/oauth2/authorize`. */
  readonly authorize?: string;
}

export const scopes = ['tweet.read', 'tweet.write', 'users.read', 'media.write', 'offline.access'] as const;

/** RFC 7636. The verifier is secret until the code is exchanged. */
export const newVerifier = (): string => randomBytes(32).toString('base64url');

export const authorizeUrl = (
  { app, authorize = 'https://x.com/i/oauth2/authorize' }: Pick<OAuthOptions, 'app' | 'authorize'>,
  asked: {
    readonly redirectUri: string;
    readonly state: string;
    readonly verifier: string;
    /** Default: all that we need. */
    readonly scopes?: readonly string[];
  },
): string => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: app.clientId,
    redirect_uri: asked.redirectUri,
    scope: (asked.scopes ?? scopes).join(' '),
    state: asked.state,
    code_challenge: createHash('sha256').update(asked.verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  // X reads a plus sign in `scope` as a plus sign.
  return `${authorize}?${query.toString().replaceAll('+', '%20')}`;
};

/** X documents no end of a refresh token; about six months without a use are observed, so it is used before. */
const refreshTokenMs = 150 * 86_400_000;

const post = async (
  { http, app, api = defaultApi }: OAuthOptions,
  path: string,
  form: Readonly<Record<string, string>>,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<NetworkResult> => {
  const { clientId, clientSecret } = app;
  // RFC 6749, 2.3.1: both are form-encoded before they are joined.
  const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret ?? '')}`;
  const basic = `Basic ${Buffer.from(pair).toString('base64')}`;
  const members = clientSecret === null ? { ...form, client_id: clientId } : form;
  return http.send(
    {
      method: 'POST',
      url: `${api}/2/oauth2/${path}`,
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        ...(clientSecret === null ? {} : { authorization: basic }),
      },
      body: [Buffer.from(new URLSearchParams(members).toString())],
      subject,
      isSecret: true,
    },
    signal,
  );
};

/** Seconds of an access token, as X documents them. Where its answer says nothing sound, X itself refuses what has ended. */
const usualSeconds = 7_200;
const maxSeconds = 86_400;

const secondsOf = (body: Members | null): number => {
  const said = numberIn(body, 'expires_in') ?? 0;
  return said > 0 ? Math.min(said, maxSeconds) : usualSeconds;
};

interface Tokens {
  readonly credential: NewCredential;
  readonly scopes: readonly string[];
}

/** Null: the answer has no token. */
const tokensOf = (body: Members | null, now: number): Tokens | null => {
  const accessToken = textIn(body, 'access_token');
  if (accessToken === null || accessToken === '') return null;
  const refreshToken = textIn(body, 'refresh_token');
  const accessUntil = new Date(now + secondsOf(body) * 1_000).toISOString();
  const granted = textIn(body, 'scope');
  return {
    scopes: granted === null ? [] : granted.split(' ').filter((one) => one !== ''),
    credential: {
      // A refresh token that X leaves out keeps its former value in the store.
      secret: { accessToken, accessUntil, ...(refreshToken === null ? {} : { refreshToken }) },
      expiresAt: refreshToken === null ? accessUntil : new Date(now + refreshTokenMs).toISOString(),
    },
  };
};

export type Exchanged =
  | ({ readonly kind: 'exchanged' } & Tokens)
  /** `error`: X's own word. */
  | { readonly kind: 'refused'; readonly error: string; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

const reasonOf = (body: Members | null, status: number): string =>
  (textIn(body, 'error_description') ?? textIn(body, 'error') ?? String(status)).slice(0, 500);

/** A code works once, for about 30 seconds. */
export const exchangeCode = async (
  options: OAuthOptions,
  asked: { readonly code: string; readonly verifier: string; readonly redirectUri: string },
  signal: AbortSignal,
): Promise<Exchanged> => {
  const { code, verifier, redirectUri } = asked;
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier };
  const result = await post(options, 'token', form, nobody, signal);
  if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
  const body = parsed(result.body);
  if (result.status !== 200) {
    const reason = reasonOf(body, result.status);
    if (result.status === 429 || result.status >= 500) return { kind: 'unavailable', reason };
    return { kind: 'refused', error: textIn(body, 'error') ?? String(result.status), reason };
  }
  const tokens = tokensOf(body, options.clock());
  return tokens === null
    ? { kind: 'unavailable', reason: 'the answer has no token' }
    : { kind: 'exchanged', ...tokens };
};

/**
 * `invalid_request` may be a mistake of ours as well as the end of the token: its description decides. What is about our
 * app (`invalid_client`, `unauthorized_client`) does not end the account.
 */
const isEnd = (body: Members | null): boolean => {
  const error = textIn(body, 'error');
  const says = (textIn(body, 'error_description') ?? '').toLowerCase();
  return error === 'invalid_grant' || (error === 'invalid_request' && says.includes('token was invalid'));
};

/** Spends the refresh token, once. */
export const refreshTokens = async (
  options: OAuthOptions,
  former: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const refreshToken = textIn(former.secret, 'refreshToken');
  if (refreshToken === null) return { kind: 'refused', reason: 'the consent gave no refresh token' };
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const result = await post(options, 'token', form, subject, signal);
  if (result.kind === 'unsent') return { kind: 'unavailable', reason: result.reason };
  if (result.kind === 'silent') return { kind: 'unavailable', reason: result.reason, isSilent: true };
  const body = parsed(result.body);
  if (result.status === 200) {
    const tokens = tokensOf(body, options.clock());
    if (tokens === null) return { kind: 'unavailable', reason: 'the answer has no token', isSilent: true };
    const { secret, expiresAt } = tokens.credential;
    // Without a new refresh token the former one stays, and so does its end.
    const isKept = textIn(secret, 'refreshToken') === null;
    return { kind: 'refreshed', credential: { secret, expiresAt: isKept ? former.expiresAt : expiresAt } };
  }
  const reason = reasonOf(body, result.status);
  if (result.status === 400 && isEnd(body)) return { kind: 'refused', reason };
  // After an error of the server the pair may be a new one.
  return { kind: 'unavailable', reason, ...(result.status >= 500 ? { isSilent: true as const } : {}) };
};

export type Revoked =
  | { readonly kind: 'revoked' }
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Only an operator can mend it. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Ends the consent at X. A token that no longer works counts as revoked. */
export const revokeTokens = async (
  options: OAuthOptions,
  { secret }: Pick<Credential, 'secret'>,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Revoked> => {
  for (const member of ['refreshToken', 'accessToken']) {
    const token = textIn(secret, member);
    if (token === null) continue;
    const result = await post(options, 'revoke', { token }, subject, signal);
    if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
    const body = parsed(result.body);
    if (result.status === 200 || (result.status === 400 && isEnd(body))) continue;
    const reason = reasonOf(body, result.status);
    return { kind: result.status === 429 || result.status >= 500 ? 'unavailable' : 'refused', reason };
  }
  return { kind: 'revoked' };
};

export interface XProfile {
  /** Never changes; the username may. */
  readonly externalId: string;
  readonly username: string;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
  /** `Basic`, `Premium`, `PremiumPlus`, `None`; null: X does not say. */
  readonly subscription: string | null;
}

export type LookedUp =
  | { readonly kind: 'found'; readonly profile: XProfile }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

export const userFields = 'username,name,profile_image_url,public_metrics,verified_type,subscription_type';

/** Whose consent it is. */
export const lookUpAccount = async (
  { http, api = defaultApi }: Pick<OAuthOptions, 'http' | 'api'>,
  accessToken: string,
  signal: AbortSignal,
): Promise<LookedUp> => {
  const url = `${api}/2/users/me?${new URLSearchParams({ 'user.fields': userFields }).toString()}`;
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` };
  const result = await http.send({ method: 'GET', url, headers, body: [], subject: nobody }, signal);
  if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
  const body = parsed(result.body);
  const data = body?.data;
  const externalId = textIn(data, 'id');
  const username = textIn(data, 'username');
  if (result.status !== 200 || externalId === null || username === null) {
    const reason = (textIn(body, 'detail') ?? String(result.status)).slice(0, 500);
    const isLater = result.status === 429 || result.status >= 500 || result.status === 200;
    return isLater ? { kind: 'unavailable', reason } : { kind: 'refused', status: result.status, reason };
  }
  return {
    kind: 'found',
    profile: {
      ...{ externalId, username, displayName: textIn(data, 'name') || null },
      ...{ avatarUrl: textIn(data, 'profile_image_url') || null, subscription: textIn(data, 'subscription_type') },
    },
  };
};

import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Credential, NewCredential, Refresh } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { nobody } from '../shared/findings.ts';
import { listIn, type Members, membersOf, numberIn, parsed, textIn, withoutSecrets } from '../shared/members.ts';
import type { NetworkApp } from './app.ts';
import { addressOf } from './app.ts';

/** OAuth 2 as a table: the authorize address, the exchange of a code, refresh and revocation (RFC 6749, 7009, 7636). */

export interface TokenStep {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `{api}/oauth/token`: below an address of the app. */
  readonly url: string;
  /**
   * `{code}`, `{redirect}`, `{verifier}`, `{token}`, `{login}`, `{refresh}`, `{id}`, `{secret}` are filled in; a step that
   * wants what is not there is left out. `{login}`: the token of the login where accounts have tokens of their own;
   * `{account}`: the account, as the network names it, which may stand in the address too. `{proof}`: of the token of the login.
   */
  readonly params: Readonly<Record<string, string>>;
  /** `query`: parameters in the address; `form`: in the body. */
  readonly as: 'query' | 'form';
  /** The call carries no proof of the client. */
  readonly isBare?: true;
}

export interface AskedScope {
  /** Why it is asked for, for operators: the doctor and OPERATORS.md. */
  readonly why: string;
  /** What is missing without it, for the guest: `posting for you`. Absent: the account works without it. */
  readonly needed?: string;
}

export interface RefreshStep extends TokenStep {
  /** `rotates`: a new refresh token each time. `keeps`: it stays. `extends`: the token itself is renewed. */
  readonly kind: 'rotates' | 'keeps' | 'extends';
  /** Milliseconds that a token must be old: the network refuses to renew a younger one. */
  readonly minAgeMs: number;
}

/** All that it names must fit. `says`: in `error: description`. `codes`: numbers by which the network names the error. */
export interface SaidError {
  readonly status: number;
  readonly says?: RegExp;
  readonly codes?: readonly number[];
}

export interface OAuthTable {
  /** The page of consent. Default `{authorize}`, the setting. */
  readonly authorize?: string;
  readonly authorizeParams: Readonly<Record<string, string>>;
  readonly scopes: Readonly<Record<string, AskedScope>>;
  /** Words of the page of consent beside those of RFC 6749: the owner declined, and the app may not ask for a permission. */
  readonly pageErrors?: { readonly declined: readonly string[]; readonly scopes: readonly string[] };
  readonly separator: ' ' | ',';
  /** How the client proves itself: RFC 6749 `basic`, or parameters of these names. */
  readonly client: 'basic' | { readonly id: string; readonly secret: string };
  readonly pkce: 'none' | 'base64url' | 'hex';
  /** Code to token, and where the network has them, short to long. Each answer completes the ones before it. */
  readonly exchange: readonly [TokenStep, ...TokenStep[]];
  /** Null: the token does not end, or only a new consent helps. Of accounts with a token of their own it renews the login's. */
  readonly refresh: RefreshStep | null;
  /**
   * Gives an account its own token anew, by that of the login: a page of Meta. Harmless: the former one stays. Absent: only
   * a new consent does.
   */
  readonly mint?: TokenStep;
  /** Seconds, where the answer names no end. `refresh` null: no end. `most`: what an access token has at most. */
  readonly seconds: { readonly access: number | null; readonly most: number; readonly refresh: number | null };
  /** In their order; empty: the network has nothing to take back. */
  readonly revoke: readonly TokenStep[];
  /** `person`: a revocation ends every account of that login. */
  readonly grant: 'account' | 'person';
  /** What says of a refresh that the grant is over, in `error: description`. Anything else may pass. */
  readonly ends: readonly SaidError[];
  /** What says of a revocation that the network takes no such token back: the owner alone can. Default: nothing does. */
  readonly revokesNothing?: readonly SaidError[];
  /** Milliseconds before its end at which a credential that nobody used is refreshed. */
  readonly refreshWindowMs: number;
}

export interface OAuthTools {
  readonly http: NetworkHttp;
  readonly oauth: OAuthTable;
  readonly app: NetworkApp;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

/** The table with the permissions that this app asks for. */
export const askedBy = (oauth: OAuthTable, { scopes }: Pick<NetworkApp, 'scopes'>): OAuthTable =>
  scopes === undefined
    ? oauth
    : {
        ...oauth,
        scopes: Object.fromEntries(
          scopes.map((one) => [one, oauth.scopes[one] ?? { why: 'since the settings name it' }]),
        ),
      };

/** RFC 7636. The verifier is secret until the code is exchanged. */
export const newVerifier = (): string => randomBytes(32).toString('base64url');

export const authorizeUrl = (
  { oauth, app }: Pick<OAuthTools, 'oauth' | 'app'>,
  asked: {
    readonly redirectUri: string;
    readonly state: string;
    readonly verifier: string;
    /** Default: all that we need. */
    readonly scopes?: readonly string[];
  },
): string => {
  const { client, pkce, scopes, separator } = oauth;
  const challenge = pkce === 'none' ? '' : createHash('sha256').update(asked.verifier).digest(pkce);
  const query = new URLSearchParams({
    response_type: 'code',
    [client === 'basic' ? 'client_id' : client.id]: app.id,
    redirect_uri: asked.redirectUri,
    scope: (asked.scopes ?? Object.keys(scopes)).join(separator),
    state: asked.state,
    ...(pkce === 'none' ? {} : { code_challenge: challenge, code_challenge_method: 'S256' }),
    ...oauth.authorizeParams,
  });
  // X reads a plus sign in `scope` as a plus sign.
  return `${addressOf(app, oauth.authorize ?? '{authorize}')}?${query.toString().replaceAll('+', '%20')}`;
};

type Values = Readonly<Record<string, string | null>>;

/** "Require App Secret" of Meta: whoever has stolen a token lacks it. Null: there is no token, or the app has no secret. */
export const proofOf = (token: string | null | undefined, secret: string | null): string | null =>
  secret === null || token === null || token === undefined
    ? null
    : createHmac('sha256', secret).update(token).digest('hex');

/** Null: the step wants a value that is not there. */
const filled = (params: TokenStep['params'], values: Values): Record<string, string> | null => {
  const all: Record<string, string> = {};
  for (const [name, text] of Object.entries(params)) {
    const key = /^\{(\w+)\}$/.exec(text)?.[1];
    const value = key === undefined ? text : values[key];
    if (value === null || value === undefined) return null;
    all[name] = value;
  }
  return all;
};

/** Null: the step does not apply. */
const send = async (
  { http, oauth, app }: OAuthTools,
  { method, url, params, as, isBare }: TokenStep,
  values: Values,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<NetworkResult | null> => {
  const appProof = proofOf(values.login, app.secret);
  const own = filled(params, { ...values, id: app.id, secret: app.secret, proof: appProof });
  if (own === null) return null;
  const { client } = oauth;
  const isBasic = client === 'basic' && app.secret !== null && isBare !== true;
  // RFC 6749, 2.3.1: both are form-encoded before they are joined.
  const pair = `${encodeURIComponent(app.id)}:${encodeURIComponent(app.secret ?? '')}`;
  const names = client === 'basic' ? { id: 'client_id', secret: 'client_secret' } : client;
  const proof =
    isBare === true || isBasic
      ? {}
      : {
          [names.id]: app.id,
          ...(client === 'basic' || app.secret === null ? {} : { [names.secret]: app.secret }),
        };
  const text = new URLSearchParams({ ...own, ...proof }).toString();
  const to = addressOf(app, url);
  return http.send(
    {
      ...{ method, url: as === 'query' ? `${to}?${text}` : to },
      headers: {
        accept: 'application/json',
        ...(as === 'form' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        ...(isBasic ? { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } : {}),
      },
      body: as === 'form' ? [Buffer.from(text)] : [],
      ...{ subject, isSecret: true, shownPath: new URL(to).pathname },
    },
    signal,
  );
};

/** Networks write the error as a word with a description, as an object with a message, or, as Meta of a code, in other members. */
const errorOf = (body: Members | null, status: number): { readonly error: string; readonly reason: string } => {
  const inner = membersOf(body?.error);
  const names = [textIn(body, 'error'), textIn(inner, 'type'), textIn(body, 'error_type'), textIn(body, 'code')];
  const error = names.find((one) => one !== null) ?? String(status);
  const words = [textIn(body, 'error_description'), textIn(inner, 'message')];
  const said = [...words, textIn(body, 'error_message'), textIn(body, 'message')].find((one) => one !== null) ?? error;
  return { error, reason: said.slice(0, 500) };
};

const isAmong = (known: readonly SaidError[], status: number, body: Members | null): boolean => {
  const { error, reason } = errorOf(body, status);
  const code = numberIn(body?.error, 'code') ?? Number.NaN;
  return known.some(
    ({ status: wanted, says, codes }) =>
      wanted === status &&
      (says === undefined || says.test(`${error}: ${reason}`)) &&
      (codes === undefined || codes.includes(code)),
  );
};

/** Meta lists the members of a login's token under `data`. */
const answerOf = (body: Buffer): Members | null => {
  const read = parsed(body);
  return textIn(read, 'access_token') === null ? (listIn(read, 'data')[0] ?? read) : read;
};

/**
 * Owners and operators read what a network says of a refusal, and RFC 6749 lets it repeat what it was sent: it is taken out.
 */
const saidOf = (
  { app }: OAuthTools,
  { code, verifier, token, refresh, login }: Values,
  { status, body }: Extract<NetworkResult, { readonly kind: 'answered' }>,
): Members | null =>
  answerOf(status === 200 ? body : withoutSecrets(body, [code, verifier, token, refresh, login, app.secret]));

const isoIn = (now: number, seconds: number): string => new Date(now + seconds * 1_000).toISOString();

const positive = (value: number | null): number | null => (value !== null && value > 0 ? value : null);

/** No grant lasts longer than ten years. */
const longestSeconds = 315_360_000;

const secondsOfRefresh = (body: Members): number | null => {
  const said = positive(numberIn(body, 'refresh_token_expires_in') ?? numberIn(body, 'refresh_expires_in'));
  return said === null ? null : Math.min(said, longestSeconds);
};

const scopesIn = (body: Members): readonly string[] => {
  const said: Json = body.scope ?? body.permissions ?? '';
  const listed: readonly Json[] = Array.isArray(said) ? said : String(said).split(/[ ,]/);
  return listed.flatMap((one) => (typeof one === 'string' && one !== '' ? [one] : []));
};

export interface Tokens {
  readonly credential: NewCredential;
  /** Empty where the answer names none. */
  readonly scopes: readonly string[];
  /** The answers of all steps, the last first: networks say in them whose login it is. */
  readonly said: Members;
}

/** RFC 6749, A.12: what a header takes. Anything else would make each call one that nobody can send. */
const tokenForm = /^[\x20-\x7e]{1,8192}$/;
const isToken = (text: string | null): text is string => text !== null && tokenForm.test(text);

/** Null: the answer has no token. */
const tokensOf = ({ oauth, clock }: OAuthTools, body: Members): Tokens | null => {
  const accessToken = textIn(body, 'access_token');
  if (!isToken(accessToken)) return null;
  const now = clock();
  const refreshToken = oauth.refresh?.kind === 'extends' ? null : textIn(body, 'refresh_token');
  const { access, most, refresh } = oauth.seconds;
  const said = positive(numberIn(body, 'expires_in'));
  const seconds = said === null ? access : Math.min(said, most);
  const accessUntil = seconds === null ? null : isoIn(now, seconds);
  const lasts = secondsOfRefresh(body) ?? refresh;
  return {
    ...{ said: body, scopes: scopesIn(body) },
    credential: {
      secret: {
        ...{ accessToken, accessUntil },
        ...(oauth.refresh?.kind === 'extends' ? { accessFrom: new Date(now).toISOString() } : {}),
        // A refresh token that the network leaves out keeps its former value in the store.
        ...(refreshToken === null ? {} : { refreshToken }),
      },
      expiresAt: refreshToken === null ? accessUntil : lasts === null ? null : isoIn(now, lasts),
    },
  };
};

export type Exchanged =
  | ({ readonly kind: 'exchanged' } & Tokens)
  /** `error`: the network's own word. */
  | { readonly kind: 'refused'; readonly error: string; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** A code works once, and for a short time. */
export const exchangeCode = async (
  tools: OAuthTools,
  asked: { readonly code: string; readonly verifier: string; readonly redirectUri: string },
  signal: AbortSignal,
): Promise<Exchanged> => {
  const { code, verifier, redirectUri: redirect } = asked;
  let said: Members = {};
  for (const step of tools.oauth.exchange) {
    const values = { code, verifier, redirect, token: textIn(said, 'access_token') };
    const result = await send(tools, step, values, nobody, signal);
    if (result === null) return { kind: 'unavailable', reason: 'the answer has no token' };
    if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
    const body = saidOf(tools, values, result);
    if (result.status !== 200) {
      const error = errorOf(body, result.status);
      if (result.status === 429 || result.status >= 500) return { kind: 'unavailable', reason: error.reason };
      return { kind: 'refused', ...error };
    }
    // The token of the step before, which works for an hour, is not the one that lasts.
    if (!isToken(textIn(body, 'access_token'))) return { kind: 'unavailable', reason: 'the answer has no token' };
    said = { ...said, ...body };
  }
  const tokens = tokensOf(tools, said);
  return tokens === null
    ? { kind: 'unavailable', reason: 'the answer has no token' }
    : { kind: 'exchanged', ...tokens };
};

/** When the grant ends that a refresh goes on with. */
const endOf = (
  { oauth, clock }: OAuthTools,
  kind: RefreshStep['kind'],
  { credential, said }: Tokens,
  former: Credential,
): string | null => {
  const isNew = kind === 'extends' || textIn(credential.secret, 'refreshToken') !== null;
  if (isNew) return credential.expiresAt;
  const named = secondsOfRefresh(said);
  if (named !== null) return isoIn(clock(), named);
  // Without a new refresh token the former one stays, and so does its end, unless each use begins its time anew.
  return kind === 'keeps' && oauth.seconds.refresh !== null ? isoIn(clock(), oauth.seconds.refresh) : former.expiresAt;
};

const tooYoung = ({ secret }: Credential, minAgeMs: number, now: number): boolean =>
  now - Date.parse(textIn(secret, 'accessFrom') ?? '') < minAgeMs;

/** The login of an account with a token of its own; null: the account has that of the login. */
const loginOf = ({ secret, ...credential }: Credential): Credential | null => {
  const { loginToken, loginUntil, loginFrom, ...kept } = secret;
  if (typeof loginToken !== 'string') return null;
  const from = loginFrom === undefined ? {} : { accessFrom: loginFrom };
  return { ...credential, secret: { ...kept, ...from, accessToken: loginToken, accessUntil: loginUntil ?? null } };
};

/** What is kept of a login beside the token of an account. */
export const besideOwn = ({ accessToken, accessUntil, accessFrom, ...kept }: Members): Members => ({
  ...kept,
  ...(accessFrom === undefined ? {} : { loginFrom: accessFrom }),
  ...{ loginToken: accessToken ?? null, loginUntil: accessUntil ?? null },
});

/** A token with less left is renewed before it is used. */
const spareMs = 300_000;

/** The account's own token anew, by that of the login, which is renewed first where it ends. */
const mintToken = async (
  tools: OAuthTools,
  former: Credential,
  login: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const { oauth, clock } = tools;
  const { mint } = oauth;
  const account = textIn(former.secret, 'account');
  if (mint === undefined || account === null) return { kind: 'refused', reason: 'the network renews no token' };
  const until = Date.parse(textIn(login.secret, 'accessUntil') ?? '');
  const renewed =
    oauth.refresh !== null && until - clock() < spareMs ? await refreshLogin(tools, login, subject, signal) : null;
  if (renewed !== null && renewed.kind !== 'refreshed') return renewed;
  const fresh = renewed === null ? {} : besideOwn(renewed.credential.secret);
  /** A login that was renewed is kept, whatever became of the rest. */
  const without = (answer: Refresh): Refresh =>
    renewed === null ? answer : { kind: 'refreshed', credential: { secret: fresh, expiresAt: former.expiresAt } };
  const token = textIn(renewed?.credential.secret ?? login.secret, 'accessToken');
  const values = { login: token, token, account };
  const step = { ...mint, url: mint.url.replaceAll('{account}', encodeURIComponent(account)) };
  const result = await send(tools, step, values, subject, signal);
  if (result === null) return without({ kind: 'refused', reason: 'the consent gave no token of the login' });
  if (result.kind !== 'answered') return without({ kind: 'unavailable', reason: result.reason });
  const body = saidOf(tools, values, result);
  const { reason } = errorOf(body, result.status);
  if (result.status !== 200) {
    return without({ kind: isAmong(oauth.ends, result.status, body) ? 'refused' : 'unavailable', reason });
  }
  const accessToken = textIn(body, 'access_token');
  if (!isToken(accessToken)) return without({ kind: 'unavailable', reason: 'the answer has no token' });
  const seconds = positive(numberIn(body, 'expires_in'));
  const ends = seconds === null ? null : isoIn(clock(), Math.min(seconds, oauth.seconds.most));
  return { kind: 'refreshed', credential: { secret: { ...fresh, accessToken, accessUntil: ends }, expiresAt: ends } };
};

/** Asks the network once for a token that lasts longer, or where an account has its own, for another one. */
export const refreshTokens = async (
  tools: OAuthTools,
  former: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const login = loginOf(former);
  return login === null
    ? refreshLogin(tools, former, subject, signal)
    : mintToken(tools, former, login, subject, signal);
};

const refreshLogin = async (
  tools: OAuthTools,
  former: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Refresh> => {
  const step = tools.oauth.refresh;
  if (step === null) return { kind: 'refused', reason: 'the network renews no token' };
  // Only an answer that was lost with a new refresh token in it ends the grant.
  const isSilent = step.kind === 'rotates' ? { isSilent: true as const } : {};
  const { secret } = former;
  const values = { refresh: textIn(secret, 'refreshToken'), token: textIn(secret, 'accessToken') };
  if (tooYoung(former, step.minAgeMs, tools.clock())) return { kind: 'unavailable', reason: 'the token is too new' };
  const result = await send(tools, step, values, subject, signal);
  if (result === null) return { kind: 'refused', reason: 'the consent gave no refresh token' };
  if (result.kind === 'unsent') return { kind: 'unavailable', reason: result.reason };
  if (result.kind === 'silent') return { kind: 'unavailable', reason: result.reason, ...isSilent };
  const body = saidOf(tools, values, result);
  if (result.status === 200) {
    const tokens = tokensOf(tools, body ?? {});
    if (tokens === null) return { kind: 'unavailable', reason: 'the answer has no token', ...isSilent };
    const expiresAt = endOf(tools, step.kind, tokens, former);
    return { kind: 'refreshed', credential: { secret: tokens.credential.secret, expiresAt } };
  }
  const { reason } = errorOf(body, result.status);
  if (isAmong(tools.oauth.ends, result.status, body)) return { kind: 'refused', reason };
  // After an error of the server the pair may be a new one.
  return { kind: 'unavailable', reason, ...(result.status >= 500 ? isSilent : {}) };
};

export type Revoked =
  | { readonly kind: 'revoked' }
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Only an operator can mend it. */
  | { readonly kind: 'refused'; readonly reason: string };

/** Ends the grant at the network. A token that no longer works counts as revoked. */
export const revokeTokens = async (
  tools: OAuthTools,
  { secret }: Pick<Credential, 'secret'>,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<Revoked> => {
  const token = textIn(secret, 'accessToken');
  const login = textIn(secret, 'loginToken') ?? token;
  const values = { token, login, refresh: textIn(secret, 'refreshToken') };
  for (const step of tools.oauth.revoke) {
    const result = await send(tools, step, values, subject, signal);
    if (result === null) continue;
    if (result.kind !== 'answered') return { kind: 'unavailable', reason: result.reason };
    const { status } = result;
    const body = answerOf(result.body);
    const { ends, revokesNothing = [] } = tools.oauth;
    if ((status >= 200 && status < 300) || isAmong([...ends, ...revokesNothing], status, body)) continue;
    const { reason } = errorOf(body, status);
    return { kind: status === 429 || status >= 500 ? 'unavailable' : 'refused', reason };
  }
  return { kind: 'revoked' };
};

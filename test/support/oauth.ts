/** Apps and persons for tests of the authorization server: a browser with a cookie jar, and a console of one sentence. */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { type ConsentResult, sealConsent } from '#services/auth/consent.ts';
import { type OAuthOptions, oauthPart } from '#services/auth/oauth/part.ts';
import { startWorld, type World, type WorldOptions } from './http.ts';

export const many = { perMinute: 1_000_000, burst: 1_000_000 };
/** Registrations of apps. */
export const unbounded = { address: many, network: many, all: many };
export const callback = 'http://127.0.0.1:7777/callback';

/** A world whose server is the authorization server as well. */
export const oauthWorld = (options: Partial<OAuthOptions> = {}, world: WorldOptions = {}): Promise<World> =>
  startWorld({
    ...world,
    parts: [oauthPart({ egress: null, registrations: unbounded, ...options }), ...(world.parts ?? [])],
  });

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly location: string;
}

const answered = async (response: Response): Promise<Answer> => {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
  const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
  return {
    status: response.status,
    headers: response.headers,
    text,
    json,
    location: response.headers.get('location') ?? '',
  };
};

export const get = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  answered(await fetch(url, { redirect: 'manual', headers }));

export const postForm = async (
  url: string,
  form: Readonly<Record<string, string>> | URLSearchParams,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  answered(await fetch(url, { method: 'POST', redirect: 'manual', body: new URLSearchParams(form), headers }));

export const sendJson = async (
  method: string,
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  answered(
    await fetch(url, {
      method,
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }),
  );

interface Cookie {
  readonly value: string;
  readonly path: string;
}

/** Keeps cookies by name and path, as a browser does, and follows no redirect by itself. */
export class Browser {
  readonly #cookies = new Map<string, Cookie>();
  /** Every cookie that was ever set. */
  readonly received: string[] = [];

  async open(url: string): Promise<Answer> {
    const { pathname } = new URL(url);
    const sent = [...this.#cookies]
      .filter(([, { path }]) => pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`))
      .map(([key, { value }]) => `${key.slice(0, key.indexOf(' '))}=${value}`);
    const answer = await get(url, sent.length === 0 ? {} : { cookie: sent.join('; ') });
    for (const line of answer.headers.getSetCookie()) this.#keep(line);
    return answer;
  }

  #keep(line: string): void {
    this.received.push(line);
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const name = pair.slice(0, pair.indexOf('='));
    const path = attributes.find((one) => one.toLowerCase().startsWith('path='))?.slice(5) ?? '/';
    const isGone = attributes.some((one) => /^expires=Thu, 01 Jan 1970/i.test(one));
    if (isGone) this.#cookies.delete(`${name} ${path}`);
    else this.#cookies.set(`${name} ${path}`, { value: pair.slice(name.length + 1), path });
  }
}

export interface Pkce {
  readonly verifier: string;
  readonly challenge: string;
}

export const pkce = (): Pkce => {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
};

export interface App {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly registration_access_token: string;
  readonly registration_client_uri: string;
  readonly [member: string]: unknown;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly scope: string;
}

export const oauthOf = (world: World) => {
  const origin = world.origin;
  const personId = randomUUID();

  const register = async (metadata: Readonly<Record<string, unknown>> = {}): Promise<App> => {
    const { status, json, text } = await sendJson('POST', `${origin()}/oauth/register`, {
      client_name: 'An app',
      redirect_uris: [callback],
      token_endpoint_auth_method: 'none',
      ...metadata,
    });
    assert.equal(status, 201, text);
    return json as unknown as App;
  };

  const authorizeUrl = (
    app: Pick<App, 'client_id'>,
    { challenge }: Pkce,
    more: Readonly<Record<string, string>> = {},
  ): string =>
    `${origin()}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: app.client_id,
      redirect_uri: callback,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      state: 'a state',
      ...more,
    })}`;

  /** Opens an authorization in a browser, up to the console. @returns its uid */
  const begin = async (browser: Browser, url: string): Promise<string> => {
    const asked = await browser.open(url);
    assert.equal(asked.status, 303, asked.text);
    const waiting = new URL(asked.location, origin());
    assert.match(waiting.pathname, /^\/oauth\/interaction\/[\w-]+$/);
    const toConsole = await browser.open(waiting.href);
    assert.equal(toConsole.status, 303, toConsole.text);
    const uid = waiting.pathname.split('/').at(-1) ?? '';
    assert.equal(toConsole.location, `${world.deps.consoleUrl()}/consent/${uid}`);
    return uid;
  };

  const consent = (uid: string, more: Partial<ConsentResult> = {}): string => {
    const owner = { personId, memberId: world.memberId, workspaceId: world.workspaceId };
    const scopes = ['agency.read', 'posts.read', 'posts.compose', 'media.read'];
    const result: ConsentResult = { uid, decision: 'allow', ...owner, mode: 'test', era: 0, scopes, ...more };
    return sealConsent(world.deps.secrets, result, world.deps.clock());
  };

  const answerUrl = (uid: string, sealed: string): string =>
    `${origin()}/oauth/interaction/${uid}?${new URLSearchParams({ result: sealed })}`;

  /** The answer of the console goes through the browser, back to the app. @returns what the app receives */
  const finish = async (browser: Browser, uid: string, sealed: string): Promise<URLSearchParams> => {
    const done = await browser.open(answerUrl(uid, sealed));
    assert.equal(done.status, 303, done.text);
    const toApp = await browser.open(done.location);
    assert.equal(toApp.status, 303, toApp.text);
    const { searchParams, origin: of } = new URL(toApp.location);
    assert.equal(of, new URL(callback).origin);
    return searchParams;
  };

  /** A code, as an app gets it. */
  const codeOf = async (
    app: Pick<App, 'client_id'>,
    secret: Pkce,
    {
      query = {},
      result = {},
      browser = new Browser(),
    }: {
      readonly query?: Readonly<Record<string, string>>;
      readonly result?: Partial<ConsentResult>;
      readonly browser?: Browser;
    } = {},
  ): Promise<string> => {
    const uid = await begin(browser, authorizeUrl(app, secret, query));
    const params = await finish(browser, uid, consent(uid, result));
    assert.equal(params.get('error'), null, params.toString());
    return params.get('code') ?? '';
  };

  const exchange = (
    app: Pick<App, 'client_id'>,
    code: string,
    { verifier }: Pkce,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> =>
    postForm(`${origin()}/oauth/token`, {
      grant_type: 'authorization_code',
      client_id: app.client_id,
      code,
      redirect_uri: callback,
      code_verifier: verifier,
      ...more,
    });

  const refresh = (
    app: Pick<App, 'client_id'>,
    token: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> =>
    postForm(`${origin()}/oauth/token`, {
      grant_type: 'refresh_token',
      client_id: app.client_id,
      refresh_token: token,
      ...more,
    });

  const tokensOf = async (app: Pick<App, 'client_id'>, more: Parameters<typeof codeOf>[2] = {}): Promise<Tokens> => {
    const secret = pkce();
    const { status, json, text } = await exchange(app, await codeOf(app, secret, more), secret);
    assert.equal(status, 200, text);
    return json as unknown as Tokens;
  };

  return { personId, register, authorizeUrl, begin, consent, answerUrl, finish, codeOf, exchange, refresh, tokensOf };
};

export type OAuth = ReturnType<typeof oauthOf>;

/** The claims of a token, without a look at its signature. */
export const claimsOf = (token: string): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));

/** Types of the events of a grant, in order, with their ender. */
export const historyOf = async (world: World, grantId: unknown): Promise<readonly string[]> => {
  const events = await world.store.readStream(`grant-${grantId}`);
  return events.map(({ type, data }) => (type === 'GrantRevoked' ? `${type} ${data.by}` : type));
};

/** A client that stands in the table, for a world whose registration is out of reach. @returns its id */
export const keep = async (world: World): Promise<string> => {
  const clientId = randomUUID();
  const metadata = { client_id: clientId, redirect_uris: [callback], token_endpoint_auth_method: 'none' };
  await world.pool.query('insert into auth.oauth_clients (client_id, metadata) values ($1, $2)', [clientId, metadata]);
  return clientId;
};

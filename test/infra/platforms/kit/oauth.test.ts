/** What OAuth 2 of the kit does that X does not need. Facts: the pages on tokens of Threads, Facebook, Google and LinkedIn. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Credential } from '#contracts/ports/credentials.ts';
import {
  askedBy,
  authorizeUrl,
  exchangeCode,
  newVerifier,
  type OAuthTable,
  type OAuthTools,
  refreshTokens,
  revokeTokens,
  type TokenStep,
} from '#infra/platforms/kit/oauth.ts';
import { suite } from '#test/support/suite.ts';
import { appAt, http, oauthOf, type Server, startServer, within } from './world.ts';

const subject = { accountId: randomUUID(), targetId: null };
const dayMs = 86_400_000;

suite('OAuth 2 of the kit', (t) => {
  let server: Server;
  let now = Date.parse('2026-11-01T12:00:00.000Z');
  t.before.each(async () => {
    server = await startServer();
    now = Date.parse('2026-11-01T12:00:00.000Z');
  });
  t.after.each(() => server.close());

  const toolsOf = (over: Partial<OAuthTable>): OAuthTools => ({
    ...{ http, oauth: oauthOf(over), app: appAt(server.origin), clock: () => now },
  });
  const inDays = (days: number) => new Date(now + days * dayMs).toISOString();
  const asked = { code: 'the code', verifier: newVerifier(), redirectUri: 'https://postline.test/connect/callback' };

  /** Threads: a short token for the code, and a long one for the short one, by parameters in the address. */
  const twoSteps: Partial<OAuthTable> = {
    ...{ client: { id: 'client_id', secret: 'client_secret' } },
    exchange: [
      {
        ...{ method: 'POST', url: '{tokens}/oauth/access_token', as: 'form' },
        params: { grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' },
      },
      {
        ...{ method: 'GET', url: '{tokens}/access_token', as: 'query', isBare: true },
        params: { grant_type: 'th_exchange_token', client_secret: '{secret}', access_token: '{token}' },
      },
    ],
    refresh: {
      ...{ method: 'GET', url: '{tokens}/refresh_access_token', as: 'query', isBare: true },
      ...{ kind: 'extends', minAgeMs: dayMs, params: { grant_type: 'th_refresh_token', access_token: '{token}' } },
    },
    seconds: { access: 5_184_000, most: 5_184_000, refresh: null },
    ends: [{ status: 400, says: /^OAuthException:/ }],
  };

  t('a code becomes a short token, and that a long one; each answer says more of the login', async () => {
    server.on('POST /tokens/oauth/access_token', { body: `{"access_token":"short","user_id":17841405793187218}` });
    server.on('GET /tokens/access_token', { body: { access_token: 'long', expires_in: 5_184_000 } });
    const exchanged = await exchangeCode(toolsOf(twoSteps), asked, within());
    assert.ok(exchanged.kind === 'exchanged', JSON.stringify(exchanged));
    assert.deepEqual(exchanged.credential, {
      secret: { accessToken: 'long', accessUntil: inDays(60), accessFrom: inDays(0) },
      expiresAt: inDays(60),
    });
    assert.equal(exchanged.said.user_id, '17841405793187218');
    const [first, second] = server.received;
    assert.deepEqual(Object.fromEntries(new URLSearchParams(first?.body)), {
      ...{ grant_type: 'authorization_code', code: asked.code, redirect_uri: asked.redirectUri },
      ...{ client_id: 'app-id', client_secret: 'app:secret' },
    });
    assert.deepEqual(Object.fromEntries(second?.query ?? []), {
      ...{ grant_type: 'th_exchange_token', client_secret: 'app:secret', access_token: 'short' },
    });
  });

  t('a token that the second step does not give is none, and a list of tokens is read', async () => {
    server.on('POST /tokens/oauth/access_token', { body: { data: [{ access_token: 'short', permissions: 'a,b' }] } });
    server.on('GET /tokens/access_token', { status: 500 });
    assert.equal((await exchangeCode(toolsOf(twoSteps), asked, within())).kind, 'unavailable');
    server.on('GET /tokens/access_token', { status: 400, body: { error: { type: 'OAuthException', message: 'No.' } } });
    const refused = await exchangeCode(toolsOf(twoSteps), asked, within());
    assert.deepEqual(refused, { kind: 'refused', error: 'OAuthException', reason: 'No.' });
    server.on('GET /tokens/access_token', { body: { access_token: 'long' } });
    const exchanged = await exchangeCode(toolsOf(twoSteps), asked, within());
    assert.ok(exchanged.kind === 'exchanged');
    assert.deepEqual(exchanged.scopes, ['a', 'b']);
  });

  t('25: a token that is extended is not younger than a day then, and ends with its owner’s word alone', async () => {
    const tools = toolsOf(twoSteps);
    const former = { secret: { accessToken: 'long', accessFrom: inDays(0) }, expiresAt: inDays(60), version: 1 };
    now += dayMs - 1;
    const young = await refreshTokens(tools, former, subject, within());
    assert.deepEqual(young, { kind: 'unavailable', reason: 'the token is too new' });
    assert.equal(server.received.length, 0, 'the network is not asked');
    now += 1;
    server.on('GET /tokens/refresh_access_token', { body: { access_token: 'longer', expires_in: 5_184_000 } });
    const refreshed = await refreshTokens(tools, former, subject, within());
    assert.ok(refreshed.kind === 'refreshed');
    assert.deepEqual(refreshed.credential, {
      secret: { accessToken: 'longer', accessUntil: inDays(60), accessFrom: inDays(0) },
      expiresAt: inDays(60),
    });
    server.on('GET /tokens/refresh_access_token', { status: 400, body: { error: { type: 'OAuthException' } } });
    assert.equal((await refreshTokens(tools, former, subject, within())).kind, 'refused');
    server.on('GET /tokens/refresh_access_token', { status: 503 });
    const down = await refreshTokens(tools, former, subject, within());
    assert.ok(down.kind === 'unavailable' && down.isSilent === undefined, 'no answer replaces the token');
  });

  /** Google keeps the refresh token; LinkedIn too, and says how long it lasts. */
  const keeps: Partial<OAuthTable> = {
    refresh: {
      ...{ method: 'POST', url: '{tokens}/token', as: 'form', kind: 'keeps', minAgeMs: 0 },
      params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
    },
    seconds: { access: 3_600, most: 86_400, refresh: 150 * 86_400 },
  };
  const former = (): Credential => ({
    ...{ secret: { accessToken: 'a', refreshToken: 'kept' }, expiresAt: inDays(10), version: 1 },
  });

  t('a refresh token that stays begins its time anew with each use, or ends when the network says', async () => {
    server.on('POST /tokens/token', { body: { access_token: 'b', expires_in: 3_599 } });
    const google = await refreshTokens(toolsOf(keeps), former(), subject, within());
    assert.ok(google.kind === 'refreshed');
    assert.deepEqual([google.credential.secret.refreshToken, google.credential.expiresAt], [undefined, inDays(150)]);
    const body = { access_token: 'b', expires_in: 5_184_000, refresh_token_expires_in: 86_400 * 3 };
    server.on('POST /tokens/token', { body });
    const linkedin = await refreshTokens(toolsOf(keeps), former(), subject, within());
    assert.ok(linkedin.kind === 'refreshed');
    assert.equal(linkedin.credential.expiresAt, inDays(3));
    const endless = { ...keeps, seconds: { access: 3_600, most: 86_400, refresh: null } };
    server.on('POST /tokens/token', { body: { access_token: 'b' } });
    const kept = await refreshTokens(toolsOf(endless), former(), subject, within());
    assert.ok(kept.kind === 'refreshed' && kept.credential.expiresAt === inDays(10));
    server.on('POST /tokens/token', { status: 400, body: { error: 'invalid_grant', error_description: 'Expired.' } });
    const ended = await refreshTokens(toolsOf(keeps), former(), subject, within());
    assert.deepEqual(ended, { kind: 'refused', reason: 'Expired.' });
  });

  t('an error of a code is read in the words of each network', async () => {
    for (const [body, error] of [
      [{ error: 'invalid_grant', error_description: 'Used.' }, 'invalid_grant'],
      [{ error: { type: 'OAuthException', message: 'Used.' } }, 'OAuthException'],
      [{ error_type: 'OAuthException', code: 400, error_message: 'Used.' }, 'OAuthException'],
      [{ code: 'invalid', message: 'Used.' }, 'invalid'],
    ] as const) {
      server.on('POST /tokens/token', { status: 400, body });
      const said = await exchangeCode(toolsOf({}), asked, within());
      assert.deepEqual(said, { kind: 'refused', error, reason: 'Used.' });
    }
  });

  t('a network that renews nothing is not asked', async () => {
    assert.equal((await refreshTokens(toolsOf({}), former(), subject, within())).kind, 'refused');
    assert.equal(server.received.length, 0);
  });

  t('a login that ends is renewed before it mints the token of an account, and is kept where that fails', async () => {
    const mint: TokenStep = {
      ...{ method: 'GET', url: '{api}/{account}', as: 'query', isBare: true },
      params: { fields: 'access_token', access_token: '{login}' },
    };
    const tools = toolsOf({ ...twoSteps, mint });
    const page: Credential = {
      version: 1,
      secret: {
        ...{ account: '7', accessToken: 'page', accessUntil: null, kept: 'beside' },
        ...{ loginToken: 'login', loginFrom: inDays(-59), loginUntil: new Date(now + 60_000).toISOString() },
      },
      expiresAt: null,
    };
    const refresh = () => refreshTokens(tools, page, subject, within());
    server.on('GET /tokens/refresh_access_token', { body: { access_token: 'login anew', expires_in: 5_184_000 } });
    server.on('GET /api/7', { body: { id: '7', access_token: 'page anew', expires_in: 3_600 } });
    const login = { loginToken: 'login anew', loginFrom: inDays(0), loginUntil: inDays(60) };
    const anHour = new Date(now + 3_600_000).toISOString();
    assert.deepEqual(await refresh(), {
      kind: 'refreshed',
      credential: { secret: { ...login, accessToken: 'page anew', accessUntil: anHour }, expiresAt: anHour },
    });
    assert.deepEqual(
      server.received.map(({ query }) => query.get('access_token')),
      ['login', 'login anew'],
    );
    server.on('GET /api/7', { status: 503 });
    assert.deepEqual(await refresh(), { kind: 'refreshed', credential: { secret: login, expiresAt: null } });
    server.on('GET /tokens/refresh_access_token', { status: 503 });
    assert.equal((await refresh()).kind, 'unavailable');
    // Without such a call the token of a page is not taken for that of the login.
    assert.equal((await refreshTokens(toolsOf(twoSteps), page, subject, within())).kind, 'refused');
  });

  t('a login is taken back by its own token, where an account has another', async () => {
    const revoke = [
      { method: 'DELETE', url: '{api}/me/permissions', as: 'query', isBare: true, params: { access_token: '{login}' } },
    ] as const;
    server.on('DELETE /api/me/permissions', { body: { success: true } });
    for (const secret of [{ accessToken: 'page', loginToken: 'login' }, { accessToken: 'login' }]) {
      assert.equal((await revokeTokens(toolsOf({ revoke }), { secret }, subject, within())).kind, 'revoked');
      assert.equal(server.received.at(-1)?.query.get('access_token'), 'login');
    }
  });

  t('a network that takes no tokens back is asked once, and a refusal of our client stays one', async () => {
    const tables: Partial<OAuthTable> = {
      revoke: [{ method: 'POST', url: '{tokens}/revoke', as: 'form', params: { token: '{token}' } }],
      revokesNothing: [{ status: 403, says: /not permitted/ }],
    };
    const revoked = async (status: number, message: string) => {
      server.on('POST /tokens/revoke', { status, body: { message } });
      return (await revokeTokens(toolsOf(tables), { secret: { accessToken: 'a' } }, subject, within())).kind;
    };
    assert.equal(await revoked(403, 'You are not permitted to access that resource.'), 'revoked');
    assert.equal(await revoked(403, 'No.'), 'refused');
    assert.equal(await revoked(401, 'You are not permitted'), 'refused');
    server.on('POST /tokens/token', { status: 403, body: { message: 'not permitted' } });
    const refreshed = await refreshTokens(toolsOf({ ...keeps, ...tables }), former(), subject, within());
    assert.equal(refreshed.kind, 'unavailable', 'it ends no grant');
  });

  t('the page of consent is asked in the words of the network', () => {
    const tools = toolsOf({ pkce: 'hex', authorizeParams: { access_type: 'offline' } });
    const url = new URL(authorizeUrl(tools, { ...asked, state: 's', scopes: ['a', 'b'] }));
    const query = Object.fromEntries(url.searchParams);
    assert.deepEqual(
      [query.client_key, query.client_id, query.scope, query.access_type],
      ['app-id', undefined, 'a,b', 'offline'],
    );
    assert.match(query.code_challenge ?? '', /^[0-9a-f]{64}$/);
    const scopes = ['post', 'of_another_release'];
    const own = toolsOf({});
    const some = new URL(authorizeUrl({ ...own, oauth: askedBy(own.oauth, { scopes }) }, { ...asked, state: 's' }));
    assert.equal(some.searchParams.get('scope'), scopes.join(','), 'the settings of an app name what it has');
    const plain = new URL(authorizeUrl(toolsOf({}), { ...asked, state: 's' }));
    assert.equal(plain.searchParams.get('code_challenge'), null);
  });
});

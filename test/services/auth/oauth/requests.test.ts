import assert from 'node:assert/strict';
import { grantableScopes, readScopes } from '#schemas/grant.ts';
import { pendingConsent } from '#services/auth/pending-consent.ts';
import type { World } from '#test/support/http.ts';
import {
  type Answer,
  type App,
  Browser,
  callback,
  claimsOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  pkce,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: requests', (t) => {
  let world: World;
  let it: OAuth;
  let app: App;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
    app = await it.register();
  });
  t.after(() => world?.close());

  type Query = Readonly<Record<string, string>>;
  const open = (query: Query, more = ''): Promise<Answer> =>
    new Browser().open(`${it.authorizeUrl(app, pkce(), query)}${more}`);
  const asked = async (query: Query, more = '') => {
    const uid = await it.begin(new Browser(), `${it.authorizeUrl(app, pkce(), query)}${more}`);
    return pendingConsent(world.pool, uid, world.deps.clock());
  };
  const errorOf = async (query: Query, more = ''): Promise<string | null> => {
    const { status, location, text } = await open(query, more);
    assert.equal(status, 303, text);
    assert.ok(location.startsWith(`${callback}?`), location);
    const { searchParams } = new URL(location);
    assert.deepEqual([searchParams.get('state'), searchParams.get('iss')], ['a state', world.origin()]);
    return searchParams.get('error');
  };
  /** A page of ours: the browser is sent nowhere. */
  const pageOf = async (url: string): Promise<string> => {
    const { status, location, headers, text } = await new Browser().open(url);
    assert.deepEqual([status, location], [400, ''], text);
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(headers.get('x-frame-options'), 'DENY');
    return /<code>(\w+)<\/code>/.exec(text)?.[1] ?? '';
  };

  t('scopes: the known ones of those named, all reads where none is named', async () => {
    for (const [scope, expected] of [
      [undefined, readScopes.join(' ')],
      ['', readScopes.join(' ')],
      ['posts.read', 'posts.read'],
      ['posts.compose posts.read', 'posts.read posts.compose'],
      ['posts.read posts.read', 'posts.read'],
      ['posts.read webhooks.manage webhooks.read', 'posts.read'],
      ['reports.manage posts.read clients.manage', 'posts.read clients.manage reports.manage'],
      ['openid offline_access posts.read', 'posts.read'],
      [grantableScopes.join(' '), grantableScopes.join(' ')],
      ['POSTS.READ media.read', 'media.read'],
    ] as const) {
      const pending = await asked(scope === undefined ? {} : { scope });
      assert.equal(pending?.scopes.join(' '), expected, scope);
    }
  });

  t('scopes: none that can be given is an error for the app', async () => {
    for (const scope of [
      'openid',
      'openid offline_access',
      'webhooks.manage',
      'everything',
      '__proto__',
      '"posts.read',
    ]) {
      assert.equal(await errorOf({ scope }), 'invalid_scope', scope);
    }
  });

  t('resources: the api and the MCP server, with and without a slash, in one spelling', async () => {
    const [api, mcp] = [world.deps.baseUrl(), world.deps.mcpUrl()];
    const upper = api.replace('http://', 'HTTP://');
    for (const [more, expected] of [
      ['', mcp],
      [`&resource=${encodeURIComponent(mcp)}`, mcp],
      [`&resource=${encodeURIComponent(`${mcp}/`)}`, mcp],
      [`&resource=${encodeURIComponent(api)}`, api],
      [`&resource=${encodeURIComponent(`${api}/`)}`, api],
      [`&resource=${encodeURIComponent(upper)}`, api],
      [`&resource=${encodeURIComponent(api)}&resource=${encodeURIComponent(`${api}/`)}`, api],
    ] as const) {
      assert.equal((await asked({}, more))?.resource, expected, more);
    }
    const tokens = await it.tokensOf(app, { query: { resource: `${api}/` } });
    assert.equal(claimsOf(tokens.access_token).aud, api);
    assert.equal(claimsOf((await it.tokensOf(app)).access_token).aud, mcp);
  });

  t('resources: any other, or two of them, is an error for the app', async () => {
    const [api, mcp] = [world.deps.baseUrl(), world.deps.mcpUrl()];
    for (const named of [
      ['https://elsewhere.example'],
      ['no url'],
      [`${api}//`],
      [`${api}?a=1`],
      [`${api}#a`],
      [`${api}/posts`],
      [api.replace('/v1', '/V1')],
      [api.replace('//', '//user@')],
      [world.origin()],
      [`${api}/${'x'.repeat(3_000)}`],
      [api, mcp],
    ]) {
      const more = named.map((one) => `&resource=${encodeURIComponent(one)}`).join('');
      assert.equal(await errorOf({}, more), 'invalid_target', more.slice(0, 100));
    }
  });

  t('PKCE is required, by S256', async () => {
    for (const query of [
      { code_challenge: '' },
      { code_challenge_method: 'plain' },
      { code_challenge_method: '' },
      { code_challenge: 'short' },
    ]) {
      assert.equal(await errorOf(query as Query), 'invalid_request', JSON.stringify(query));
    }
  });

  t('prompt=none always fails, and every other prompt asks the person', async () => {
    assert.match((await errorOf({ prompt: 'none' })) ?? '', /^(?:login|consent)_required$/);
    for (const prompt of ['login', 'consent', 'login consent', 'select_account', 'create']) {
      assert.notEqual(await asked({ prompt }), null, prompt);
    }
  });

  t('parameters of OpenID Connect change nothing, and no id token ever comes', async () => {
    const secret = pkce();
    const query = { scope: 'openid posts.read', nonce: 'n', claims: '{"id_token":{}}', acr_values: 'a', max_age: '0' };
    const code = await it.codeOf(app, secret, { query: { ...query, id_token_hint: 'x', _policy: 'y' } });
    const { json } = await it.exchange(app, code, secret);
    assert.deepEqual(Object.keys(json).sort(), ['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type']);
    for (const response_type of ['token', 'id_token', 'code id_token', 'none']) {
      const { searchParams, hash } = new URL((await open({ response_type })).location);
      const error = searchParams.get('error') ?? new URLSearchParams(hash.slice(1)).get('error');
      assert.match(error ?? '', /unsupported_response_type|unauthorized_client|invalid_request/, response_type);
    }
  });

  t('an answer goes into the query of the address, and nowhere else', async () => {
    assert.notEqual(await asked({ response_mode: 'query' }), null);
    for (const mode of ['form_post', 'fragment', 'web_message', 'jwt']) {
      assert.equal(await pageOf(it.authorizeUrl(app, pkce(), { response_mode: mode })), 'unsupported_response_mode');
    }
  });

  t('an unknown app, and an address that it has not registered, get a page and no redirect', async () => {
    assert.equal(await pageOf(it.authorizeUrl({ client_id: 'unknown' }, pkce())), 'invalid_client');
    for (const redirect_uri of [
      'https://evil.example/callback',
      'http://127.0.0.1:7777/callback/',
      'http://127.0.0.1:7777/other',
      'http://127.0.0.1:7777/callback?a=1',
      'http://localhost:7777/callback',
      'http://127.0.0.1.evil.example:7777/callback',
      'http://user@127.0.0.1:7777/callback',
      'javascript:alert(1)',
      'no url',
    ]) {
      assert.equal(await pageOf(it.authorizeUrl(app, pkce(), { redirect_uri })), 'invalid_redirect_uri', redirect_uri);
    }
  });

  t('a NUL, which no row can keep, gets a page and is no fault of ours', async () => {
    for (const more of [{ state: 'a\0' }, { display: '\0' }, { client_id: '\0' }, { redirect_uri: `${callback}\0` }]) {
      assert.equal(await pageOf(it.authorizeUrl(app, pkce(), more)), 'invalid_request', Object.keys(more)[0]);
    }
    assert.ok(world.lines.every((line) => !line.includes('oauth failed')));
  });

  t('an app on the person’s machine may use any port', async () => {
    const secret = pkce();
    const redirect_uri = 'http://127.0.0.1:54321/callback';
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(app, secret, { redirect_uri }));
    const done = await browser.open(it.answerUrl(uid, it.consent(uid)));
    const toApp = await browser.open(done.location);
    assert.ok(toApp.location.startsWith(`${redirect_uri}?`), toApp.location);
    const code = new URL(toApp.location).searchParams.get('code') ?? '';
    assert.equal((await it.exchange(app, code, secret, { redirect_uri })).status, 200);
  });

  t('odd requests at the token endpoint are refused by name, and none is a fault of ours', async () => {
    const { postForm } = await import('#test/support/oauth.ts');
    const url = `${world.origin()}/oauth/token`;
    for (const [form, error] of [
      [{}, 'invalid_request'],
      [{ grant_type: 'password', client_id: app.client_id }, 'unsupported_grant_type'],
      [{ grant_type: 'client_credentials', client_id: app.client_id }, 'unsupported_grant_type'],
      [{ grant_type: 'refresh_token', client_id: app.client_id }, 'invalid_request'],
      [{ grant_type: 'refresh_token', client_id: app.client_id, refresh_token: 'x' }, 'invalid_grant'],
      [{ grant_type: 'refresh_token', client_id: 'gone', refresh_token: 'x' }, 'invalid_client'],
      [{ grant_type: 'refresh_token', client_id: '\0', refresh_token: '\0' }, 'invalid_client'],
      [
        { grant_type: 'authorization_code', client_id: app.client_id, code: 'x', redirect_uri: callback },
        'invalid_grant',
      ],
    ] as const) {
      const { status, json } = await postForm(url, form as Record<string, string>);
      assert.deepEqual([status >= 400 && status < 500, json.error], [true, error], JSON.stringify(form));
    }
    assert.ok(world.lines.every((line) => !line.includes('oauth failed')));
  });
});

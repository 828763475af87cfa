import assert from 'node:assert/strict';
import { callerAddress, noProxies } from '#runtime/identity/proxies.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { Registrations } from '#services/auth/oauth/limits.ts';
import type { World } from '#test/support/http.ts';
import {
  callback,
  claimsOf,
  get,
  historyOf,
  type OAuth,
  oauthOf,
  oauthWorld,
  sendJson,
  unbounded,
} from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

suite('authorization server: registration', (t) => {
  let world: World;
  let it: OAuth;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
  });
  t.after(() => world?.close());

  const url = (): string => `${world.origin()}/oauth/register`;
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const refused = async (metadata: unknown, error: string): Promise<void> => {
    const { status, json, text } = await sendJson('POST', url(), metadata);
    assert.deepEqual([status, json.error], [400, error], `${JSON.stringify(metadata).slice(0, 200)}: ${text}`);
  };

  t('says what was registered, with all scopes and without words of OpenID Connect', async () => {
    const made = await it.register({
      client_name: 'An\u202eapp\u0007 ',
      scope: 'posts.read',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code', 'token'],
      contacts: ['ann@example.com'],
      logo_uri: 'http://evil.example/logo.png',
      client_uri: 'https://app.example',
      default_max_age: 1,
      require_auth_time: true,
      sector_identifier_uri: 'https://169.254.169.254/x',
      software_id: 'agent',
    });
    const { client_id, client_id_issued_at: _at, registration_access_token, registration_client_uri, ...rest } = made;
    assert.deepEqual(rest, {
      application_type: 'native',
      client_name: 'Anapp',
      client_uri: 'https://app.example',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [callback],
      response_types: ['code'],
      scope: grantableScopes.join(' '),
      software_id: 'agent',
      token_endpoint_auth_method: 'none',
    });
    assert.equal(registration_client_uri, `${url()}/${client_id}`);
    assert.ok(registration_access_token.length >= 40);
  });

  t('redirect addresses: https, loopback by http, and schemes that no browser handles itself', async () => {
    for (const uri of [
      'https://app.example/callback',
      'https://app.example:8443/callback?tenant=1',
      'http://localhost/callback',
      'http://localhost:3000/callback',
      'http://127.0.0.1/callback',
      'http://[::1]:9/callback',
      'cursor://anysphere.cursor-retrieval/oauth/callback',
      'com.example.app:/oauth',
      'claude://callback',
    ]) {
      const made = await it.register({ redirect_uris: [uri] });
      assert.equal(made.application_type, uri.startsWith('https:') ? 'web' : 'native', uri);
    }
    await it.register({ redirect_uris: ['https://app.example/cb', 'http://localhost/cb', 'app://cb'] });
    for (const uri of [
      'http://app.example/callback',
      'http://10.0.0.1/callback',
      'http://localhost.evil.example/callback',
      'https://localhost/callback',
      'https://*.example/callback',
      'https://app.example/callback#x',
      'https://user@app.example/callback',
      'https://user:pass@app.example/callback',
      'https://app.example/\\evil.example',
      'https://app.example/a b',
      'https://app.example/\ncallback',
      'javascript:alert(1)',
      'JAVASCRIPT:alert(1)',
      'data:text/html,x',
      'file:///etc/passwd',
      'vbscript:x',
      'blob:https://app.example/x',
      'mailto:ann@example.com',
      'ftp://app.example/x',
      'shell:startup',
      'ms-msdt:/id',
      'MS-WORD:ofe|u|x',
      'x-apple.systempreferences:x',
      'https:app.example',
      'https:/app.example/callback',
      '//app.example/callback',
      'callback',
      '',
      `https://app.example/${'x'.repeat(2_000)}`,
    ]) {
      await refused({ redirect_uris: [uri] }, 'invalid_redirect_uri');
    }
    await refused({}, 'invalid_redirect_uri');
    await refused({ redirect_uris: [] }, 'invalid_redirect_uri');
    await refused({ redirect_uris: 'https://app.example' }, 'invalid_redirect_uri');
    await refused({ redirect_uris: [1] }, 'invalid_redirect_uri');
    await refused({ redirect_uris: [callback, 'http://app.example/cb'] }, 'invalid_redirect_uri');
    await refused(
      { redirect_uris: Array.from({ length: 11 }, (_one, at) => `${callback}/${at}`) },
      'invalid_redirect_uri',
    );
  });

  t('null and an empty list are a member that was not given', async () => {
    const plain = await it.register();
    const names = ['grant_types', 'response_types', 'contacts', 'scope', 'client_uri', 'logo_uri', 'jwks', 'jwks_uri'];
    const { client_id: _id, client_id_issued_at: _at, ...known } = plain;
    for (const empty of [null, []]) {
      const made = await it.register(Object.fromEntries(names.map((name) => [name, empty])));
      for (const name of Object.keys(known).filter((one) => !one.startsWith('registration_'))) {
        assert.deepEqual(made[name], plain[name], `${name} of ${JSON.stringify(empty)}`);
      }
    }
    const method = await it.register({ token_endpoint_auth_method: null, software_id: null, client_name: null });
    assert.equal(method.token_endpoint_auth_method, 'client_secret_basic');
    await refused({ redirect_uris: null }, 'invalid_redirect_uri');
  });

  t('what no client of ours can do is refused, and what is unknown is left out', async () => {
    const uris = { redirect_uris: [callback] };
    await refused({ ...uris, grant_types: ['client_credentials'] }, 'invalid_client_metadata');
    await refused({ ...uris, grant_types: 'authorization_code' }, 'invalid_client_metadata');
    await refused({ ...uris, response_types: ['token'] }, 'invalid_client_metadata');
    await refused({ ...uris, token_endpoint_auth_method: 'tls_client_auth' }, 'invalid_client_metadata');
    const jwks = { keys: [{ kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }] };
    await refused({ ...uris, token_endpoint_auth_method: 'private_key_jwt', jwks }, 'invalid_client_metadata');
    for (const body of ['', 'no json', '[]', '1', 'null']) await refused(body, 'invalid_request');
    const made = await it.register({ jwks_uri: 'https://app.example/jwks', unknown: 1, client_name: 'x'.repeat(500) });
    assert.deepEqual([made.jwks_uri, made.unknown, String(made.client_name).length], [undefined, undefined, 100]);
    for (const one of ['https://app.example/\0', 'https://app.example/\ud800', 'https:app.example']) {
      const { client_uri, logo_uri } = await it.register({ client_uri: one, logo_uri: one });
      assert.deepEqual([client_uri, logo_uri], [undefined, undefined]);
    }
    const plain = await it.register({ grant_types: ['authorization_code'] });
    assert.equal((await it.tokensOf(plain)).refresh_token, undefined);
    const long = await sendJson('POST', url(), { ...uris, client_name: 'x'.repeat(40_000) });
    assert.equal(long.status, 413);
  });

  t('a client reads, changes and deletes its own registration, and only with its token', async () => {
    const made = await it.register({ token_endpoint_auth_method: 'client_secret_basic' });
    const { registration_client_uri: own, registration_access_token: token, client_id, client_secret } = made;
    const read = await get(own, bearer(token));
    assert.deepEqual([read.status, read.json.client_secret, read.json.client_id], [200, client_secret, client_id]);
    const change = { client_id, redirect_uris: ['https://app.example/new'], client_name: 'New' };
    const changed = await sendJson('PUT', own, { ...change, client_secret }, bearer(token));
    assert.deepEqual(
      [changed.status, changed.json.client_name, changed.json.registration_access_token],
      [200, 'New', token],
    );
    assert.deepEqual((await get(own, bearer(token))).json.redirect_uris, ['https://app.example/new']);
    const bad = await sendJson('PUT', own, { ...change, redirect_uris: ['http://evil.example'] }, bearer(token));
    assert.deepEqual([bad.status, bad.json.error], [400, 'invalid_redirect_uri']);
    for (const body of [{ redirect_uris: [callback] }, { ...change, registration_access_token: token }]) {
      assert.equal((await sendJson('PUT', own, body, bearer(token))).status, 400);
    }
    for (const headers of [{}, bearer('wrong')]) {
      const answer = await get(own, headers);
      assert.deepEqual([answer.status >= 400 && answer.status < 402, answer.json.client_secret], [true, undefined]);
    }
    assert.equal((await sendJson('PATCH', own, change, bearer(token))).status, 404);
    const gone = await sendJson('DELETE', own, undefined, bearer(token));
    assert.equal(gone.status, 204);
    assert.equal((await get(own, bearer(token))).status, 401);
  });

  t('a deleted client gets invalid_client, and what it had ends', async () => {
    const made = await it.register();
    const tokens = await it.tokensOf(made);
    const { status } = await sendJson(
      'DELETE',
      made.registration_client_uri,
      undefined,
      bearer(made.registration_access_token),
    );
    assert.equal(status, 204);
    const again = await it.refresh(made, tokens.refresh_token);
    assert.deepEqual([again.status, again.json.error], [401, 'invalid_client']);
    assert.deepEqual(await historyOf(world, claimsOf(tokens.access_token).gid), ['GrantGiven', 'GrantRevoked client']);
    const { rows } = await world.pool.query('select model from auth.oauth_artifacts where client_id = $1', [
      made.client_id,
    ]);
    assert.deepEqual(rows, []);
  });

  t('a page in a browser may register', async () => {
    const asked = await fetch(url(), {
      method: 'OPTIONS',
      headers: { origin: 'https://page.example', 'access-control-request-method': 'POST' },
    });
    assert.equal(asked.status, 204);
    assert.equal(asked.headers.get('access-control-allow-origin'), '*');
    const headers = { origin: 'https://page.example' };
    const made = await sendJson('POST', url(), { redirect_uris: [callback] }, headers);
    assert.deepEqual([made.status, made.headers.get('access-control-allow-origin')], [201, '*']);
  });
});

suite('authorization server: limits', (t) => {
  let world: World;
  t.before(async () => {
    world = await oauthWorld(
      { registrations: { address: { perMinute: 1, burst: 3 } } },
      { rate: { perMinute: 60, burst: 5 } },
    );
  });
  t.after(() => world?.close());

  t('one address registers so often, and asks and spends so often', async () => {
    const statuses: number[] = [];
    for (let at = 0; at < 5; at += 1) {
      const { status, headers } = await sendJson('POST', `${world.origin()}/oauth/register`, {
        redirect_uris: [callback],
      });
      statuses.push(status);
      if (status === 429) assert.ok(Number(headers.get('retry-after')) >= 1);
    }
    assert.deepEqual(statuses, [201, 201, 201, 429, 429]);
    const opened: number[] = [];
    for (let at = 0; at < 7; at += 1) opened.push((await get(`${world.origin()}/oauth/authorize`)).status);
    assert.deepEqual([opened.slice(0, 5), opened.at(-1)], [[400, 400, 400, 400, 400], 429]);
    const revoked: number[] = [];
    for (let at = 0; at < 7; at += 1) {
      revoked.push((await fetch(`${world.origin()}/oauth/revoke`, { method: 'POST' })).status);
    }
    assert.deepEqual([revoked.slice(0, 5), revoked.at(-1)], [[200, 200, 200, 200, 200], 503]);
    assert.equal((await get(`${world.origin()}/.well-known/jwks.json`)).status, 200);
  });

  t('a network shares what it may register, and a reserve is left for new ones', () => {
    let now = 0;
    const registrations = new Registrations({}, () => now);
    const flood = (network: number, addresses: number): number => {
      let done = 0;
      for (let at = 0; at < addresses * 20; at += 1) {
        const owner = callerAddress(`2001:${network}:${at % addresses}::1`, '', noProxies);
        if (registrations.take(owner) === 0) done += 1;
      }
      return done;
    };
    assert.equal(registrations.take('198.51.100.9'), 0);
    assert.equal(flood(470, 11), 50, 'one network');
    assert.equal(registrations.take('198.51.100.10'), 0, 'another one is not held up');
    assert.deepEqual(
      [471, 472, 473, 474].map((one) => flood(one, 11)),
      [50, 48, 1, 1],
      'networks that share a flood',
    );
    assert.ok(registrations.take('198.51.100.11') > 0, 'a network that is not new waits for more than the reserve');
    assert.equal(registrations.take('192.0.2.1'), 0, 'a new one does not');
    now += 60_000;
    assert.equal(flood(474, 11), 7, 'what came back beyond the reserve');
    for (let at = 0; at < 120; at += 1) {
      now += 60_000;
      for (const network of [470, 471, 472, 473, 474, 475]) flood(network, 2);
    }
    assert.equal(registrations.take('192.1.2.1'), 0, 'a flood of hours takes no reserve of new ones');
  });

  t('all addresses together register so often', async () => {
    const other = await oauthWorld({ registrations: { ...unbounded, all: { perMinute: 1, burst: 2 } } });
    try {
      const statuses: number[] = [];
      for (let at = 0; at < 3; at += 1) {
        statuses.push(
          (await sendJson('POST', `${other.origin()}/oauth/register`, { redirect_uris: [callback] })).status,
        );
      }
      assert.deepEqual(statuses, [201, 201, 429]);
    } finally {
      await other.close();
    }
  });
});

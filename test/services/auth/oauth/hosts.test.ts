import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { World } from '#test/support/http.ts';
import { Browser, get, type OAuth, oauthOf, oauthWorld, pkce, sendJson } from '#test/support/oauth.ts';
import { suite } from '#test/support/suite.ts';

interface Raw {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** With a target and headers that `fetch` would not send. */
const raw = (origin: string, method: string, path: string, headers: Readonly<Record<string, string>>): Promise<Raw> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    const sent = request({ hostname, port, method, path, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers }));
    });
    sent.on('error', reject).end();
  });

const metadata = '/.well-known/oauth-authorization-server';

suite('authorization server: its host and its paths', (t) => {
  let world: World;
  let it: OAuth;
  t.before(async () => {
    world = await oauthWorld();
    it = oauthOf(world);
  });
  t.after(() => world?.close());

  t('another host is refused, and no header of a caller gets into an address', async () => {
    const { host, port } = new URL(world.origin());
    for (const other of [
      'evil.example',
      'localhost',
      '127.0.0.1',
      `127.0.0.1:${Number(port) + 1}`,
      `${host}.`,
      `x@${host}`,
      `${host}/x`,
    ]) {
      for (const path of [metadata, '/oauth/authorize', '/oauth/interaction/x']) {
        assert.equal((await raw(world.origin(), 'GET', path, { host: other })).status, 421, `${other} ${path}`);
      }
    }
    const forged = {
      host,
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '1.2.3.4',
      forwarded: 'host=evil.example;proto=https',
    };
    const { status, text } = await raw(world.origin(), 'GET', metadata, forged);
    assert.equal(status, 200);
    assert.ok(!text.includes('evil') && !text.includes('https:'), text);
    const app = await it.register();
    const url = new URL(it.authorizeUrl(app, pkce()));
    const asked = await raw(world.origin(), 'GET', url.pathname + url.search, forged);
    assert.match(String(asked.headers.location), /^\/oauth\/interaction\//);
    assert.doesNotMatch(String(asked.headers['set-cookie']), /secure/i);
  });

  t('a target that is a whole url reaches nothing', async () => {
    const { host } = new URL(world.origin());
    for (const at of ['http://evil.example', world.origin()]) {
      assert.equal((await raw(world.origin(), 'GET', `${at}${metadata}`, { host })).status, 404, at);
    }
  });

  t('only the nine paths, the resume and the interaction are there, exactly as they are written', async () => {
    const paths = [
      metadata,
      '/.well-known/jwks.json',
      '/oauth/authorize',
      '/oauth/token',
      '/oauth/revoke',
      '/oauth/register',
    ];
    const here = async (method: string, path: string): Promise<number> =>
      (await sendJson(method, `${world.origin()}${path}`, method === 'GET' ? undefined : {})).status;
    for (const path of paths) {
      const method = /token|revoke|register/.test(path) ? 'POST' : 'GET';
      assert.notEqual(await here(method, path), 404, path);
      for (const other of [
        path.toUpperCase(),
        `${path}/`,
        `/${path}`,
        path.replace('o', 'O'),
        path.replace('/oauth', '/%6fauth'),
        `${path};x`,
      ]) {
        if (other !== path) assert.equal(await here(method, other), 404, other);
      }
    }
    for (const [method, path] of [
      ['GET', '/.well-known/openid-configuration'],
      ['GET', '/.well-known/oauth-authorization-server/'],
      ['GET', '/oauth/logout'],
      ['POST', '/oauth/logout/confirm'],
      ['GET', '/me'],
      ['POST', '/oauth/par'],
      ['POST', '/request'],
      ['POST', '/token'],
      ['POST', '/oauth/token/introspection'],
      ['GET', '/oauth/register'],
      ['POST', '/oauth/authorize'],
      ['GET', '/oauth/token'],
      ['POST', '/oauth/interaction/x'],
      ['GET', '/oauth/interaction/x/y'],
      ['GET', '/oauth/interaction/'],
      ['GET', `/oauth/interaction/${'x'.repeat(65)}`],
      ['GET', '/oauth/register/..%2f'],
      ['DELETE', metadata],
    ] as const) {
      assert.equal(await here(method, path), 404, `${method} ${path}`);
    }
  });

  t('the api and its pages are where they were', async () => {
    assert.equal((await world.owner.get('/agency')).status, 200);
    assert.equal((await get(`${world.origin()}/`)).status, 200);
  });

  t('keys are public, without a private part, and may be kept for a minute', async () => {
    const { json, headers } = await get(`${world.origin()}/.well-known/jwks.json`);
    const [key, ...others] = json.keys as readonly Record<string, unknown>[];
    assert.deepEqual(
      [key?.kty, key?.crv, key?.alg, key?.use, key?.d, others.length],
      ['EC', 'P-256', 'ES256', 'sig', undefined, 0],
    );
    assert.equal(headers.get('cache-control'), 'public, max-age=60');
  });

  t('a resume without its cookie, or a second time, is a page and no redirect', async () => {
    const app = await it.register();
    const browser = new Browser();
    const uid = await it.begin(browser, it.authorizeUrl(app, pkce()));
    const done = await browser.open(it.answerUrl(uid, it.consent(uid)));
    const stranger = await new Browser().open(done.location);
    assert.deepEqual([stranger.status, stranger.location], [400, '']);
    assert.equal((await browser.open(done.location)).status, 303);
    assert.equal((await browser.open(done.location)).status, 400);
  });
});

suite('authorization server: behind TLS', (t) => {
  let world: World;
  t.before(async () => {
    const issuer = 'https://auth.example';
    world = await oauthWorld({}, { deps: { authUrl: () => issuer, consoleUrl: () => 'https://console.example' } });
  });
  t.after(() => world?.close());

  t('its cookies are of this host and for TLS alone, and its addresses are the configured ones', async () => {
    const it = oauthOf(world);
    const headers = { host: 'auth.example' };
    const found = await raw(world.origin(), 'GET', metadata, headers);
    assert.equal(JSON.parse(found.text).token_endpoint, 'https://auth.example/oauth/token');
    assert.equal((await raw(world.origin(), 'GET', metadata, { host: 'auth.example:443' })).status, 200);
    assert.equal((await raw(world.origin(), 'GET', metadata, { host: 'auth.example:80' })).status, 421);
    const { keep } = await import('#test/support/oauth.ts');
    const clientId = await keep(world);
    const url = new URL(it.authorizeUrl({ client_id: clientId }, pkce()));
    const asked = await raw(world.origin(), 'GET', url.pathname + url.search, headers);
    assert.equal(asked.status, 303, asked.text);
    const cookies = asked.headers['set-cookie'] as readonly string[];
    assert.equal(cookies.length, 4);
    for (const one of cookies) assert.match(one, /^__Secure-oauth_(?:asked|resume)(?:\.sig)?=.*; secure; httponly/i);
  });
});

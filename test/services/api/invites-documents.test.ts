/** What networks and browsers are told of a consent: the documents of Bluesky's client, and where a form may lead. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { blueskyConsent } from '#infra/platforms/bluesky/index.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { suite } from '#test/support/suite.ts';

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = { ...pair.privateKey.export({ format: 'jwk' }), kid: 'key-of-the-test', alg: 'ES256' };
const burst = 40;
const origin = 'https://pages.example';

const jsonOf = (answer: Response) => answer.json() as Promise<Readonly<Record<string, unknown>>>;

suite('a consent, as networks and browsers are told of it', (t) => {
  let it: Awaited<ReturnType<typeof liveWorld>>;
  t.before(async () => {
    const connectorsOf: Parameters<typeof liveWorld>[0] = ({ http }) => ({
      bluesky: [blueskyConsent({ http, keys: [key], clock: () => Date.now() })],
    });
    // Nothing of it is given back while the test runs.
    it = await liveWorld(connectorsOf, { rate: { perMinute: 1, burst }, deps: { consoleUrl: () => origin } });
  });
  t.after(() => it?.close());
  const read = (path: string, init: RequestInit = {}) => fetch(`${it.world.origin()}${path}`, init);

  t('documents are read by anybody, from anywhere, and kept for minutes', async () => {
    const answer = await read('/connect/client-metadata.json');
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=300');
    const { client_id: id, redirect_uris: back, jwks_uri: keys } = await jsonOf(answer);
    assert.equal(id, `${origin}/connect/client-metadata.json`);
    assert.deepEqual(back, [`${origin}/connect/callback`]);
    assert.equal(keys, `${origin}/connect/jwks.json`);
    const head = await read('/connect/client-metadata.json', { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
  });

  t('documents show of a key what anybody may know', async () => {
    const answer = await read('/connect/jwks.json');
    const text = await answer.text();
    assert.ok(typeof key.d === 'string' && !text.includes(key.d));
    const [shown, ...others] = JSON.parse(text).keys;
    assert.deepEqual(others, []);
    assert.deepEqual([shown.kid, shown.x, shown.y, shown.d], [key.kid, key.x, key.y, undefined]);
  });

  t('any other path is a 404 problem', async () => {
    for (const path of [
      ...['nothing.json', 'client-metadata.json/', 'Client-metadata.json', 'constructor', '__proto__', '%00'],
      ...['..%2fjwks.json', 'jwks.json%00', 'a'.repeat(2_000)],
    ]) {
      const answer = await read(`/connect/${path}`);
      assert.equal(answer.status, 404, path);
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
      assert.equal((await jsonOf(answer)).code, 'not_found');
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
    }
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status } = await read('/connect/jwks.json', { method });
      assert.ok(status === 404 || status === 405, `${method} ${status}`);
    }
  });

  t('the page of a link leads by https to any host, and nowhere without it', async () => {
    const { id } = (await it.world.owner.post('/clients', { name: 'Café', type: 'brand' })).data;
    const made = await it.world.owner.post(`/clients/${id}/connect-invites`, { platforms: ['bluesky'] });
    const { pathname } = new URL(String(made.data.url));
    const policy = (await read(pathname)).headers.get('content-security-policy') ?? '';
    assert.match(policy, /; form-action 'self' https:; base-uri 'none'/);
    assert.match((await read('/connect/code/x')).headers.get('content-security-policy') ?? '', /form-action 'self';/);
  });

  t('documents cost an address of its allowance', async () => {
    const statuses: number[] = [];
    for (let at = 0; at <= burst; at += 1) statuses.push((await read('/connect/jwks.json')).status);
    assert.equal(statuses[0], 200);
    assert.equal(statuses.at(-1), 429);
    const refused = await read('/connect/jwks.json');
    assert.equal((await jsonOf(refused)).code, 'rate_limited');
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
  });
});

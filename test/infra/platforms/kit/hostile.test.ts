/** The kit before a network, a proxy or a name that means no good: what it repeats, what it nests, what it only half says. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Ask, NetworkClient } from '#infra/platforms/kit/client.ts';
import { beforeBoundary, behindBoundary, type NetworkAnswer } from '#infra/platforms/kit/errors.ts';
import { exchangeCode, newVerifier, type OAuthTable, refreshTokens } from '#infra/platforms/kit/oauth.ts';
import type { NetworkTables } from '#infra/platforms/kit/tables.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';
import { appAt, http, type KitWorld, kitWorld, oauthOf, within } from './world.ts';

const token = 'THAAsecret|with/every+kind=of.character';
const lasting = { secret: { accessToken: token, accessUntil: null } };
const makes: NetworkTables['makes'] = [{ method: 'POST', path: '/v1/:id/media_publish' }];
const publishing = { method: 'POST', path: '/v1/17/media_publish' } as const;

suite('hostile answers to the kit', (t) => {
  let world: KitWorld;
  t.before.each(async () => {
    world = await kitWorld({ makes });
  });
  t.after.each(() => world.close());

  const once = async (from: KitWorld = world): Promise<NetworkAnswer> => {
    const subject = await from.account(lasting);
    const open = await from.client.open(subject, within());
    assert.ok(open.kind === 'open');
    return from.client.once(open, subject, publishing, within());
  };
  const outcomeOf = (answer: NetworkAnswer, from: KitWorld = world) => {
    assert.ok(answer.kind !== 'ok');
    return behindBoundary(answer, from.bound.clock()).kind;
  };

  t('however its path is written, a call that makes something visible is one', async () => {
    const { origin } = world;
    const paths = [
      ...['/v1/17/media_publish/', '/v1//17/media_publish', '/V1/17/Media_Publish', '/v1/17/media%5Fpublish'],
      ...['/v1/17/%6dedia_publish', '/v1/17/x/../media_publish', '/v1/17/media_publish#x', '/v1/17/%2e/media_publish'],
      ...['/v1/17\\media_publish', '/v1/17/media_\tpublish', '/v1/17/media%255Fpublish', '/v1/17/media_publish%2F'],
      ...[`${origin.replace('http', 'HTTP')}/api/v1/17/media_publish`, `${origin}/x/../api/v1/17/media_publish`],
    ];
    const subject = await world.account(lasting);
    for (const path of paths) {
      await assert.rejects(
        () => world.client.call(subject, { method: 'POST', path }, within()),
        /makes something visible/,
        path,
      );
    }
    assert.equal(world.received.length, 0);
  });

  t('a path below one address of the app may be below another one too', async () => {
    const { addresses } = world.bound.app;
    const app = { ...world.bound.app, addresses: { ...addresses, uploads: `${addresses.api}/v1` } };
    const client = new NetworkClient({ ...world.bound, app });
    const subject = await world.account(lasting);
    for (const path of ['/v1/17/media_publish', '{uploads}/17/media_publish']) {
      await assert.rejects(
        () => client.call(subject, { method: 'POST', path }, within()),
        /makes something visible/,
        path,
      );
    }
    const below = [{ method: 'POST', path: '/:id/media_publish' }] as const;
    const other = new NetworkClient({ ...world.bound, app, tables: { ...world.bound.tables, makes: below } });
    const call = other.call(subject, { method: 'POST', path: '{uploads}/17/media_publish' }, within());
    await assert.rejects(() => call, /makes something visible/);
  });

  t('a token leaves the addresses of the app by no way of writing another one', async () => {
    const { host } = new URL(world.origin);
    const subject = await world.account(lasting);
    const sent: [string, string | undefined][] = [];
    const client = new NetworkClient({
      ...world.bound,
      http: {
        send: async ({ url, headers }) => {
          sent.push([url, headers.authorization]);
          return { kind: 'silent', reason: 'timeout' };
        },
      },
    });
    const others = [
      ...[`http://${host}@evil.test/api/x`, `http://${host}/api@evil.test`, '{api}@evil.test/x', '{api}.evil.test/x'],
      ...[`http://${host}:1/api/x`, `https://${host}/api/x`, `http://evil.test/${host}/api/x`, '{api}/../other/x'],
      ...['{api}/%2e%2e/other/x', '@evil.test/x', `http://${host}.evil.test/api/x`, `http://user:word@${host}/api/x`],
      ...['{api}\\..\\other', '//../../other/x', '{api}/..%2fother/x'],
    ];
    for (const path of others) await client.call(subject, { method: 'GET', path }, within());
    assert.deepEqual(
      sent.filter(([, authorization]) => authorization !== undefined),
      [],
    );
    await client.call(subject, { method: 'GET', path: '//evil.test/x' }, within());
    assert.deepEqual(sent.at(-1), [`${world.origin}/api//evil.test/x`, `Bearer ${token}`]);
  });

  t('a token opens one call that makes something', async () => {
    world.on('POST /api/v1/17/media_publish', { body: { id: '1' } });
    const subject = await world.account(lasting);
    const open = await world.client.open(subject, within());
    assert.ok(open.kind === 'open');
    assert.equal((await world.client.once(open, subject, publishing, within())).kind, 'ok');
    assert.throws(() => world.client.once(open, subject, publishing, within()), /a second call/);
    assert.equal(world.received.length, 1);
  });

  t('a server that fails may have made the post first, whatever its status says', async () => {
    const failing = await kitWorld({ makes, errors: [{ where: { 'error.code': [1, 2] }, means: 'down' }] });
    failing.on(
      'POST /api/v1/17/media_publish',
      { status: 400, body: { error: { code: 2, message: 'An unexpected error. Please retry.' } } },
      { status: 408, body: '<html>Request Timeout</html>' },
      { status: 503, body: '' },
    );
    for (const _ of [1, 2, 3]) assert.equal(outcomeOf(await once(failing), failing), 'unknown');
    failing.on('POST /api/v1/17/media_publish', { status: 400, body: { error: { code: 3 } } });
    assert.equal(outcomeOf(await once(failing), failing), 'failed');
    failing.close();
  });

  t('a good status with words that nobody knows is no proof that nothing was made', async () => {
    const strict = await kitWorld({
      ...{ makes, errors: [{ where: { 'error.code': ['spam_risk'] }, means: 'content' }] },
      isRefusal: ({ error }) => (error as { code?: string } | undefined)?.code !== 'ok',
    });
    const bodies = ['{}', '{"status":"success"}', '<html>Welcome to the hotel</html>', '{"error":{"code":"o', '[]', ''];
    for (const body of bodies) {
      strict.on('POST /api/v1/17/media_publish', { body });
      const answer = await once(strict);
      if (answer.kind !== 'ok') assert.equal(outcomeOf(answer, strict), 'unknown', body);
    }
    strict.on('POST /api/v1/17/media_publish', { body: { error: { code: 'spam_risk' } } });
    assert.equal(outcomeOf(await once(strict), strict), 'failed');
    strict.close();
  });

  t('a server that the network named says nothing of the account and of the app', async () => {
    const storage = await kitWorld();
    const refresh: OAuthTable['refresh'] = {
      ...{ method: 'POST', url: '{tokens}/token', as: 'form', kind: 'rotates', minAgeMs: 0 },
      params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
    };
    const odd = await kitWorld({
      ...{ makes, oauth: oauthOf({ refresh }), usage: { app: 'x-app-usage', accounts: ['x-usage'] } },
      errors: [
        { status: 401, means: 'lapsed', renews: true },
        { status: 402, means: 'unpaid', ofApp: true },
        { status: 429, means: 'limited', ofApp: true },
        { status: 403, means: 'permission' },
      ],
    });
    odd.on('POST /tokens/token', { body: { access_token: 'another', refresh_token: 'r2' } });
    const subject = await odd.account({ secret: { ...lasting.secret, refreshToken: 'r' } });
    const headers = { 'x-app-usage': '{"call_count":100}', 'retry-after': '9999' };
    const ask: Ask = { method: 'PUT', path: `${storage.origin}/part`, json: {} };
    for (const status of [200, 400, 401, 402, 403, 404, 408, 410, 429, 500]) {
      storage.on('PUT /part', { status, headers, body: '<Error><Code>AccessDenied</Code></Error>' });
      const answer = await odd.client.call(subject, ask, within());
      if (answer.kind === 'ok') continue;
      const outcome = beforeBoundary(answer, odd.bound.clock());
      assert.deepEqual(
        [answer.kind, outcome.kind, outcome.failure.actor],
        ['refused', 'deferred', 'platform'],
        String(status),
      );
    }
    assert.equal(odd.received.length, 0, 'no token is renewed');
    assert.equal(await odd.appLimits.restOf('threads:app-id', true, odd.bound.clock()), null, 'nothing rests');
    for (const one of [storage, odd]) one.close();
  });

  t('a question that is answered by a page of a proxy has no answer', async () => {
    const subject = await world.account(lasting);
    for (const body of ['<html>Welcome to the hotel</html>', '{"data":[{"id"', '', '[]', 'null']) {
      world.on('GET /api/x', { body });
      assert.equal((await world.client.call(subject, { method: 'GET', path: '/x' }, within())).kind, 'silent', body);
    }
    // What takes a file may answer it with anything.
    world.on('PUT /api/x', { status: 201, body: '<PostResponse/>' });
    assert.equal((await world.client.call(subject, { method: 'PUT', path: '/x' }, within())).kind, 'ok');
  });

  t('a token that the network repeats is in no failure and in no answer', async () => {
    const ways = [token, encodeURIComponent(token), token.replaceAll('/', '\\/')];
    const client = (over: Partial<NetworkTables> = {}) =>
      new NetworkClient({
        ...world.bound,
        tables: { ...world.bound.tables, code: (body) => String(body?.code), ...over },
      });
    const subject = await world.account(lasting);
    for (const way of ways) {
      const body = `{"code":"${way}","error":{"message":"Malformed access token ${way}"},"paging":{"next":"https://h.test/?t=${way}"}}`;
      for (const status of [200, 400]) {
        world.on('GET /api/x', { status, body });
        const asked = [
          await client().call(subject, { method: 'GET', path: '/x' }, within()),
          await client().callAs(token, { method: 'GET', path: '/x' }, within()),
        ];
        for (const answer of asked) {
          const said = JSON.stringify({ ...answer, headers: {} });
          for (const secret of [token, encodeURIComponent(token), JSON.stringify(token).slice(1, -1)]) {
            assert.ok(!said.includes(secret), `${status} ${way}: ${said}`);
          }
          assert.match(said, /Malformed access token …/);
        }
      }
    }
  });

  t('what an answer nests ten thousand deep, and a number beyond all, throws nothing', async () => {
    const deep = (open: string, close: string, of = '"x"'): string => open.repeat(10_000) + of + close.repeat(10_000);
    const errors: NetworkTables['errors'] = [{ where: { 'error.code': /^spam$/ }, means: 'content' }];
    const odd = await kitWorld({ makes, errors, usage: { app: 'x-app-usage', accounts: ['x-usage'] } });
    const bodies = [
      ...[`{"error":{"code":${deep('[', ']')}}}`, `{"error":${deep('{"code":', '}')}}`],
      ...[
        `{"error":{"code":1e400,"message":"${'['.repeat(10_000)}"}}`,
        `{"id":1234567890123456789,"a":${deep('[', ']')}}`,
      ],
    ];
    const subject = await odd.account(lasting);
    for (const body of bodies) {
      for (const status of [200, 400]) {
        odd.on('GET /api/x', { status, body, headers: { 'x-app-usage': deep('[', ']').slice(0, 9_000) } });
        const answer = await odd.client.call(subject, { method: 'GET', path: '/x' }, within());
        JSON.stringify(answer);
      }
    }
    odd.on('GET /api/x', { body: bodies[2] });
    const read = await odd.client.call(subject, { method: 'GET', path: '/x' }, within());
    assert.equal(read.kind, 'ok', 'brackets within words nest nothing');
    odd.close();
  });

  t('a call that dies before it is made costs nothing of the month', async () => {
    const app = appAt(world.origin, { monthlyReads: 30 });
    const dead = new MemoryCredentials();
    dead.read = () => Promise.reject(new Error('the database is away'));
    const client = new NetworkClient({ ...world.bound, app, credentials: dead });
    const cost = { workspaceId: randomUUID(), reads: 15, isOptional: false };
    const ask: Ask = { method: 'GET', path: '/x', cost };
    await assert.rejects(() => client.call({ accountId: '1', targetId: null }, ask, within()), /database is away/);
    world.on('GET /api/x', { body: {} });
    const alive = new NetworkClient({ ...world.bound, app });
    assert.equal((await alive.call(await world.account(lasting), ask, within())).kind, 'ok');
  });
});

suite('hostile answers to a code', (t) => {
  let world: KitWorld;
  t.before.each(async () => {
    world = await kitWorld();
  });
  t.after.each(() => world.close());
  const asked = { code: 'the-code-of-the-login', verifier: newVerifier(), redirectUri: 'https://postline.test/x' };
  const long: OAuthTable['exchange'][number] = {
    ...{ method: 'GET', url: '{tokens}/long', as: 'query', isBare: true },
    params: { client_secret: '{secret}', access_token: '{token}' },
  };
  const exchange = (over: Partial<OAuthTable> = {}) => {
    const oauth = oauthOf({ seconds: { access: 5_184_000, most: 5_184_000, refresh: null }, ...over });
    return exchangeCode({ http, oauth, app: appAt(world.origin), clock: world.bound.clock }, asked, within());
  };

  t('a short token is never kept for the long one that the next step did not give', async () => {
    world.on('POST /tokens/token', { body: { access_token: 'short', expires_in: 3_600 } });
    const [first] = oauthOf().exchange;
    for (const body of [{}, { expires_in: 5_184_000 }, { access_token: '' }, '<html></html>']) {
      world.on('GET /tokens/long', { body });
      assert.equal((await exchange({ exchange: [first, long] })).kind, 'unavailable', JSON.stringify(body));
    }
  });

  t('a token that no header takes is none', async () => {
    for (const access_token of ['a\r\nx-evil: 1', 'a\u0000', '\u2713', '', 7, ['a'], 'a'.repeat(8_193)]) {
      world.on('POST /tokens/token', { body: { access_token } });
      assert.equal((await exchange()).kind, 'unavailable', JSON.stringify(access_token).slice(0, 40));
    }
    world.on('POST /tokens/token', { body: { access_token: 'a'.repeat(8_192) } });
    assert.equal((await exchange()).kind, 'exchanged');
  });

  t('what the network repeats of a code or of the secret of the app is told to nobody', async () => {
    for (const secret of [asked.code, 'app:secret', encodeURIComponent('app:secret')]) {
      const words = `Error validating ${secret}.`;
      world.on('POST /tokens/token', { status: 400, body: { error: words, error_description: words } });
      const refused = await exchange();
      assert.deepEqual(refused, { kind: 'refused', error: 'Error validating ….', reason: 'Error validating ….' });
    }
    const refresh: OAuthTable['refresh'] = {
      ...{ method: 'POST', url: '{tokens}/token', as: 'form', kind: 'rotates', minAgeMs: 0 },
      params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
    };
    const { clock } = world.bound;
    const tools = { http, oauth: oauthOf({ refresh }), app: appAt(world.origin), clock };
    const former = { secret: { accessToken: token, refreshToken: 'refresh/token' }, expiresAt: null, version: 1 };
    for (const secret of [token, 'refresh/token', encodeURIComponent('refresh/token'), 'app:secret']) {
      const body = { error: 'invalid_grant', error_description: `Error validating ${secret}.` };
      world.on('POST /tokens/token', { status: 400, body });
      const said = await refreshTokens(tools, former, { accountId: '1', targetId: null }, within());
      assert.deepEqual(said, { kind: 'refused', reason: 'Error validating ….' });
    }
  });
});

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import knexFor from 'knex';
import { mintSecret } from '#runtime/identity/key-form.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { contractFiles } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { errorPages } from '#services/api/reference.ts';
import { revokeApiKey, rotateApiKey } from '#services/workflows/provision.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';

suite('errors over HTTP', { waits: true }, (t) => {
  let world: World;
  let owner: Caller;
  t.before(async () => {
    world = await startWorld();
    owner = world.owner;
  });
  t.after(() => world.close());

  /** A problem is whole: members, headers, the page it points to. */
  const isProblem = async (answer: Answered, status: number, code: string): Promise<void> => {
    assert.equal(answer.status, status, answer.text);
    const { body, headers } = answer;
    assert.equal(body.code, code);
    assert.equal(body.status, status);
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
    assert.equal(body.correlationId, headers.get('x-correlation-id'));
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.ok(headers.get('ratelimit') && headers.get('ratelimit-policy'));
    assert.equal(body.type, `${world.origin()}/v1/errors/${code}`);
    assert.ok(body.title);
    assert.ok(body.category);
    const page = await fetch(String(body.type));
    assert.equal(page.status, 200);
  };

  t('401: a missing, unknown, malformed, expired or revoked key, and one of a removed member', async () => {
    const missing = await world.anonymous.get('/clients');
    await isProblem(missing, 401, 'missing_token');
    const challenge = missing.headers.get('www-authenticate') ?? '';
    assert.ok(challenge.startsWith('Bearer resource_metadata=') && !challenge.includes('error='), challenge);
    for (const token of ['nonsense', 'sk_live_short', `sk_live_${'a'.repeat(43)}`, 'a b']) {
      const refused = await world.callerWith(token).get('/clients');
      await isProblem(refused, 401, token === 'a b' ? 'missing_token' : 'invalid_token');
      assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer/);
    }
    await isProblem(await owner.get('/clients', { headers: { authorization: 'Basic eDp5' } }), 401, 'missing_token');
    // The stored hash opens nothing.
    const hash = createHash('sha256')
      .update(owner.token ?? '')
      .digest('hex');
    await isProblem(await world.callerWith(`sk_live_${hash}`).get('/clients'), 401, 'invalid_token');

    const short = await world.keyOf(world.workspaceId, world.memberId, { expiresInMs: 5_000 });
    assert.equal((await short.caller.get('/agency')).status, 200);
    world.clock.shiftMs = 6_000;
    await isProblem(await short.caller.get('/agency'), 401, 'token_expired');
    world.clock.shiftMs = 0;

    const gone = await world.keyOf(world.workspaceId, world.memberId);
    assert.equal((await gone.caller.get('/agency')).status, 200);
    await revokeApiKey(world.operator, world.workspaceId, gone.id);
    await world.settled();
    const until = performance.now() + 1_000;
    let last = await gone.caller.get('/agency');
    while (last.status === 200 && performance.now() < until) last = await gone.caller.get('/agency');
    await isProblem(last, 401, 'token_revoked');
  });

  t('a rotated key works a day more', async () => {
    const key = await world.keyOf(world.workspaceId, world.memberId, { expiresInMs: 40 * 86_400_000 });
    const { secret } = await rotateApiKey(world.operator, world.workspaceId, key.id);
    await world.settled();
    assert.equal((await world.callerWith(secret).get('/agency')).status, 200);
    assert.equal((await key.caller.get('/agency')).status, 200);
    world.clock.shiftMs = 25 * 3_600_000;
    await isProblem(await key.caller.get('/agency'), 401, 'token_expired');
    assert.equal((await world.callerWith(secret).get('/agency')).status, 200);
    world.clock.shiftMs = 0;
  });

  t('403: the scope, then the role', async () => {
    const poor = await world.keyOf(world.workspaceId, world.memberId, { scopes: ['agency.read'] });
    const refused = await poor.caller.get('/clients');
    await isProblem(refused, 403, 'insufficient_scope');
    assert.match(String(refused.body.detail), /clients\.read/);
    const viewer = await world.memberOf(world.workspaceId, 'viewer');
    const looks = await world.keyOf(world.workspaceId, viewer);
    await isProblem(await looks.caller.post('/clients', { name: 'X', type: 'brand' }), 403, 'role_required');
    const manager = await world.memberOf(world.workspaceId, 'manager');
    const manages = await world.keyOf(world.workspaceId, manager);
    const { id } = (await manages.caller.post('/clients', { name: 'Managed', type: 'brand' })).data;
    await isProblem(await manages.caller.delete(`/clients/${id}`), 403, 'role_required');
    // An auth failure tells nothing of the id.
    await isProblem(await manages.caller.delete(`/clients/${nowhere}`), 403, 'role_required');
  });

  t('404: unknown and malformed ids, unknown paths, in the same words', async () => {
    const words = new Set<unknown>();
    for (const id of [
      nowhere,
      'nonsense',
      '%00',
      '..%2f',
      '%zz',
      `${nowhere}0`,
      nowhere.toUpperCase().replace('0', 'F'),
    ]) {
      const refused = await owner.get(`/clients/${id}`);
      await isProblem(refused, 404, 'not_found');
      words.add(refused.body.detail);
    }
    assert.equal(words.size, 1);
    for (const path of [
      '/nothing',
      '/clients/',
      '/Clients',
      '/%63lients',
      '/clients/x/y',
      '//clients',
      '/errors/none',
    ]) {
      await isProblem(await owner.get(path), 404, 'not_found');
    }
    await isProblem(await owner.patch(`/clients/${nowhere}`, { type: 'brand' }), 404, 'not_found');
    await isProblem(await owner.delete(`/clients/${nowhere}`), 404, 'not_found');
    await isProblem(await owner.post(`/clients/${nowhere}/connect-invites`, { platforms: ['x'] }), 404, 'not_found');
    const outside = await fetch(`${world.origin()}/clients`);
    assert.equal(outside.status, 404);
  });

  t('405 with Allow before any token; OPTIONS and HEAD; no method override; no CORS', async () => {
    const refused = await world.anonymous.request('PUT', '/clients', { body: {} });
    await isProblem(refused, 405, 'method_not_allowed');
    assert.equal(refused.headers.get('allow'), 'GET, HEAD, POST, OPTIONS');
    const asked = await world.anonymous.request('OPTIONS', '/clients', {
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    });
    assert.equal(asked.status, 204);
    assert.equal(asked.headers.get('access-control-allow-origin'), null);
    // `/media/{id}` matches these paths too.
    for (const path of ['/media/presign', '/media/import-url']) {
      const fixed = await owner.get(path);
      await isProblem(fixed, 405, 'method_not_allowed');
      assert.equal(fixed.headers.get('allow'), 'POST, OPTIONS');
      const options = await world.anonymous.request('OPTIONS', path);
      assert.equal(options.headers.get('allow'), 'POST, OPTIONS');
    }
    const head = await owner.request('HEAD', '/clients');
    assert.equal(head.status, 200);
    assert.equal(head.text, '');
    const overridden = await owner.get('/clients', { headers: { 'x-http-method-override': 'DELETE' } });
    assert.equal(overridden.status, 200);
  });

  t('406, 413, 415', async () => {
    await isProblem(await owner.get('/clients', { headers: { accept: 'text/html' } }), 406, 'not_acceptable');
    assert.equal((await owner.get('/clients', { headers: { accept: 'application/*;q=0.5' } })).status, 200);
    const big = JSON.stringify({ name: 'x'.repeat(10 * 1024 * 1024), type: 'brand' });
    await isProblem(await owner.request('POST', '/clients', { raw: big }), 413, 'payload_too_large');
    await isProblem(await chunked(world, '/v1/clients', 3 * 1024 * 1024), 413, 'payload_too_large');
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=latin1',
      'multipart/form-data',
    ]) {
      const refused = await owner.request('POST', '/clients', { raw: '{}', headers: { 'content-type': type } });
      await isProblem(refused, 415, 'unsupported_media_type');
    }
    const zipped = await owner.request('POST', '/clients', { raw: '{}', headers: { 'content-encoding': 'gzip' } });
    await isProblem(zipped, 415, 'unsupported_media_type');
    const merge = { 'content-type': 'application/merge-patch+json; charset=UTF-8' };
    const { id } = (await owner.post('/clients', { name: 'Typed', type: 'brand' })).data;
    assert.equal((await owner.patch(`/clients/${id}`, { type: 'brand' }, { headers: merge })).status, 200);
  });

  t('400: the key, where one is required', async () => {
    const body = { name: 'Keyed', type: 'brand' };
    await isProblem(await owner.post('/clients', body, { key: null }), 400, 'idempotency_key_required');
    for (const key of ['has space', 'x'.repeat(256), 'ü']) {
      await isProblem(await owner.post('/clients', body, { key }), 400, 'idempotency_key_invalid');
    }
    // Body before key, key before resource.
    await isProblem(await owner.post('/clients', {}, { key: null }), 422, 'validation_failed');
    await isProblem(
      await owner.post(`/clients/${nowhere}/connect-invites`, { platforms: ['x'] }, { key: null }),
      400,
      'idempotency_key_required',
    );
    assert.equal((await owner.post('/clients', body, { key: '!~' })).status, 200);
  });

  t('a refused call leaves its key free', async () => {
    const key = randomUUID();
    await isProblem(await owner.post('/clients', { name: '', type: 'brand' }, { key }), 422, 'validation_failed');
    assert.equal((await owner.post('/clients', { name: 'Corrected', type: 'brand' }, { key })).status, 200);
  });

  t('a large body counts for more requests, also one that is refused', async () => {
    const small = await startWorld({ rate: { perMinute: 60, burst: 200 } });
    const left = (answer: Answered): number => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
    const send = (bytes: number): Promise<Answered> =>
      small.owner.request('POST', '/clients', { raw: JSON.stringify({ name: 'a'.repeat(bytes) }) });
    try {
      assert.equal(left(await send(31_000)), 199);
      // 390 KiB are 48 times 8 KiB, and the call is one.
      const large = await send(390 * 1024);
      assert.equal(large.status, 422);
      assert.equal(left(large), 199 - 49);
      // Counted before they are read: what is left is enough for one of three.
      const three = await Promise.all([send(790 * 1024), send(790 * 1024), send(790 * 1024)]);
      assert.deepEqual(three.map(({ status }) => status).sort(), [422, 429, 429]);
      // What is left is there for a small one.
      assert.equal((await small.owner.get('/agency')).status, 200);
    } finally {
      await small.close();
    }
  });

  t('the cost of a body that is known only after reading is debt, which outlasts the window', async () => {
    const small = await startWorld({ rate: { perMinute: 60, burst: 10 } });
    try {
      // Ten thousand values count as 122 requests, of which one second gives back one; a window has ten.
      const many = await small.owner.request('POST', '/clients', { raw: `[${'1,'.repeat(15_000)}1]` });
      assert.equal(many.status, 413);
      assert.match(many.headers.get('ratelimit') ?? '', /^"default";r=0;t=1[12]\d$/);
      assert.equal((await small.owner.get('/agency')).status, 429);
      assert.equal((await small.tester.get('/agency')).status, 200);
    } finally {
      await small.close();
    }
  });

  t('429 with Retry-After and the remaining allowance; another credential is not affected', async () => {
    const small = await startWorld({ rate: { perMinute: 60, burst: 5 } });
    try {
      const answers = [];
      for (let at = 0; at < 6; at += 1) answers.push(await small.owner.get('/agency'));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200, 429],
      );
      const last = answers.at(-1);
      assert.equal(last?.body.code, 'rate_limited');
      assert.ok(Number(last?.headers.get('retry-after')) >= 1);
      assert.equal(answers[0]?.headers.get('ratelimit-policy'), '"default";q=5;w=5');
      assert.match(answers[0]?.headers.get('ratelimit') ?? '', /^"default";r=4;t=\d+$/);
      assert.equal((await small.tester.get('/agency')).status, 200);
      // Scope comes before the limit, the limit before the body.
      assert.equal((await small.owner.request('POST', '/clients', { raw: '{' })).status, 429);
      // Guessing tokens ends too.
      const guesses = [];
      for (let at = 0; at < 7; at += 1)
        guesses.push((await small.callerWith(mintSecret('live')).get('/agency')).status);
      assert.deepEqual(guesses, [401, 401, 401, 401, 401, 429, 429]);
      assert.equal((await small.tester.get('/agency')).status, 200);
    } finally {
      await small.close();
    }
  });

  t('all keys of a workspace have what five have; another workspace has its own', async () => {
    const small = await startWorld({ rate: { perMinute: 6, burst: 2 } });
    try {
      const keys = [];
      for (let at = 0; at < 6; at += 1) keys.push(await small.keyOf(small.workspaceId, small.memberId));
      const answers: Answered[] = [];
      for (const { caller } of keys) for (let at = 0; at < 2; at += 1) answers.push(await caller.get('/agency'));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [...Array(10).fill(200), 429, 429],
      );
      const refused = answers.at(-1)?.headers;
      assert.equal(refused?.get('ratelimit-policy'), '"default";q=10;w=20');
      assert.match(refused?.get('ratelimit') ?? '', /^"default";r=0;t=\d+$/);
      assert.ok(Number(refused?.get('retry-after')) > 1);
      // Its people come in none the less: who else would end the key that takes it all?
      const { memberId, workspaceId, store, secrets, deps } = small;
      const [about, sessions] = [
        { memberId, workspaceId, mode: 'live' } as const,
        { store, secrets, clock: deps.clock },
      ];
      const ofPerson = async () => small.callerWith((await mintSession(sessions, about)).token);
      const people: Caller[] = [];
      for (let at = 0; at < 8; at += 1) people.push(await ofPerson());
      const [first] = people;
      assert.equal((await first?.request('DELETE', `/api-keys/${keys[0]?.id}`))?.status, 200);
      const all = [];
      for (const one of people) for (let at = 0; at < 2; at += 1) all.push((await one.get('/agency')).status);
      assert.equal(all.filter((status) => status === 200).length, 9, 'and have as much as five keys have');
      // Its sandbox is the same workspace.
      assert.equal((await small.tester.get('/agency')).status, 429);
      assert.equal((await (await small.agency('Other')).owner.get('/agency')).status, 200);
    } finally {
      await small.close();
    }
  });

  t('500 reveals nothing and is logged; 503 when a store is unavailable', async () => {
    const closed = knexFor({
      client: 'pg',
      connection: 'postgres://nobody@127.0.0.1:1/none',
      pool: { min: 0, max: 1 },
    });
    const broken = await startWorld({
      deps: {
        knex: closed,
        caughtUp: async () => {
          throw new TypeError('canary-7f3a in the stack');
        },
      },
    });
    try {
      const away = await broken.owner.get('/agency');
      assert.equal(away.status, 503, away.text);
      assert.equal(away.body.code, 'unavailable');
      assert.ok(Number(away.headers.get('retry-after')) >= 1);
      const made = await broken.owner.post('/clients', { name: 'Written', type: 'brand' });
      assert.equal(made.status, 200);
      const failed = await broken.owner.get(`/clients/${made.data.id}`);
      assert.equal(failed.status, 500);
      assert.equal(failed.body.code, 'internal');
      assert.doesNotMatch(failed.text, /canary|TypeError/);
      const line = broken.lines.find((one) => one.includes('canary-7f3a'));
      assert.ok(line?.includes(String(failed.body.correlationId)));
    } finally {
      await closed.destroy();
      await broken.close();
    }
  });

  t('a read that stays behind is 503 with Retry-After, never 404 and never old', async () => {
    const late = await startWorld({ deps: { caughtUp: async () => false } });
    try {
      const made = await late.owner.post('/clients', { name: 'Late', type: 'brand' });
      const read = await late.owner.get(`/clients/${made.data.id}`);
      assert.equal(read.status, 503);
      assert.ok(read.headers.get('retry-after'));
      assert.equal((await late.owner.get(`/clients/${nowhere}`)).status, 404);
      assert.equal((await late.owner.get('/clients')).status, 200);
    } finally {
      await late.close();
    }
  });

  t('keeps a caller’s correlation id, and replaces one that is not visible ASCII', async () => {
    const sent = `caller~${'x'.repeat(100)}`;
    const kept = await owner.get('/agency', { headers: { 'x-correlation-id': sent } });
    assert.equal(kept.headers.get('x-correlation-id'), sent);
    assert.equal(kept.body.meta?.correlationId, sent);
    for (const bad of ['has space', 'x'.repeat(129), 'ü']) {
      const replaced = await owner.get('/agency', { headers: { 'x-correlation-id': bad } });
      assert.match(replaced.headers.get('x-correlation-id') ?? '', /^[0-9a-f-]{36}$/);
    }
    const made = await owner.post(
      '/clients',
      { name: 'Correlated', type: 'brand' },
      { headers: { 'x-correlation-id': 'mine' } },
    );
    const [event] = await world.store.readStream(`client-${made.data.id}`);
    assert.equal(event?.metadata.$correlationId, 'mine');
  });

  t('the catalogue is served to programs and people, without a token', async () => {
    const list = await world.anonymous.get('/errors');
    assert.deepEqual(
      list.rows.map(({ code }) => code),
      errorPages.map(({ code }) => code),
    );
    for (const { code } of errorPages) assert.equal((await world.anonymous.get(`/errors/${code}`)).status, 200, code);
    const page = await world.anonymous.get('/errors/not_found', { headers: { accept: 'text/html,*/*;q=0.1' } });
    assert.match(page.text, /<!doctype html>/);
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
    const contract = await world.anonymous.get('/openapi.json');
    assert.equal((contract.body as { servers?: { url: string }[] }).servers?.[0]?.url, `${world.origin()}/v1`);
  });

  t('the contract of the events is served without a token, as it is committed', async () => {
    const { status, body } = await world.anonymous.get('/asyncapi.json');
    assert.equal(status, 200);
    assert.deepEqual(body, JSON.parse(contractFiles(operations)['asyncapi.json'] ?? ''));
  });

  t('no token and no key is in a log line', async () => {
    const canaries = [world.liveKey.secret, world.testKey.secret];
    for (const line of world.lines)
      for (const canary of canaries) assert.ok(!line.includes(canary), 'a secret was logged');
    assert.ok(world.lines.some((line) => line.includes('"operation":"createClient"')));
  });
});

/** A body without a length, longer than allowed. */
const chunked = (world: World, path: string, bytes: number): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const request = http.request(
      `${world.origin()}${path}`,
      {
        method: 'POST',
        headers: {
          authorization: `Bearer ${world.owner.token}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
          'transfer-encoding': 'chunked',
        },
      },
      (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += String(chunk);
        });
        response.on('end', () => {
          const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
          resolve({ status: response.statusCode ?? 0, headers, text, body: JSON.parse(text) } as Answered);
        });
      },
    );
    request.on('error', (error) => (error.message.includes('EPIPE') ? undefined : reject(error)));
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    for (let sent = 0; sent < bytes; sent += chunk.length) request.write(chunk);
    request.end();
  });

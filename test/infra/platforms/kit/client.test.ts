/** Calls of the kit: what it refuses to send, where a token goes, and what of an answer rests an app. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Ask, FileInJson, NetworkClient } from '#infra/platforms/kit/client.ts';
import { beforeBoundary, behindBoundary, type NetworkAnswer } from '#infra/platforms/kit/errors.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import type { OAuthTable } from '#infra/platforms/kit/oauth.ts';
import type { NetworkTables } from '#infra/platforms/kit/tables.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { appAt, type KitWorld, kitWorld, oauthOf, startServer, tablesOf, within } from './world.ts';

const makes: NetworkTables['makes'] = [
  { method: 'POST', path: '/v1/:id/media_publish' },
  { method: 'POST', path: '/:id/videos', when: ({ fields }) => fields?.upload_phase !== 'start' },
  { method: 'PUT', path: null, when: ({ headers }) => /^bytes \d+-(\d+)\/\1$/.test(headers?.['content-range'] ?? '') },
];
const refresh: OAuthTable['refresh'] = {
  ...{ method: 'POST', url: '{tokens}/token', as: 'form', kind: 'rotates', minAgeMs: 0 },
  params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
};
const lapses = { status: 401, means: 'lapsed', renews: true } as const;

suite('calls of the kit', (t) => {
  let world: KitWorld;
  t.before.each(async () => {
    world = await kitWorld({ makes, errors: [lapses], oauth: oauthOf({ refresh }) });
  });
  t.after.each(() => world.close());

  const call = async (ask: Ask) => world.client.call(await world.account(), ask, within());
  const failureOf = (answer: NetworkAnswer) => {
    assert.ok(answer.kind !== 'ok');
    return beforeBoundary(answer, world.bound.clock());
  };

  t('a call that makes something visible is refused before anything is sent, however it is written', async () => {
    const { origin } = world;
    const wrong: readonly Ask[] = [
      { method: 'POST', path: '/v1/17/media_publish' },
      { method: 'POST', path: '/v1/17/media_publish', query: { creation_id: '1' } },
      { method: 'POST', path: '/v1/17/media_publish?creation_id=1' },
      { method: 'POST', path: `${origin}/api/v1/17/media_publish` },
      { method: 'POST', path: '/17/videos', fields: { upload_phase: 'finish' } },
      { method: 'PUT', path: 'https://upload.test/1', headers: { 'content-range': 'bytes 5-9/9' } },
    ];
    for (const ask of wrong) {
      await assert.rejects(() => call(ask), /threads: (?:POST|PUT) .* makes something visible/, JSON.stringify(ask));
      await assert.rejects(() => world.client.callAs('token', ask, within()), /makes something visible/);
    }
    assert.equal(world.received.length, 0);
    world.on('POST /api/17/videos', { body: {} });
    world.on('GET /api/v1/17/media_publish', { body: {} });
    assert.equal((await call({ method: 'POST', path: '/17/videos', fields: { upload_phase: 'start' } })).kind, 'ok');
    assert.equal((await call({ method: 'GET', path: '/v1/17/media_publish' })).kind, 'ok');
  });

  t(
    'the boundary call is one of the table, leaves before anything is awaited, and is made again after a 401 alone',
    async () => {
      const subject = await world.account({
        secret: { accessToken: 'first', refreshToken: 'r', accessUntil: '2027-01-01T00:00:00.000Z' },
      });
      const open = await world.client.open(subject, within());
      assert.ok(open.kind === 'open');
      assert.throws(
        () => world.client.once(open, subject, { method: 'POST', path: '/v1/17/media' }, within()),
        /not in the table/,
      );
      let isSent = false;
      const sends = new NetworkClient({
        ...world.bound,
        http: {
          send: async () => {
            isSent = true;
            return { kind: 'silent', reason: 'timeout' };
          },
        },
      });
      const ask = { method: 'POST', path: '/v1/17/media_publish' } as const;
      const answer = sends.once(open, subject, ask, within());
      assert.equal(isSent, true);
      const silent = await answer;
      assert.ok(silent.kind === 'silent' && behindBoundary(silent, 0).kind === 'unknown');

      world.on('POST /tokens/token', { body: { access_token: 'second', refresh_token: 'r2', expires_in: 3_600 } });
      world.on('POST /api/v1/17/media_publish', { status: 401 }, { body: { id: '1' } });
      assert.equal((await world.client.once(open, subject, ask, within())).kind, 'ok');
      const made = () => world.received.filter(({ path }) => path === '/api/v1/17/media_publish');
      assert.deepEqual(
        made().map(({ headers }) => headers.authorization),
        ['Bearer first', 'Bearer second'],
      );
      for (const status of [400, 403, 409, 500, 503]) {
        world.on('POST /api/v1/17/media_publish', { status });
        const before = made().length;
        const another = await world.client.open(subject, within());
        assert.ok(another.kind === 'open');
        await world.client.once(another, subject, ask, within());
        assert.equal(made().length, before + 1, String(status));
      }
    },
  );

  t('a token goes to the addresses of the app alone', async () => {
    const other = await startServer();
    other.on('PUT /upload', { body: {} });
    world.on('POST /api/v1/media', { body: {} });
    world.on('POST /tokens/x', { body: {} });
    assert.equal((await call({ method: 'PUT', path: `${other.origin}/upload`, json: {} })).kind, 'ok');
    assert.equal((await call({ method: 'PUT', path: `${other.origin}/upload`, scheme: 'OAuth', json: {} })).kind, 'ok');
    for (const { headers } of other.received) {
      assert.deepEqual([headers.authorization, headers['api-version']], [undefined, undefined]);
    }
    await call({ method: 'POST', path: '/v1/media' });
    await call({ method: 'POST', path: '{tokens}/x', scheme: 'OAuth' });
    await call({ method: 'POST', path: `${world.origin}/apis/x` });
    await call({ method: 'POST', path: '{tokens}/x', scheme: 'none' });
    const [own, tokens, beside, bare] = world.received.map(({ headers }) => headers);
    assert.deepEqual([bare?.authorization, bare?.['api-version']], [undefined, undefined], 'as a signed address wants');
    assert.deepEqual([own?.authorization, own?.['api-version']], ['Bearer first', 'v1']);
    assert.deepEqual([tokens?.authorization, tokens?.['api-version']], ['OAuth first', undefined], 'not of the API');
    assert.equal(beside?.authorization, undefined, 'an address that only begins like the app’s');
    other.close();
  });

  t('a status that the caller takes is an answer; a redirect is none', async () => {
    world.on('PUT /api/upload', { status: 308, headers: { range: 'bytes=0-41' } });
    const taken = await call({ method: 'PUT', path: '/upload', takes: [308] });
    assert.ok(taken.kind === 'ok');
    assert.deepEqual([taken.status, taken.headers.range], [308, 'bytes=0-41']);
    assert.equal((await call({ method: 'PUT', path: '/upload' })).kind, 'silent');
  });

  t('16: an id beyond 2^53 is the id that was written', async () => {
    world.on('GET /api/me', { body: '{"data":{"id":7678907398077074696}}' });
    const answer = await call({ method: 'GET', path: '/me' });
    assert.deepEqual(answer.kind === 'ok' && answer.body, { data: { id: '7678907398077074696' } });
  });

  t('bodies are JSON, fields, parts of a file, bytes, or a form that ends with the file', async () => {
    for (const path of ['json', 'fields', 'bytes', 'picture']) world.on(`POST /api/${path}`, { body: {} });
    await call({ method: 'POST', path: '/json', json: { a: 1 } });
    await call({ method: 'POST', path: '/fields', fields: { a: 'b c' } });
    const bytes = { path: import.meta.filename, start: 4, end: 9 };
    await call({ method: 'POST', path: '/bytes', bytes, headers: { 'content-type': 'video/mp4' } });
    const picture = { bytes: Buffer.from('PNG'), headers: { 'content-type': 'image/png' } };
    await call({ method: 'POST', path: '/picture', ...picture });
    const [json, fields, part, whole] = world.received;
    assert.deepEqual([json?.headers['content-type'], json?.body], ['application/json', '{"a":1}']);
    assert.deepEqual([fields?.headers['content-type'], fields?.body], ['application/x-www-form-urlencoded', 'a=b+c']);
    assert.deepEqual([part?.headers['content-type'], part?.body], ['video/mp4', 'Calls']);
    assert.deepEqual([whole?.headers['content-type'], whole?.body], ['image/png', 'PNG']);
  });

  t('a file in JSON is read while the call is sent, wherever it stands and however the text looks', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'postline-kit-client-'));
    try {
      const [place, bytes] = [path.join(folder, 'picture'), randomBytes(500_000)];
      writeFileSync(place, bytes);
      const part = (start: number, end: number) => new FileInJson({ path: place, start, end });
      world.on('PATCH /api/pins', { body: {} });
      const said = 'file-"\\ü😀';
      const json = { said, items: [{ data: part(0, 499_999) }, part(3, 3), [part(1, 2)]], last: null };
      assert.equal((await call({ method: 'PATCH', path: '/pins', json })).kind, 'ok');
      const [one] = world.received;
      const text = (start: number, end: number) => bytes.subarray(start, end).toString('base64');
      const expected = { said, items: [{ data: text(0, 499_999) }, '', [text(1, 2)]], last: null };
      assert.equal(one?.headers['content-type'], 'application/json');
      assert.equal(one?.body.toString(), JSON.stringify(expected));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  t('24: a version that ended rests the app and fails no target', async () => {
    const closed = await kitWorld({ errors: [{ status: 426, means: 'sunset' }] });
    closed.on('GET /api/x', { status: 426, body: { message: 'Requested version 20240101 is not active' } });
    const [one, other] = [await closed.account(), await closed.account()];
    const ask = { method: 'GET', path: '/x' } as const;
    const first = await closed.client.call(one, ask, within());
    assert.ok(first.kind === 'refused');
    const outcome = beforeBoundary(first, closed.bound.clock());
    assert.deepEqual([outcome.kind, outcome.failure.actor], ['rate_limited', 'service']);
    const resting = await closed.client.open(other, within());
    assert.ok(resting.kind === 'resting');
    assert.match(resting.rest.failure.platformMessage ?? '', /20240101/);
    assert.equal(closed.received.length, 1);
    closed.close();
  });

  t('an app that has used most of its limit reads no more for a while, and still posts', async () => {
    const busy = await kitWorld({ usage: { app: 'x-app-usage', accounts: ['x-business-use-case-usage'] } });
    const used = (percent: number) => ({ 'x-app-usage': JSON.stringify({ call_count: percent, total_time: 3 }) });
    busy.on('GET /api/x', { headers: used(79), body: {} }, { headers: used(80), body: {} });
    busy.on('POST /api/y', { body: {} });
    const subject = await busy.account();
    const [read, write] = [{ method: 'GET', path: '/x' } as const, { method: 'POST', path: '/y' } as const];
    for (const kind of ['ok', 'ok', 'resting']) {
      assert.equal((await busy.client.call(subject, read, within())).kind, kind);
    }
    assert.equal((await busy.client.call(subject, write, within())).kind, 'ok');
    busy.pass(300_001);
    assert.equal((await busy.client.call(subject, read, within())).kind, 'ok');
    busy.close();
  });

  t('a way of calling that closed to the app is refused before anything is sent, of both kinds of call', async () => {
    const closed: NetworkTables['closed'] = ({ query = {} }) =>
      query.ids === undefined ? null : 'a call with several ids';
    const strict = await kitWorld({ makes, closed });
    const subject = await strict.account();
    const ask = { method: 'GET', path: '/x', query: { ids: '1,2' } } as const;
    await assert.rejects(
      () => strict.client.call(subject, ask, within()),
      /a call with several ids is closed to this app/,
    );
    const open = await strict.client.open(subject, within());
    assert.ok(open.kind === 'open');
    const post = { method: 'POST', path: '/v1/17/media_publish', query: { ids: '1' } } as const;
    assert.throws(() => strict.client.once(open, subject, post, within()), /is closed to this app/);
    assert.equal(strict.received.length, 0);
    strict.close();
  });

  t('a proof of the app’s secret goes with calls of the API alone', async () => {
    const proved = await kitWorld({ proof: 'appsecret_proof' });
    proved.on('GET /api/x', { body: {} });
    proved.on('GET /elsewhere/y', { body: {} });
    const subject = await proved.account();
    await proved.client.call(subject, { method: 'GET', path: '/x', query: { fields: 'id' } }, within());
    await proved.client.call(subject, { method: 'GET', path: `${proved.origin}/elsewhere/y` }, within());
    const [first, second] = proved.received;
    assert.match(first?.query.get('appsecret_proof') ?? '', /^[0-9a-f]{64}$/);
    assert.deepEqual([first?.query.get('fields'), second?.path, second?.query.size], ['id', '/elsewhere/y', 0]);
    proved.close();
  });

  t('an answer of 200 that says no is a refusal', async () => {
    const strict = await kitWorld({
      isRefusal: ({ error }) => (error as { code?: string } | undefined)?.code !== 'ok',
      errors: [{ where: { 'error.code': ['spam_risk'] }, means: 'limited', wait: 86_400_000 }],
    });
    strict.on(
      'POST /api/x',
      { body: { error: { code: 'spam_risk', message: 'Too many.' } } },
      { body: { error: { code: 'ok' } } },
    );
    const subject = await strict.account();
    const ask = { method: 'POST', path: '/x' } as const;
    const refused = await strict.client.call(subject, ask, within());
    assert.ok(refused.kind === 'refused');
    const outcome = beforeBoundary(refused, strict.bound.clock());
    assert.ok(outcome.kind === 'rate_limited' && outcome.failure.platformMessage === 'Too many.');
    assert.equal(Date.parse(outcome.retryAt) - strict.bound.clock(), 86_400_000);
    assert.equal((await strict.client.call(subject, ask, within())).kind, 'ok');
    strict.close();
  });

  t('25: a token that rotates is renewed once, however many calls of two processes find it ended', async () => {
    const { url } = await preparedDatabase();
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    const pools = [openPool({ url, max: 4 }), openPool({ url, max: 4 })];
    const [first, second] = pools.map((pool) => {
      return new PostgresCredentials({ pool, keys: new PostgresDataKeys({ pool, secrets }) });
    });
    assert.ok(first !== undefined && second !== undefined);
    const one = await kitWorld({ oauth: oauthOf({ refresh }) }, first);
    const other = new NetworkClient({ ...one.bound, credentials: second });
    const ended = { accessToken: 'old', refreshToken: 'r', accessUntil: new Date(one.bound.clock()).toISOString() };
    const subject = await one.account({ secret: ended });
    const renewed = { access_token: 'new', refresh_token: 'r2', expires_in: 3_600 };
    one.on('POST /tokens/token', { body: renewed }, { status: 400, body: { error: 'invalid_grant' } });
    one.on('GET /api/me', { body: {} });
    const calls = [one.client, other, one.client, other].map((client) =>
      client.call(subject, { method: 'GET', path: '/me' }, within()),
    );
    assert.deepEqual(
      (await Promise.all(calls)).map(({ kind }) => kind),
      ['ok', 'ok', 'ok', 'ok'],
    );
    assert.equal(one.received.filter(({ path }) => path === '/tokens/token').length, 1);
    const kept = await second.read(subject.accountId);
    assert.deepEqual([kept?.secret.accessToken, kept?.secret.refreshToken], ['new', 'r2']);
    one.close();
    await Promise.all(pools.map((pool) => pool.end()));
  });

  t(
    'calls that a network counts by the day are taken by all processes before they leave, and figures leave half',
    async () => {
      const one = await kitWorld({ platform: 'linkedin', makes });
      const [subject, path] = [await one.account(), '/v1/17/media_publish'];
      const app = { ...appAt(one.origin), budget: 6 };
      const clientOf = (over: Partial<typeof app> = {}) =>
        new NetworkClient({
          ...one.bound,
          tables: tablesOf({ platform: 'linkedin', makes }),
          app: { ...app, ...over },
        });
      const [first, second, third] = [clientOf(), clientOf(), clientOf({ id: 'another' })];
      for (const call of [`POST /api${path}`, 'GET /api/me', 'PUT /files/1']) one.on(call, { body: {} });
      const me: Ask = { method: 'GET', path: '/me' };
      const figures: Ask = { ...me, isOptional: true };

      const opened = await first.open(subject, within());
      assert.ok(opened.kind === 'open');
      assert.equal((await first.once(opened, subject, { method: 'POST', path, json: {} }, within())).kind, 'ok');
      assert.equal((await second.callAs('token', me, within())).kind, 'ok');
      assert.equal((await second.call(subject, figures, within())).kind, 'ok');
      // A server of files counts nothing.
      for (let at = 0; at < 3; at += 1) {
        assert.equal(
          (await first.call(subject, { method: 'PUT', path: `${one.origin}/files/1` }, within())).kind,
          'ok',
        );
      }
      const before = one.received.length;
      assert.equal((await first.call(subject, figures, within())).kind, 'spent');
      assert.equal(one.received.length, before);
      for (const client of [first, second, first]) assert.equal((await client.call(subject, me, within())).kind, 'ok');

      const spent = [
        await first.open(subject, within()),
        await second.call(subject, me, within()),
        await first.callAs('token', me, within()),
      ];
      for (const answer of spent) {
        assert.ok(answer.kind === 'spent', answer.kind);
        const failed = beforeBoundary(answer, one.bound.clock());
        assert.ok(failed.kind === 'rate_limited');
        assert.deepEqual([failed.retryAt, failed.failure.actor], ['2026-11-02T00:00:00.000Z', 'service']);
        assert.match(failed.failure.platformMessage ?? '', /calls of this day \(UTC\) are used up/);
      }
      assert.equal(one.received.length, before + 3);
      assert.equal((await third.call(subject, me, within())).kind, 'ok', 'another app has its own');
      one.pass(12 * 3_600_000);
      assert.equal((await third.open(await one.account(), within())).kind, 'open');
      assert.equal((await first.open(await one.account(), within())).kind, 'open', 'the next day');
      one.close();
    },
  );

  t('an account of a network that renews nothing lapses when its token has ended', async () => {
    const plain = await kitWorld();
    const subject = await plain.account();
    plain.pass(3_600_000);
    const failed = failureOf(await plain.client.call(subject, { method: 'GET', path: '/me' }, within()));
    assert.deepEqual([failed.kind, failed.failure.category], ['failed', 'reauth_required']);
    assert.equal(plain.received.length, 0);
    plain.close();
  });

  t('a network without comments refuses one, and its rules are those of the house', async () => {
    const nothing = async () => ({ kind: 'undecided' }) as const;
    const made = (over: Partial<NetworkTables>, tools: Partial<Parameters<typeof networkOf>[1]> = {}) =>
      networkOf(
        {
          tables: tablesOf(over),
          offer: async () => ({ kind: 'offered', person: null, accounts: [] }),
          methods: () => ({
            publish: async () => ({ kind: 'failed', failure: failureOf({ kind: 'silent', reason: '' }).failure }),
            reconcile: nothing,
            fetchPostInsights: async function* () {},
            fetchAccountInsights: async () => ({ kind: 'unavailable', reason: '' }),
          }),
        },
        { ...world.bound, ...tools },
        appAt(world.origin),
      );
    const { adapter } = made({});
    const account = { id: '1', externalId: '1', username: null, scopes: [] };
    const comment = { targetId: '1', platform: 'threads', account, externalId: '1', content: 'C' } as const;
    assert.equal((await adapter.comment(comment, within())).kind, 'failed');
    assert.ok(adapter.settleWindowMs('threads', account) > 0);
    const unset = { ...world.bound, boundaryDeadlineMs: undefined } as unknown as Parameters<typeof networkOf>[1];
    const deadline = (over: Partial<NetworkTables>, tools = unset) => made(over, tools).adapter.boundaryDeadlineMs;
    const longer = { boundaryDeadlineMs: 30_000 };
    assert.deepEqual([deadline({}), deadline(longer), deadline(longer, world.bound)], [10_000, 30_000, 1_000]);
  });
});

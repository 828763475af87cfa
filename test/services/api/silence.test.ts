/** Callers before stores that say nothing: each is told so in time, however many wait and wherever the silence begins. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { sandboxAccounts, sandboxAhead, sandboxInboxes, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { PostgresConnectAttempts } from '#infra/postgres/connect-attempts.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { readConfig } from '#runtime/process/config.ts';
import { Readiness } from '#runtime/process/telemetry.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import type { CallPatience, Deps } from '#services/api/call/deps.ts';
import { openDoor, startServer } from '#services/api/server.ts';
import { startApi } from '#services/api/start.ts';
import { pagesParts } from '#services/pages/part.ts';
import { composer, refused } from '#test/support/composing.ts';
import { type Answered, callerOf, startWorld, type World } from '#test/support/http.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { watched } from '#test/support/pool.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { type ProxiedDatabase, proxiedDatabase } from '#test/support/silent-postgres.ts';
import { suite } from '#test/support/suite.ts';
import { afterBytes, atRequest, type TcpProxy } from '#test/support/tcp-proxy.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';

const patience: CallPatience = { tokenMs: 300, appendMs: 300, callMs: 1_500 };

suite('callers before silent stores', { waits: true }, (t) => {
  let database: ProxiedDatabase;
  let world: World;
  const closers: (() => Promise<unknown>)[] = [];
  t.before(async () => {
    database = await proxiedDatabase();
    world = await startWorld({ databaseUrl: database.direct });
  });
  t.after(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    await world?.close();
    await database?.close();
  });

  /** An api as it starts in production, over a way of its own to the database of the world; its statements are waited for shortly. */
  const api = async () => {
    const { url, proxy } = await database.way();
    const pool = openPool({ url, max: 4 });
    const store = await PostgresEventStore.open({ url, readMs: 300 });
    closers.push(
      () => pool.end(),
      () => store.close(),
    );
    const door = await openDoor({ host: '127.0.0.1', port: 0, setting: 'PORT' });
    const asked: number[] = [];
    const started = await startApi({
      adapters: {
        databaseUrl: url,
        pool,
        openPool: (answerMs) => {
          asked.push(answerMs);
          return openPool({ url, max: 4, answerMs: 300, connectTimeoutMs: 300 });
        },
        store,
        log: world.log,
        credentials: new MemoryCredentials(),
        attempts: new PostgresConnectAttempts({ pool, keys: new TestKeys() }),
        dataKeys: { forWriting: async () => null, forReading: async () => null },
        blobs: world.deps.blobs,
        analytics: null,
      },
      door,
      config: readConfig({ RATE_LIMIT_PER_MINUTE: '1000000', RATE_LIMIT_BURST: '1000000' }),
      secrets: world.secrets,
      logger: world.logger,
      readiness: new Readiness(),
      report: { checks: async () => [], metrics: async () => [] },
      sandboxProfile,
      sandboxAhead,
      sandboxAccounts,
      sandboxInboxes,
      liveOf: () => ({ connectors: {}, accounts: {}, inboxes: {} }),
      parts: [],
      patience,
    });
    closers.push(
      () => started.stop(),
      // Connections that are silent would take their time to close.
      async () => proxy.cut(),
    );
    assert.ok(asked.length > 0 && asked.every((ms) => ms <= 5_000), `statements of callers may take ${asked} ms`);
    return { proxy, caller: (token: string) => callerOf(() => started.baseUrl, token) };
  };

  const inTime = async (what: string, asking: readonly Promise<Answered>[]): Promise<void> => {
    const began = performance.now();
    for (const answer of await Promise.all(asking)) {
      refused(answer, 503, 'unavailable');
      assert.equal(answer.headers.get('retry-after'), '2');
    }
    const ms = Math.round(performance.now() - began);
    assert.ok(ms < patience.tokenMs + patience.callMs + 1_000, `${what}: ${ms} ms`);
  };
  const silent = (proxy: TcpProxy): void => proxy.silence(() => 0);

  t(
    'get 503 in time when Postgres is silent, hundreds at once, and are served again when Postgres answers',
    async () => {
      const { proxy, caller } = await api();
      const keys = await Promise.all(Array.from({ length: 4 }, () => world.keyOf(world.workspaceId, world.memberId)));
      const acme = await composer(world, ['x']);
      const post = await world.tester.post('/posts', acme.body({ saveDraft: true }));
      await world.settled();
      const owner = caller(world.testKey.secret);
      const path = `/posts/${post.data.id}`;
      await until('it is served', async () => (await owner.get(path)).status === 200);
      const asked = () => [
        ...Array.from({ length: 200 }, () => owner.get(path)),
        ...keys.map(({ secret }) => caller(secret).get('/agency')),
        owner.post('/clients', { name: 'Later', type: 'brand' }),
        owner.patch(path, acme.body({ content: 'Another word.' })),
      ];
      silent(proxy);
      await inTime('all connections are silent', asked());
      await inTime('a moment later', asked());
      proxy.speak();
      await until('it is served again', async () => (await owner.get(path)).status === 200);
      await until(
        'appends, too',
        async () => (await owner.post('/clients', { name: 'Again', type: 'brand' })).status === 200,
      );
    },
  );

  t('… wherever in a call the silence begins', async () => {
    const { proxy, caller } = await api();
    const owner = caller(world.liveKey.secret);
    const nobody = '/posts/0198a0f0-0000-7000-8000-000000000000';
    assert.equal((await owner.get(nobody)).status, 404);
    for (const name of ['posts-by-id', 'read-whole']) {
      proxy.silence(atRequest(name));
      await inTime(name, [owner.get(nobody)]);
      proxy.speak();
      await until('it is served again', async () => (await owner.get(nobody)).status === 404);
    }
    // What may be said beside an answer is waited for shortly, and no answer fails with it.
    const began = performance.now();
    proxy.silence(atRequest('parked-rows'));
    await until('it was asked for', async () => {
      assert.equal((await owner.get('/clients')).status, 200);
      return performance.now() - began > 800;
    });
    proxy.speak();
    // A connection that is opened now is not even greeted.
    const other = await api();
    other.proxy.silence(afterBytes('client', 0));
    await inTime('before it greets', [other.caller(world.liveKey.secret).get(nobody)]);
  });

  /** Another api of the world, over its event store with other answers, or another pool. */
  const over = async (answers: Partial<EventStore>, more: Partial<Deps> = {}) => {
    const store = withMembers<EventStore>(world.eventStore, answers);
    const deps = { ...world.deps, store: new DomainStore(store, world.codec, defaultPartitions), patience, ...more };
    const server = await startServer(deps, { host: '127.0.0.1', port: 0 }, pagesParts);
    const origin = `http://127.0.0.1:${server.port}`;
    const owner = callerOf(() => `${origin}/v1`, world.liveKey.secret);
    return { origin, owner, stop: () => server.stop(0) };
  };
  const reason = (): string =>
    world.lines.map((line) => JSON.parse(line)).findLast(({ msg }) => msg === 'a store is unavailable')?.err.message;

  t('get 503 in time when an append falls silent, and the append is not repeated after that', async () => {
    let times = 0;
    const append = (): Promise<never> => {
      times += 1;
      return times === 1 ? Promise.reject(new EventStoreError('unavailable', 'away')) : new Promise(() => undefined);
    };
    const { owner, stop } = await over({ append });
    try {
      refused(await owner.post('/clients', { name: 'Acme', type: 'brand' }), 503, 'unavailable');
      assert.match(reason(), /^The event store does not answer\./);
      assert.equal(times, 2);
    } finally {
      await stop();
    }
  });

  t('… and where nothing else ends it, by the call itself', async () => {
    const { origin, owner, stop } = await over({ read: () => new Promise(() => undefined) });
    try {
      const [patched, page] = await Promise.all([
        owner.patch('/clients/0198a0f0-0000-7000-8000-000000000000', { name: 'x' }),
        fetch(`${origin}/invite/${'A'.repeat(64)}`),
      ]);
      refused(patched, 503, 'unavailable');
      assert.equal(reason(), 'The stores behind this call did not answer in time.');
      assert.equal(page.status, 503);
    } finally {
      await stop();
    }
  });

  t('… also before the call, where the ids of a limited key are looked up', async () => {
    const client = await world.owner.post('/clients', { name: 'Limited', type: 'brand' });
    const { secret } = await world.keyOf(world.workspaceId, world.memberId, { clientIds: [client.data.id] });
    const { origin, stop } = await over({ read: () => new Promise(() => undefined) });
    try {
      const limited = callerOf(() => `${origin}/v1`, secret);
      refused(await limited.get(`/posts/${randomUUID()}`), 503, 'unavailable');
      assert.equal(reason(), 'The stores behind this call did not answer in time.');
    } finally {
      await stop();
    }
  });

  t('… and once it is answered, no further id is looked up', async () => {
    const client = await world.owner.post('/clients', { name: 'Limited, too', type: 'brand' });
    const { secret } = await world.keyOf(world.workspaceId, world.memberId, { clientIds: [client.data.id] });
    const { promise: answered, resolve: release } = Promise.withResolvers<void>();
    let reads = 0;
    const read: EventStore['read'] = async (...args) => {
      reads += 1;
      await answered;
      return world.eventStore.read(...args);
    };
    const { origin, owner, stop } = await over({ read });
    try {
      const limited = callerOf(() => `${origin}/v1`, secret);
      const targetIds = Array.from({ length: 20 }, () => randomUUID());
      refused(await limited.post('/post-targets/bulk', { action: 'cancel', targetIds }), 503, 'unavailable');
      assert.equal(reads, 8);
      release();
      // The look-ups that were left would be made before those of these later calls.
      for (let calls = 0; calls < 5; calls += 1) assert.equal((await owner.get('/agency')).status, 200);
      assert.equal(reads, 8);
    } finally {
      await stop();
    }
  });

  t('… and the token and the warnings beside an answer have deadlines of their own', async () => {
    const never = (names: readonly string[]) =>
      watched(world.pool, ({ name }) => (names.includes(name) ? new Promise(() => undefined) : undefined));
    const one = await over({}, { pool: never(['find-keys', 'projection-stamp']) });
    const two = await over({}, { pool: never(['parked-rows']) });
    try {
      const [unknown, unwarned] = await Promise.all([one.owner.get('/agency'), two.owner.get('/agency')]);
      refused(unknown, 503, 'unavailable');
      assert.equal(reason(), 'The database did not return the owner of the token in time.');
      assert.equal(unwarned.status, 200);
    } finally {
      await one.stop();
      await two.stop();
    }
  });
});

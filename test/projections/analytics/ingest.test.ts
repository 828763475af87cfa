import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore } from '#contracts/ports/event-store.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { analyticsStore, liveVersion } from '#projections/analytics/live.ts';
import { isLost } from '#projections/analytics/lost.ts';
import { mendLost } from '#projections/analytics/mend.ts';
import { rebuildAnalytics } from '#projections/analytics/rebuild.ts';
import { type RunningAnalytics, runAnalytics } from '#projections/analytics/run.ts';
import { tableOf } from '#projections/analytics/tables.ts';
import { projections } from '#projections/index.ts';
import { rebuildAll } from '#projections/rebuild-all.ts';
import { embeddedClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { Mortals } from '#test/support/mortals.ts';
import {
  history,
  keys,
  observed,
  randomOf,
  type Seen,
  shownGrain,
  sumsBy,
  targetDays,
} from '#test/support/observations.ts';
import { type ProjectionWorld, projectionWorld } from '#test/support/projection-world.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

type Client = ReturnType<typeof openAnalytics>;

/** `INGESTER_KILLS=100` makes the first test a long run. */
const randomKills = Number(process.env.INGESTER_KILLS ?? 5);

const seeded = (): number => Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** In the order in which they were seen: a stream's observations only go onward. */
const inOrder = (all: readonly Seen[]): Seen[] => all.toSorted((a, b) => (a.observedAt < b.observedAt ? -1 : 1));

suite('analytics: from the log into ClickHouse', { timeoutMs: 240_000 + randomKills * 4_000 }, (t) => {
  let world: ProjectionWorld;
  t.before(async () => {
    world = await projectionWorld();
  });
  t.after(() => world?.close());

  const all: Seen[] = [];
  const append = async (seen: readonly Seen[]): Promise<void> => {
    for (const one of seen) await world.append([observed(one)], one.workspaceId);
    all.push(...seen);
  };
  const settled = (group: string): Promise<unknown> =>
    until(
      'all is read and counted',
      async () => {
        const head = await world.store.head();
        const { rows } = await world.pool.query(
          `select (select position from ops.consumer_positions where consumer_group = $1) as position,
             (select count(*)::int from ops.analytics_marked where version = $2) as dirty`,
          [group, Number(group.slice('analytics-v'.length))],
        );
        return BigInt(rows[0].position ?? 0) >= (head ?? 0n) && rows[0].dirty === 0;
      },
      { withinMs: 60_000 },
    );
  const equal = async (client: Client, version: number, words: string): Promise<void> => {
    for (const name of ['workspace_days', 'client_days', 'account_days'] as const) {
      const sorted = (of: Iterable<[string, unknown]>) => [...of].sort(([a], [b]) => (a < b ? -1 : 1));
      assert.deepEqual(
        sorted(await shownGrain(client, name, version)),
        sorted(sumsBy(targetDays(all), keys[name])),
        `${name} ${words}`,
      );
    }
  };
  /** Another ClickHouse than before: Postgres knows nothing of what the former one had read. */
  const forget = async (): Promise<void> => {
    await world.pool.query(`delete from ops.consumer_positions where consumer_group like 'analytics%'`);
    await world.pool.query(
      'truncate ops.analytics_days, ops.analytics_marked, ops.analytics_late, ops.analytics_highest',
    );
  };
  const observations = async (client: Client, version: number): Promise<number> => {
    const query = `select uniqExact(event_id) as n from ${tableOf('observations', version)}`;
    const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ n: string }>();
    return Number(row?.n);
  };

  t(
    'killed at every fault point and five times at random, it gives the totals of a recount of the streams',
    async () => {
      const { client, url } = await testClickHouse();
      const seed = seeded();
      const random = randomOf(seed);
      const mortals = new Mortals(path.resolve(import.meta.dirname, '../../support/ingester-child.ts'), () => [
        world.url,
        url,
      ]);
      afterFile(() => mortals.end());
      const points = [
        'analytics:after-insert',
        'analytics:before-recount',
        'analytics:after-recount',
        'consume:after-commit',
      ];
      let deaths = 0;
      for (const point of rowsOfRun('deaths of an ingester', points, String)) {
        const child = await mortals.child(point);
        await append(inOrder(history(random, { targets: 3, days: 5 })));
        await mortals.died(child);
        deaths += 1;
      }
      const times = Array.from({ length: randomKills }, (_, n) => n);
      for (const _ of rowsOfRun('kills of an ingester', times, String)) {
        const child = await mortals.child('');
        const writing = append(inOrder(history(random, { targets: 6, days: 6 })));
        await delay(random() * 600);
        child.kill('SIGKILL');
        await mortals.died(child);
        deaths += 1;
        await writing;
      }
      const last = await mortals.child('');
      await settled('analytics-v1');
      last.stdin?.end();
      assert.equal(await observations(client, 1), all.length);
      await equal(client, 1, `with SEED=${seed}`);
      process.stdout.write(`  ${deaths} deaths, ${all.length} observations, SEED=${seed}\n`);
      await mortals.end();
    },
  );

  t('a rebuild runs beside reads and writes, is compared, and readers and ingester follow it', async () => {
    const { client } = await testClickHouse();
    const stop = new AbortController();
    const options = { ...world, client, signal: stop.signal };
    await forget();
    const running: RunningAnalytics = runAnalytics(options);
    afterFile(() => stop.abort());
    await settled('analytics-v1');
    const before = await shownGrain(client, 'workspace_days', 1);
    assert.ok(before.size > 0);
    let reading = true;
    let reads = 0;
    const reader = (async () => {
      while (reading) {
        const { rows } = await world.pool.query('select live from ops.analytics_versions');
        const shown = await shownGrain(client, 'workspace_days', rows[0].live);
        for (const [key, sums] of before) assert.deepEqual(shown.get(key), sums);
        reads += 1;
      }
    })();
    const rebuilding = rebuildAnalytics(options);
    await append(inOrder(history(randomOf(11), { targets: 4, days: 5 })));
    const made = await rebuilding;
    reading = false;
    await reader;
    assert.ok(reads > 1, `${reads} reads`);
    assert.deepEqual({ version: made.version, dropped: made.dropped }, { version: 2, dropped: true });
    assert.equal(made.before, made.after);
    await settled('analytics-v2');
    await equal(client, 2, 'after the rebuild');
    const tables = await (await client.query({ query: 'show tables', format: 'JSONEachRow' })).json<{ name: string }>();
    assert.ok(
      tables.every(({ name }) => name.endsWith('_v2')),
      JSON.stringify(tables),
    );
    await assert.doesNotReject(append(inOrder(history(randomOf(12), { targets: 2, days: 3 }))));
    await settled('analytics-v2');
    await equal(client, 2, 'after more');
    assert.equal(running.reason(), null);
    stop.abort();
    await running.done;
  });

  t('a rebuild that would lose observations leaves the tables as they are', async () => {
    const { client } = await testClickHouse();
    const stop = new AbortController();
    const options = { ...world, client, signal: stop.signal };
    await forget();
    const running = runAnalytics(options);
    afterFile(() => stop.abort());
    await settled('analytics-v2');
    const { store } = world;
    const blind: EventStore = {
      append: (...args) => store.append(...args),
      read: (...args) => store.read(...args),
      readAll: async () => [],
      readWorkspace: (...args) => store.readWorkspace(...args),
      head: () => store.head(),
      subscribe: (...args) => store.subscribe(...args),
      ping: () => store.ping(),
      close: () => store.close(),
    };
    await assert.rejects(rebuildAnalytics({ ...options, store: blind }), /the live tables stay/);
    const { rows } = await world.pool.query('select live from ops.analytics_versions');
    assert.equal(rows[0].live, 2);
    stop.abort();
    await running.done;
  });

  t('a ClickHouse that lost rows answers no reads until a rebuild restores them', async () => {
    const first = await testClickHouse();
    await forget();
    const before = new AbortController();
    const held = runAnalytics({ ...world, client: first.client, signal: before.signal });
    await settled('analytics-v2');
    before.abort();
    await held.done;

    const { client } = await testClickHouse();
    const stop = new AbortController();
    afterFile(() => stop.abort());
    const options = { ...world, client, signal: stop.signal };
    const running = runAnalytics(options);
    await append(inOrder(history(randomOf(30), { targets: 1, days: 2 })));
    await until('it says why it waits', () => /lost observations/.test(running.reason() ?? ''));
    await assert.rejects(analyticsStore(client, world.pool).version(), /rebuild analytics/);
    assert.deepEqual(await (await client.query({ query: 'show tables', format: 'JSONEachRow' })).json(), []);

    const made = await rebuildAnalytics(options);
    assert.equal(made.version, 4);
    await settled('analytics-v4');
    await equal(client, 4, 'after the loss');
    await until('it goes on', () => running.reason() === null);
    assert.equal(await analyticsStore(client, world.pool).version(), 4);
    stop.abort();
    await running.done;
  });

  t('a ClickHouse that is restored to an earlier day while in use is detected, and a rebuild repairs it', async () => {
    const { client } = await testClickHouse();
    await forget();
    const stop = new AbortController();
    afterFile(() => stop.abort());
    const options = { ...world, client, signal: stop.signal };
    const running = runAnalytics(options);
    const mine = await liveVersion(world.pool);
    await append(inOrder(history(randomOf(41), { targets: 2, days: 3 })));
    await settled(`analytics-v${mine}`);
    assert.equal(await isLost(client, mine, world.pool), false);

    const table = tableOf('observations', mine);
    const remove = (rows: string) =>
      client.command({ query: `alter table ${table} delete where ${rows} settings mutations_sync = 2` });
    const [{ newest = '' } = {}] = await (
      await client.query({ query: `select max(position) as newest from ${table}`, format: 'JSONEachRow' })
    ).json<{ newest: string }>();
    await remove(`position = ${newest}`);
    assert.equal(await isLost(client, mine, world.pool), true);
    // It is believed for some seconds, and told then to those who read and to those who write.
    await until('a reader is told', async () => {
      const reported = await analyticsStore(client, world.pool).version().catch(String);
      return /rebuild analytics/.test(String(reported));
    });
    const before = await observations(client, mine);
    const later = inOrder(history(randomOf(43), { targets: 4, days: 4 }));
    assert.ok(later.length > 0);
    await append(later);
    await until('it waits', () => /lost observations/.test(running.reason() ?? ''));
    assert.equal(await observations(client, mine), before, 'nothing is added to what was put back');

    // With all read models: they share one reading of the store.
    const parts = await rebuildAll(options);
    assert.deepEqual(
      parts.map(({ name, dropped, failed }) => [name, dropped, failed]),
      [...projections.map(({ name }) => name), 'analytics'].map((name) => [name, true, null]),
    );
    const { generation: version = 0, events = 0 } = parts.at(-1) ?? {};
    assert.ok(events > later.length);
    await settled(`analytics-v${version}`);
    await equal(client, version, 'after it was put back');
    await until('it goes on', () => running.reason() === null);
    assert.equal(await analyticsStore(client, world.pool).version(), version);
    stop.abort();
    await running.done;
  });

  t('after a kill of ClickHouse it reports the outage, waits, and catches up', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    const client = openAnalytics({ url: embedded.url });
    const stop = new AbortController();
    afterFile(() => stop.abort());
    await forget();
    const live = await liveVersion(world.pool);
    const running = runAnalytics({ ...world, client, signal: stop.signal });
    await settled(`analytics-v${live}`);
    for (let n = 0; n < 3; n += 1) {
      process.kill(embedded.pid() ?? assert.fail('it does not run'), 'SIGKILL');
      await append(inOrder(history(randomOf(n), { targets: 3, days: 4 })));
      await settled(`analytics-v${live}`);
    }
    await equal(client, live, 'after three deaths');
    await remove();
    await append(inOrder(history(randomOf(20), { targets: 1, days: 2 })));
    await until('it says why it waits', () => /ClickHouse is unavailable/.test(running.reason() ?? ''));
    stop.abort();
    await running.done;
    await client.close();
  });

  t(
    'an engine that lost its rows is rebuilt at the start with reports of its progress; an intact one is not',
    async () => {
      const { rows } = await world.pool.query('select live from ops.analytics_versions');
      const live: number = rows[0].live;
      const { client } = await testClickHouse();
      const stop = new AbortController();
      afterFile(() => stop.abort());
      const reported: string[] = [];
      const mend: typeof mendLost = (options, tell) =>
        mendLost(options, (words) => {
          reported.push(words);
          tell(words);
        });
      const running = runAnalytics({ ...world, client, signal: stop.signal, mend });
      await settled(`analytics-v${live + 1}`);
      await equal(client, live + 1, 'made anew by itself');
      assert.match(reported.at(-1) ?? '', /being rebuilt: 100 % of the store read/);
      await until('it says nothing more', () => running.reason() === null);
      stop.abort();
      await running.done;

      const again = new AbortController();
      afterFile(() => again.abort());
      const second = runAnalytics({ ...world, client, signal: again.signal, mend });
      const before = reported.length;
      await until('it runs', () => second.reason() === null);
      assert.equal(reported.length, before, 'what is there is not made anew');
      assert.equal((await world.pool.query('select live from ops.analytics_versions')).rows[0].live, live + 1);
      again.abort();
      await second.done;
    },
  );
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { embeddedClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { until } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';

suite('the analytics store as its client sees it', (t) => {
  t('binds parameters and does not take them for SQL', async () => {
    const { client } = await testClickHouse();
    const answer = await client.query({
      query: `select {text:String} as text, {none:Nullable(Int64)} as none, {many:Array(String)} as many,
        {id:UUID} as id, {day:Date} as day`,
      query_params: {
        text: `a\tb\\c'd"\n; drop`,
        none: null,
        many: ["x'y", 'z'],
        id: '0197a000-0000-7000-8000-000000000001',
        day: '2026-02-03',
      },
      format: 'JSONEachRow',
    });
    assert.deepEqual(await answer.json(), [
      {
        text: `a\tb\\c'd"\n; drop`,
        none: null,
        many: ["x'y", 'z'],
        id: '0197a000-0000-7000-8000-000000000001',
        day: '2026-02-03',
      },
    ]);
  });

  t('keeps null, 0 and the largest integers apart through an insert', async () => {
    const { client } = await testClickHouse();
    await client.command({ query: 'create table t (k UInt8, n Nullable(Int64)) engine = MergeTree order by k' });
    const most = Number.MAX_SAFE_INTEGER;
    await client.insert({
      table: 't',
      columns: ['k', 'n'],
      values: [
        [1, null],
        [2, 0],
        [3, most],
      ],
      format: 'JSONCompactEachRow',
    });
    const rows = await (
      await client.query({ query: 'select n from t order by k', format: 'JSONCompactEachRow' })
    ).json();
    assert.deepEqual(rows, [[null], ['0'], [String(most)]]);
    await client.insert({ table: 't', columns: ['k', 'n'], values: [], format: 'JSONCompactEachRow' });
  });

  t('says what is wrong as ClickHouse says it, and inserts nothing of a bad batch', async () => {
    const { client } = await testClickHouse();
    await client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' });
    const unknown = await client.query({ query: 'select * from nowhere' }).catch((error: unknown) => error);
    assert.ok(unknown instanceof ClickHouseError);
    assert.equal(unknown.type, 'UNKNOWN_TABLE');
    await assert.rejects(
      client.insert({ table: 't', columns: ['k'], values: [[1], ['x']], format: 'JSONCompactEachRow' }),
      ClickHouseError,
    );
    assert.deepEqual(
      await (await client.query({ query: 'select count() as n from t', format: 'JSONEachRow' })).json(),
      [{ n: '0' }],
    );
  });

  t('a setting is of its statement alone', async () => {
    const { client } = await testClickHouse();
    const threads = async (settings: ClickHouseSettings): Promise<unknown> =>
      (
        await client.query({
          query: `select getSetting('max_block_size') as n`,
          clickhouse_settings: settings,
          format: 'JSONEachRow',
        })
      ).json();
    const before = await threads({});
    assert.deepEqual(await threads({ max_block_size: '777' }), [{ n: 777 }]);
    for (let n = 0; n < 5; n += 1) assert.deepEqual(await threads({}), before);
  });

  t('many statements at once go to their own databases', async () => {
    const all = await Promise.all([1, 2, 3].map(() => testClickHouse()));
    await Promise.all(
      all.map(({ client }) => client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' })),
    );
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        all[n % 3]?.client.insert({ table: 't', columns: ['k'], values: [[n % 3]], format: 'JSONCompactEachRow' }),
      ),
    );
    for (const [n, { client }] of all.entries()) {
      const rows = await (
        await client.query({ query: 'select k, count() as n from t group by k', format: 'JSONEachRow' })
      ).json();
      assert.deepEqual(rows, [{ k: n, n: '10' }]);
    }
  });
});

suite('the embedded engine', (t) => {
  t('starts with the first connection, not before', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    assert.equal(embedded.pid(), null);
    const client = openAnalytics({ url: embedded.url });
    assert.deepEqual(await (await client.query({ query: 'select 1 as n', format: 'JSONEachRow' })).json(), [{ n: 1 }]);
    assert.notEqual(embedded.pid(), null);
    await client.close();
    await remove();
    assert.equal(embedded.pid(), null);
  });

  t('nobody reads it without its password', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    for (const password of ['', 'wrong']) {
      const url = new URL(embedded.url);
      url.password = password;
      const client = openAnalytics({ url: url.href });
      const refused = await client.query({ query: 'select 1' }).catch((error: unknown) => error);
      assert.ok(refused instanceof ClickHouseError);
      assert.equal(refused.type, 'AUTHENTICATION_FAILED');
      await client.close();
    }
    await remove();
  });

  t('killed, it is back with its data for the next connection', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    const client = openAnalytics({ url: embedded.url });
    await client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' });
    await client.insert({ table: 't', columns: ['k'], values: [[7]], format: 'JSONCompactEachRow' });
    for (let n = 0; n < 3; n += 1) {
      process.kill(embedded.pid() ?? 0, 'SIGKILL');
      await until('it died', async () => embedded.pid() === null);
      const rows = await until('an answer', () =>
        client
          .query({ query: 'select k from t', format: 'JSONEachRow' })
          .then((answer) => answer.json())
          .catch(() => null),
      );
      assert.deepEqual(rows, [{ k: 7 }]);
    }
    await client.close();
    await remove();
  });

  t('a folder that it cannot have is told, and refuses connections without hanging', async () => {
    const { startEmbeddedAnalytics } = await import('#infra/clickhouse/embedded.ts');
    const troubles: string[] = [];
    const embedded = await startEmbeddedAnalytics({ dir: '/dev/null/x', onTrouble: (reason) => troubles.push(reason) });
    afterFile(embedded.stop);
    const client = openAnalytics({ url: embedded.url });
    await assert.rejects(client.query({ query: 'select 1' }));
    const socket = connect(Number(new URL(embedded.url).port), '127.0.0.1');
    socket.resume();
    await once(socket, 'close');
    assert.match(troubles[0] ?? '', /cannot be written/);
    assert.match(troubles[1] ?? '', /does not start/);
    await client.close();
    await embedded.stop();
  });
});

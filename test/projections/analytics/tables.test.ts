import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ClickHouseClient } from '@clickhouse/client';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { dropTables, ensureTables } from '#projections/analytics/live.ts';
import { appliedTable, tableFiles, tableNames, tableOf } from '#projections/analytics/tables.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { built } from '#test/support/bundles.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { afterFile, suite } from '#test/support/suite.ts';

const program = built(path.join(import.meta.dirname, 'tables-process.ts'));
const run = promisify(execFile);

suite('numbered tables of the analytics', { timeoutMs: 120_000 }, (t) => {
  const rowsOf = async <T>(client: ClickHouseClient, query: string): Promise<readonly T[]> =>
    (await client.query({ query, format: 'JSONEachRow' })).json<T>();
  const tablesIn = async (client: ClickHouseClient): Promise<readonly string[]> =>
    (await rowsOf<{ name: string }>(client, 'show tables')).map(({ name }) => name);
  const appliedIn = async (client: ClickHouseClient): Promise<readonly string[]> =>
    (await rowsOf<{ name: string }>(client, `select name from ${appliedTable(1)} final order by number`)).map(
      ({ name }) => name,
    );
  const files = tableFiles(1).map(({ name }) => name);
  const all = [...tableNames.map((name) => tableOf(name, 1)), appliedTable(1)].sort();
  /** As another process: what is known of a client's tables is known in its process alone. */
  const another = (url: string): ClickHouseClient => {
    const client = openAnalytics({ url });
    afterFile(() => client.close());
    return client;
  };

  t('of several processes that make them at once each finds all of them', async () => {
    const { client, url } = await testClickHouse();
    await Promise.all([1, 2].map(() => run(process.execPath, [program, url])));
    assert.deepEqual([...(await tablesIn(client))].sort(), all);
    assert.deepEqual(await appliedIn(client), files);
  });

  const dies = (url: string, point: string) =>
    assert.rejects(run(process.execPath, [program, url], { env: { ...process.env, POSTLINE_FAULT: point } }), {
      signal: 'SIGKILL',
    });
  for (const [point, tables] of [
    ['analytics:between-tables', 1],
    ['analytics:before-record', tableNames.length],
  ] as const) {
    t(`a process that dies at ${point} leaves tables that the next one goes on with`, async () => {
      const { client, url } = await testClickHouse();
      await dies(url, point);
      assert.equal((await tablesIn(client)).length, tables + 1);
      assert.deepEqual(await appliedIn(client), []);
      await run(process.execPath, [program, url]);
      assert.deepEqual([...(await tablesIn(client))].sort(), all);
      assert.deepEqual(await appliedIn(client), files);
    });
  }

  t('tables that are up to date cost one question', async () => {
    const { client, url } = await testClickHouse();
    await ensureTables(client, 1);
    const asked: string[] = [];
    const counting = new Proxy(another(url), {
      get: (own, name) => {
        if (['query', 'command', 'insert'].includes(String(name))) asked.push(String(name));
        const member = Reflect.get(own, name);
        return typeof member === 'function' ? member.bind(own) : member;
      },
    });
    await ensureTables(counting, 1);
    assert.deepEqual(asked, ['query']);
  });

  t('a table that is gone is made again, and dropped tables leave no record', async () => {
    const { client, url } = await testClickHouse();
    await ensureTables(client, 1);
    await client.command({ query: `drop table ${tableOf('client_days', 1)}` });
    await ensureTables(another(url), 1);
    assert.deepEqual([...(await tablesIn(client))].sort(), all);
    await dropTables(client, 1);
    assert.deepEqual(await tablesIn(client), []);
  });

  t('tables that a newer build has changed stay, and a file that is another one is refused', async () => {
    const { client, url } = await testClickHouse();
    await ensureTables(client, 1);
    const values = [{ number: tableNames.length + 1, name: '010-later', checksum: 'later' }];
    await client.insert({ table: appliedTable(1), values, format: 'JSONEachRow' });
    await ensureTables(another(url), 1);
    const other = [{ number: 1, name: '001-observations', checksum: 'other' }];
    await client.insert({ table: appliedTable(1), values: other, format: 'JSONEachRow' });
    await assert.rejects(
      ensureTables(another(url), 1),
      (error) =>
        error instanceof Unavailable && /CLICKHOUSE_URL: .* made with another 001-observations/.test(error.message),
    );
  });
});

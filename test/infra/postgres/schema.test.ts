import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Pool, QueryConfig } from 'pg';
import { tablesLock } from '#contracts/base/migration.ts';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { openAdapters } from '#infra/adapters.ts';
import { eventSchema } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { migrateSchema, type NumberedSchema, operationalSchema, pendingFiles } from '#infra/postgres/schema.ts';
import { tableFiles } from '#projections/analytics/tables.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { makeApiTables } from '#services/api/start.ts';
import { ensureSender } from '#services/webhooks/statements.ts';
import { built } from '#test/support/bundles.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const program = built(path.join(import.meta.dirname, 'schema-process.ts'));
const run = promisify(execFile);

suite('numbered files of tables', { timeoutMs: 120_000 }, (t) => {
  const pools: Pool[] = [];
  const open = (url: string): Pool => {
    const pool = openPool({ url, max: 4 });
    pools.push(pool);
    return pool;
  };
  const empty = async () => {
    const { url } = await testDatabase();
    return { url, pool: open(url) };
  };
  t.after(async () => void (await Promise.all(pools.map((pool) => pool.end()))));

  const appliedIn = async (pool: Pool, schema = 'ops'): Promise<readonly string[]> =>
    (await pool.query<{ name: string }>(`select name from ${schema}.schema_versions order by number`)).rows.map(
      ({ name }) => name,
    );
  const namesOf = ({ files }: NumberedSchema): readonly string[] => files.map(({ name }) => name);
  const small = (...sqls: readonly string[]): NumberedSchema => ({
    schema: 'small',
    lock: 'small tables',
    files: sqls.map((sql, at) => ({ number: at + 1, name: `00${at + 1}-part`, sql })),
  });

  t('their numbers begin at 1 and have no gaps', () => {
    for (const { files } of [operationalSchema(), eventSchema('es'), { files: tableFiles(1) }]) {
      for (const [at, { number, name }] of files.entries()) {
        assert.equal(number, at + 1, name);
        assert.match(name, new RegExp(`^${String(number).padStart(3, '0')}-[a-z-]+$`));
      }
    }
  });

  t('of several processes that start at once one carries each file out', async () => {
    const { url, pool } = await empty();
    await Promise.all([1, 2, 3].map(() => run(process.execPath, [program, url])));
    assert.deepEqual(await appliedIn(pool), namesOf(operationalSchema()));
    assert.deepEqual(await appliedIn(pool, 'es'), namesOf(eventSchema('es')));
  });

  t('a process that dies between two files leaves a database that the next start goes on with', async () => {
    const { url, pool } = await empty();
    const files = namesOf(operationalSchema());
    // Every file takes the same way: a few of the gaps do for all.
    for (let done = 1; done <= 3; done += 1) {
      const died = run(process.execPath, [program, url], { env: { ...process.env, POSTLINE_FAULT: 'schema.file' } });
      await assert.rejects(died, { signal: 'SIGKILL' });
      assert.deepEqual(await appliedIn(pool), files.slice(0, done));
      assert.deepEqual(
        (await pendingFiles(pool)).map(({ name }) => name),
        files.slice(done),
      );
    }
    await run(process.execPath, [program, url]);
    assert.deepEqual(await appliedIn(pool), files);
    assert.deepEqual(await appliedIn(pool, 'es'), namesOf(eventSchema('es')));
  });

  t('a file that fails leaves nothing of itself, and those before it stay', async () => {
    const { pool } = await empty();
    const broken = small('create table small.one ()', 'create table small.two (); select 1 / 0');
    await assert.rejects(migrateSchema(pool, {}, broken), /division by zero/);
    const { rows } = await pool.query("select to_regclass('small.one') as one, to_regclass('small.two') as two");
    assert.deepEqual(rows, [{ one: 'small.one', two: null }]);
    assert.deepEqual(await appliedIn(pool, 'small'), ['001-part']);
    await migrateSchema(pool, {}, small('create table small.one ()', 'create table small.two ()'));
    assert.deepEqual(await appliedIn(pool, 'small'), ['001-part', '002-part']);
  });

  t('a process waits for another that carries a file out', async () => {
    const { pool } = await empty();
    const numbered = small('create table small.one ()');
    const other = await pool.connect();
    await other.query("begin; select pg_advisory_xact_lock(hashtextextended('small tables', 0))");
    let ended = false;
    const waits = migrateSchema(pool, {}, numbered).finally(() => {
      ended = true;
    });
    await until('it waits', async () => {
      const { rows } = await pool.query("select 1 from pg_locks where locktype = 'advisory' and not granted");
      return rows.length > 0;
    });
    assert.equal(ended, false);
    await other.query('commit');
    other.release();
    await waits;
    assert.deepEqual(await appliedIn(pool, 'small'), ['001-part']);
  });

  t('a start on tables that are up to date reads once and waits for no lock', async () => {
    const { url } = await preparedDatabase();
    const secret = `v1:${Buffer.alloc(32, 3).toString('base64')}`;
    const config = readConfig({ DATABASE_URL: url, SECRET_KEY: secret });
    const start = async (): Promise<void> => {
      const adapters = await openAdapters({ name: 'test', config, secrets: new Secrets(secret) });
      await makeApiTables(adapters.pool);
      await ensureMint(adapters.pool);
      await ensureSender(adapters.pool);
      await adapters.close();
    };
    await start();
    const pool = open(url);
    const asked: string[] = [];
    const counting = {
      query: (query: string | QueryConfig) => {
        asked.push(String(query));
        return pool.query(query as QueryConfig);
      },
    } as unknown as Pool;
    await migrateSchema(counting);
    assert.equal(asked.length, 1, asked.join('\n'));
    const other = await pool.connect();
    await other.query(`begin; select pg_advisory_xact_lock(${tablesLock})`);
    await other.query("select pg_advisory_xact_lock(hashtextextended('event store tables es', 0))");
    await start();
    await other.query('rollback');
    other.release();
  });

  t('a database that a newer build has changed is left alone, and the start says so', async () => {
    const { pool } = await empty();
    await migrateSchema(pool, {}, small('create table small.one ()', 'create table small.two ()'));
    const lines: string[] = [];
    const warn = (line: string): void => void lines.push(line);
    await migrateSchema(pool, { warn }, small('create table small.one ()'));
    assert.deepEqual(lines, ['a newer build has changed the tables of small (002-part): they stay as they are']);
    assert.deepEqual(await appliedIn(pool, 'small'), ['001-part', '002-part']);
  });

  t('a file that is another one than the database was made with is refused', async () => {
    const { pool } = await empty();
    await migrateSchema(pool, {}, small('create table small.one ()'));
    await assert.rejects(
      migrateSchema(pool, {}, small('create table small.one (id int)', 'create table small.two ()')),
      (error) =>
        error instanceof SetupError && /made with another 001-part .* small\.schema_versions/.test(error.message),
    );
    assert.deepEqual(await appliedIn(pool, 'small'), ['001-part']);
  });

  t('tables that no numbered file made are refused before anything is changed, also by a dry run', async () => {
    const { pool } = await empty();
    await pool.query('create schema ops; create table ops.any_table ()');
    const isRefused = (error: unknown): boolean =>
      error instanceof SetupError &&
      /tables that no release made, as builds of 0\.1 did.*UPGRADE\.md/.test(error.message);
    await assert.rejects(migrateSchema(pool), isRefused);
    await assert.rejects(pendingFiles(pool), isRefused);
    const { rows } = await pool.query("select relname from pg_class where relnamespace = 'ops'::regnamespace");
    assert.deepEqual(rows, [{ relname: 'any_table' }]);
  });
});

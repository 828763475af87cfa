/** Data of 0.1: a start on one machine moves it aside and says so, and separate processes refuse its database. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { openAdapters } from '#infra/adapters.ts';
import { startEmbedded } from '#infra/postgres/embedded.ts';
import { startWithoutFormerData } from '#infra/postgres/former-data.ts';
import { locate } from '#infra/postgres/server-files.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { serverFolder, testDatabase } from '#test/support/postgres.ts';
import { afterFile, suite } from '#test/support/suite.ts';

const ask = async (url: string, sql: string): Promise<readonly Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
};
const former = 'create schema ops; create table ops.metrics_accounts as select 42 as n';
const tables = `select relname from pg_class where relname in ('metrics_accounts', 'own') order by 1`;

suite('data of 0.1', { drawn: true, costs: 7, timeoutMs: 120_000 }, (t) => {
  /** A data folder as a build leaves it: a database with this table, files and figures. */
  const folderWith = async (sql: string): Promise<string> => {
    const { dataDir, drop } = serverFolder();
    afterFile(drop);
    const server = await startEmbedded({ dataDir });
    await ask(server.url, sql);
    await server.stop();
    for (const name of ['blobs', 'analytics']) {
      mkdirSync(path.join(dataDir, name));
      writeFileSync(path.join(dataDir, name, 'file'), name);
    }
    writeFileSync(path.join(dataDir, 'secret.key'), 'stays');
    return dataDir;
  };
  const asides = (dataDir: string) => readdirSync(dataDir).filter((name) => name.startsWith('before-1.0-'));
  const started = async (dataDir: string, moved?: (to: string) => void) => {
    const steps: string[] = [];
    const server = await startWithoutFormerData({ dataDir, onProgress: (step) => steps.push(step) }, moved);
    const rows = await ask(server.url, tables).finally(() => server.stop());
    return { rows, said: steps.filter((step) => step.includes('builds of 0.1')) };
  };

  t('is moved aside by name, once, and the start says where it is; the keys stay', async () => {
    const dataDir = await folderWith(former);
    const first = await started(dataDir);
    assert.deepEqual(first.rows, []);
    const [aside = '', ...more] = asides(dataDir);
    assert.deepEqual(more, []);
    assert.equal(first.said.length, 1);
    for (const word of [aside, 'UPGRADE.md']) assert.ok(first.said[0]?.includes(word), first.said[0]);
    for (const name of ['blobs', 'analytics'])
      assert.equal(readFileSync(path.join(dataDir, aside, name, 'file'), 'utf8'), name);
    const { home } = locate(dataDir);
    const kept = /former-\w+/.exec(first.said[0] ?? '')?.[0];
    const cluster = home === dataDir ? path.join(dataDir, aside, 'cluster') : path.join(home, kept ?? 'none');
    assert.ok(existsSync(path.join(cluster, 'PG_VERSION')), cluster);
    assert.equal(readFileSync(path.join(dataDir, 'secret.key'), 'utf8'), 'stays');
    // The day after.
    assert.deepEqual((await started(dataDir)).said, []);
    assert.deepEqual(asides(dataDir), [aside]);
  });

  t('a start that dies between two moves leaves the rest to the next one', async () => {
    const dataDir = await folderWith(former);
    for (const dies of ['blobs', 'analytics']) {
      const dying = started(dataDir, (to) => {
        if (to.endsWith(dies)) throw new Error(`dies after ${dies}`);
      });
      await assert.rejects(dying, new RegExp(`dies after ${dies}`));
      assert.ok(!existsSync(path.join(dataDir, dies)) && existsSync(locate(dataDir).cluster));
    }
    const next = await started(dataDir);
    assert.deepEqual([next.rows, next.said.length], [[], 1]);
    const there = asides(dataDir).flatMap((aside) => readdirSync(path.join(dataDir, aside)));
    assert.deepEqual(
      there.filter((name) => name !== 'cluster').sort(),
      ['analytics', 'blobs'],
      'each part is in one of the folders',
    );
    assert.deepEqual((await started(dataDir)).said, []);
  });

  t('a start that dies after the last move finds a new folder, and its password serves', async () => {
    const dataDir = await folderWith(former);
    const dying = started(dataDir, (to) => {
      if (/(cluster|former-\w+)$/.test(to)) throw new Error('dies at the end');
    });
    await assert.rejects(dying, /dies at the end/);
    assert.deepEqual(await started(dataDir), { rows: [], said: [] });
  });

  t('nothing is moved where no table of 0.1 is: a missing one proves nothing', async () => {
    const dataDir = await folderWith('create table own as select 1 as n');
    assert.deepEqual(await started(dataDir), { rows: [{ relname: 'own' }], said: [] });
    assert.deepEqual(asides(dataDir), []);
    assert.ok(existsSync(path.join(dataDir, 'blobs', 'file')));
  });

  t('its database is refused by separate processes in the same words, and stays as it is', async () => {
    const { url } = await testDatabase();
    await ask(url, 'drop schema if exists ops cascade');
    await ask(url, former);
    const config = readConfig({ DATABASE_URL: url, PORT: '0' });
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    for (let start = 0; start < 2; start += 1) {
      await assert.rejects(openAdapters({ name: 'api', config, secrets }), (error) => {
        assert.ok(error instanceof SetupError, String(error));
        assert.match(error.message, /tables that no release made, as builds of 0\.1 did.*UPGRADE\.md/);
        return true;
      });
      const made = await ask(url, `select relname from pg_class c where relnamespace = 'ops'::regnamespace`);
      assert.deepEqual(made, [{ relname: 'metrics_accounts' }]);
    }
  });
});

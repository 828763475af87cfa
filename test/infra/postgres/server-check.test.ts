/** Servers that cannot carry us are found at the start, with the way out in the error. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { openAdapters } from '#infra/adapters.ts';
import { checkServer, requireVersion } from '#infra/postgres/server-check.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { type PoolerOptions, startPooler } from '#test/support/pooler.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('check of the Postgres server', (t) => {
  let url: string;

  t.before(async () => {
    ({ url } = await testDatabase());
  });

  const through = async <T>(options: Omit<PoolerOptions, 'url'>, work: (url: string) => Promise<T>): Promise<T> => {
    const pooler = await startPooler({ url, ...options });
    try {
      return await work(pooler.url);
    } finally {
      await pooler.close();
    }
  };

  t(
    'the pooler of these tests shares sessions between transactions, as a pooler in transaction mode does',
    async () => {
      await through({ mode: 'transaction' }, async (pooled) => {
        const clients = [new pg.Client({ connectionString: pooled }), new pg.Client({ connectionString: pooled })];
        const [one, other] = clients as [pg.Client, pg.Client];
        await Promise.all(clients.map((client) => client.connect()));
        await one.query({ name: 'mine', text: 'select 1' });
        await other.query('begin');
        await assert.rejects(one.query({ name: 'mine', text: 'select 1' }), /prepared statement "mine" does not exist/);
        await other.query('commit');
        await Promise.all(clients.map((client) => client.end()));
      });
    },
  );

  t('a pooler in transaction mode is refused with a message that names the alternative', async () => {
    const kinds = [{}, { takes: 'first', open: 2 }, { takes: 'first', open: 3 }, { takes: 'first', open: 12 }] as const;
    for (const kind of kinds) {
      const said = await through({ mode: 'transaction', ...kind }, (pooled) =>
        checkServer(pooled).then(String, String),
      );
      assert.match(said, /DATABASE_URL \(127\.0\.0\.1:\d+\) leads through a connection pooler/, JSON.stringify(kind));
      assert.match(said, /own address, or a port of the pooler in session mode/);
    }
  });

  t('a server and a pooler in session mode are accepted', async () => {
    await checkServer(url);
    await through({ mode: 'session' }, checkServer);
  });

  t('a database without UTF-8 is refused with the command that creates one', async () => {
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    for (const encoding of ['LATIN1', 'SQL_ASCII']) {
      const name = `encoding_${encoding.toLowerCase()}_${process.pid}`;
      await admin.query(`create database ${name} encoding '${encoding}' locale 'C' template template0`);
      const other = Object.assign(new URL(url), { pathname: `/${name}` }).href;
      const said = await checkServer(other).then(String, String);
      await admin.query(`drop database ${name} with (force)`);
      assert.match(said, new RegExp(`encoding is ${encoding}: UTF8 is needed`));
    }
    await admin.end();
  });

  t('a process checks the server before anything else, and the error shows no password', async () => {
    await through({ mode: 'transaction' }, async (pooled) => {
      const named = new URL(pooled);
      named.password = 'of-the-canary';
      const env = { DATABASE_URL: named.href, SECRET_KEY: `v1:${'k'.repeat(43)}`, BASE_URL: 'http://127.0.0.1:1/v1' };
      const config = readConfig(env);
      const opening = openAdapters({ name: 'start', config, secrets: new Secrets(config.secretKey ?? '') });
      const said = await opening.then(
        async (adapters) => {
          await adapters.close();
          return 'started';
        },
        (error: Error) => `${error.stack}`,
      );
      assert.match(said, /leads through a connection pooler/);
      assert.ok(!said.includes('of-the-canary'));
    });
  });

  t('a server that is too old is refused with its version and the minimum', () => {
    for (const fine of ['15.0', '18.1 (Debian 18.1-1.pgdg13+1)', '19beta1']) requireVersion(fine);
    assert.throws(() => requireVersion('14.13'), /Postgres 14\.13: at least 15 is needed/);
    assert.throws(() => requireVersion('9.6.24'), /at least 15/);
  });
});

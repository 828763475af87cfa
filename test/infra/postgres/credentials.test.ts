import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { credentialCases } from '#contracts/ports/credentials.suite.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('network credentials in Postgres', (t) => {
  credentialCases(t, async () => {
    const { url } = await testDatabase();
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    const pools: Pool[] = [];
    const process = () => {
      const pool = openPool({ url, max: 4 });
      pools.push(pool);
      const keys = new PostgresDataKeys({ pool, secrets });
      return { keys, store: new PostgresCredentials({ pool, keys }) };
    };
    const [one, two] = [process(), process()];
    await one.keys.migrate();
    await Promise.all([one.store.migrate(), two.store.migrate()]);
    return {
      ...{ store: one.store, other: two.store },
      destroyKey: (clientId) => one.keys.destroy(clientId),
      close: async () => void (await Promise.all(pools.map((pool) => pool.end()))),
    };
  });
});

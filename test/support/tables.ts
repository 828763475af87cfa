/** Every table that our processes make. */
import type { Pool } from 'pg';
import { openAdapters } from '#infra/adapters.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { makeApiTables } from '#services/api/start.ts';
import { ensureSender } from '#services/webhooks/statements.ts';

/** Makes them in an empty database, and leaves it open. */
export const openTables = async (url: string): Promise<{ readonly pool: Pool; close(): Promise<void> }> => {
  const key = `v1:${Buffer.alloc(32, 7).toString('base64')}`;
  const config = readConfig({ DATABASE_URL: url, SECRET_KEY: key });
  const adapters = await openAdapters({ name: 'test', config, secrets: new Secrets(key) });
  const { pool } = adapters;
  await makeApiTables(pool);
  await ensureMint(pool);
  await ensureSender(pool);
  return { pool, close: () => adapters.close() };
};

/**
 * Runs `fill` while the tables of the read models have no index but their keys: one that is made over all rows costs a
 * fraction of one that grows with them.
 */
export const withoutIndexes = async (pool: Pool, fill: () => Promise<void>): Promise<void> => {
  const { rows } = await pool.query<{ readonly name: string; readonly made: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as made
     from pg_index x join pg_class t on t.oid = x.indrelid
     where t.relnamespace = 'read'::regnamespace and not exists (select from pg_constraint where conindid = indexrelid)`,
  );
  await pool.query(rows.map(({ name }) => `drop index ${name}`).join('; '));
  await fill();
  await pool.query(rows.map(({ made }) => made).join('; '));
};

/** Every table that our processes make. */
import type { Pool } from 'pg';
import { openAdapters } from '#infra/adapters.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';
import { migrateMint } from '#projections/webhooks/mint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { migrateApi } from '#services/api/start.ts';
import { migrateInsights } from '#services/insights/tables.ts';
import { migrateMedia } from '#services/media/tables.ts';
import { migrateOutcomes } from '#services/outcomes/tables.ts';
import { migrateAccountSlots } from '#services/publisher/account-slots.ts';
import { migrateReports } from '#services/reports/tables.ts';
import { migrateSender } from '#services/webhooks/statements.ts';

/** Makes them in an empty database, and leaves it open. */
export const openTables = async (url: string): Promise<{ readonly pool: Pool; close(): Promise<void> }> => {
  const key = `v1:${Buffer.alloc(32, 7).toString('base64')}`;
  const config = readConfig({ DATABASE_URL: url, SECRET_KEY: key });
  const adapters = await openAdapters({ name: 'test', config, secrets: new Secrets(key) });
  const { pool } = adapters;
  await new WorkspacePositions(pool).prepare();
  await new PostgresRelayCheckpoint({ pool, schema: 'ops' }).prepare();
  await new SandboxNetwork({ database: { pool } }).migrate();
  await migrateApi(pool);
  await migrateMint(pool);
  await migrateSender(pool);
  await migrateMedia(pool);
  await migrateReports(pool);
  await migrateOutcomes(pool);
  await migrateInsights(pool);
  await migrateAccountSlots(pool);
  return { pool, close: () => adapters.close() };
};

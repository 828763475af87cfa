import type { Pool } from 'pg';
import { migrateAnalytics } from '#projections/analytics/live.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { migrateCredentialPlaces } from '#projections/queries/credential-places.ts';
import { migrate as migrateWebhooks } from '#projections/webhooks/tables.ts';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import { migrateProgress } from '#runtime/work/progress.ts';
import { migrateHolds } from '#runtime/work/publishing-hold.ts';
import { migrateRestores } from '#runtime/work/restores.ts';
import { migrateOAuth } from '#services/auth/oauth/tables.ts';
import { migratePeople } from '#services/auth/people/tables.ts';
import { migrateImportUrls } from '#services/workflows/import-urls.ts';
import { migrateMediaUsage } from '#services/workflows/media-usage.ts';
import { migrateNotedMonths } from '#services/workflows/quota/noted-months.ts';
import { migrateLastUses } from './last-uses.ts';
import { migrateRunPlaces } from './reports/run-places.ts';

/** Tables that the api reads and writes: whichever process starts first makes them. */
export const migrateApi = async (pool: Pool): Promise<void> => {
  await migratePositions(pool);
  await migrateReadModels(pool);
  await migrateWebhooks(pool);
  await migrateProgress(pool);
  await migrateHolds(pool);
  await migrateRestores(pool);
  await migrateLeases(pool);
  await migrateImportUrls(pool);
  await migrateMediaUsage(pool);
  await migrateNotedMonths(pool);
  await migrateAnalytics(pool);
  await migrateCredentialPlaces(pool);
  await migratePeople(pool);
  await migrateLastUses(pool);
  await migrateRunPlaces(pool);
  await migrateOAuth(pool);
};

import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { migrateAnalytics } from '#projections/analytics/live.ts';
import { migrate as migrateReadModels } from '#projections/tables.ts';
import { migrate as migrateWebhooks } from '#projections/webhooks/tables.ts';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { aborted, runProcess } from '#runtime/process/lifecycle.ts';
import { migrateProgress } from '#runtime/work/progress.ts';
import { migrateImportUrls } from '#services/workflows/import-urls.ts';
import { migrateMediaUsage } from '#services/workflows/media-usage.ts';
import { openDoor } from './server.ts';
import { baseUrlOf, startApi } from './start.ts';

await runProcess({
  name: 'api',
  summary: 'the REST API and the invite page',
  async main({ config, logger, registry, readiness, report, signal, ready, onClose }) {
    const secrets = new Secrets(config.secretKey ?? '');
    const door = await openDoor({ ...config, setting: 'PORT', registry });
    onClose(door.close);
    const adapters = await openAdapters({ name: 'api', config, secrets, baseUrl: () => baseUrlOf(config, door) });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    await migratePositions(adapters.pool);
    await migrateReadModels(adapters.pool);
    await migrateWebhooks(adapters.pool);
    await migrateProgress(adapters.pool);
    await migrateImportUrls(adapters.pool);
    await migrateMediaUsage(adapters.pool);
    await migrateAnalytics(adapters.pool);
    const api = await startApi({ adapters, door, config, secrets, logger, readiness, report, sandboxProfile });
    onClose(api.stop);
    ready({ port: api.port, baseUrl: api.baseUrl });
    await aborted(signal);
  },
});

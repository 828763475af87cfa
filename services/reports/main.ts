import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { analyticsStore } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { watchConsumers } from '#runtime/consuming/lane-health.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { stores } from '#runtime/process/settings/reads.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { startReports } from './reports.ts';

await runProcess({
  name: 'reports',
  summary: 'makes saved reports when they are due or asked for',
  reads: [...stores, 'leaseTtlMs', 'reportWaitMs'],
  requires: ['databaseUrl', 'secretKey', 'clickhouseUrl'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const adapters = await openAdapters({
      name: 'reports',
      config,
      logger,
      secrets: new Secrets(config.secretKey ?? ''),
    });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    const { pool, log, blobs, analytics: client } = adapters;
    if (client === null) throw new Error('CLICKHOUSE_URL is required');
    const clock = await DatabaseClock.open({ pool, logger, registry, readiness });
    onClose(() => clock.close());
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    const analytics = analyticsReader(analyticsStore(client, pool));
    const deps = { log, eventStore: adapters.store, store, codec, pool, blobs, analytics, config, logger, registry };
    const { done, consumers } = startReports({ ...deps, readiness, clock, now: clock.now }, signal);
    readiness.add('store', async () => adapters.store.ping().then(() => null));
    readiness.add('log', async () => log.ping().then(() => null));
    readiness.add('report files', async () => blobs.ping().then(() => null));
    watchConsumers({ registry, readiness, pool }, 'report consumers', () => consumers);
    ready();
    await done;
  },
});

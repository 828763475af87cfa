import { openParts } from '#infra/parts.ts';
import { watchConsumers } from '#runtime/consuming/lane-health.ts';
import { migrate as migratePositions } from '#runtime/consuming/positions.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { migrateLeases } from '#runtime/work/leases.ts';
import { sweepMetrics } from './metrics.ts';
import { startOutcomes } from './outcomes.ts';

await runProcess({
  name: 'outcomes',
  summary: 'tells posts what became of their targets, and resumes work interrupted by a crash',
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const parts = await openParts({ name: 'outcomes', config, secrets: new Secrets(config.secretKey ?? '') });
    onClose(parts.close);
    const codec = new EventCodec(parts.dataKeys);
    const store = new DomainStore(parts.store, codec, config.partitions);
    readiness.add('store', async () => parts.store.ping().then(() => null));
    readiness.add('log', async () => parts.log.ping().then(() => null));
    await migratePositions(parts.pool);
    await migrateLeases(parts.pool);
    const clock = await DatabaseClock.open({ pool: parts.pool, logger, registry, readiness });
    onClose(() => clock.close());
    const time = { clock, now: clock.now };
    const deps = { log: parts.log, eventStore: parts.store, store, codec, pool: parts.pool, config, logger, ...time };
    const outcomes = startOutcomes({ ...deps, onFailure: sweepMetrics(registry, parts.pool) }, signal);
    watchConsumers({ registry, readiness, pool: parts.pool }, 'outcomes', () => outcomes.consumers);
    ready();
    await outcomes.done;
  },
});

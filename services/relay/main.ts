import { randomUUID } from 'node:crypto';
import { openAdapters } from '#infra/adapters.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { stores } from '#runtime/process/settings/reads.ts';
import { watchRelay } from './health.ts';
import { startRelay } from './loop.ts';

await runProcess({
  name: 'relay',
  summary: 'copies the event store to Kafka, in order; one instance is active, others stand by',
  reads: [...stores, 'leaseTtlMs'],
  requires: ['databaseUrl', 'secretKey', 'kafkaBrokers'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const adapters = await openAdapters({
      name: 'relay',
      config,
      logger,
      secrets: new Secrets(config.secretKey ?? ''),
    });
    onClose(adapters.close);
    const writer = await adapters.openLogWriter();
    if (writer === null) throw new Error('the relay needs KAFKA_BROKERS: without Kafka the event table is the log');
    onClose(() => writer.close());
    const checkpoint = new PostgresRelayCheckpoint({ pool: adapters.pool });
    const { store } = adapters;
    const holder = `relay-${randomUUID()}`;
    const leaseMs = config.leaseTtlMs;
    const relay = startRelay({
      store,
      writer,
      checkpoint,
      holder,
      partitions: config.partitions,
      signal,
      logger,
      leaseMs,
    });
    readiness.add('store', async () => store.ping().then(() => null));
    watchRelay({ registry, readiness }, relay);
    ready({ holder });
    await relay.done;
  },
});

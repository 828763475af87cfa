import { randomUUID } from 'node:crypto';
import { openParts } from '#infra/parts.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { watchRelay } from './health.ts';
import { startRelay } from './loop.ts';

await runProcess({
  name: 'relay',
  summary: 'copies the event store to Kafka, in order; one instance is active, others stand by',
  requires: ['databaseUrl', 'secretKey', 'kafkaBrokers'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const parts = await openParts({ name: 'relay', config, secrets: new Secrets(config.secretKey ?? '') });
    onClose(parts.close);
    const writer = await parts.openLogWriter();
    if (writer === null) throw new Error('without Kafka there is nothing to relay to');
    onClose(() => writer.close());
    const checkpoint = new PostgresRelayCheckpoint({ pool: parts.pool, schema: 'ops' });
    await checkpoint.prepare();
    const { store } = parts;
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

import { openAdapters } from '#infra/adapters.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { startDispatcher } from '#projections/webhooks/dispatcher.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import { ensureWeeks } from '#projections/webhooks/tables.ts';
import { watchConsumers } from '#runtime/consuming/lane-health.ts';
import { Exchange } from '#runtime/egress/exchange.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { callsOut, stores } from '#runtime/process/settings/reads.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { keyVersionsInUse } from './endpoints.ts';
import { runRetention } from './retention.ts';
import { Sender } from './sender.ts';
import { ensureSender } from './statements.ts';

await runProcess({
  name: 'webhooks',
  summary: 'mints a delivery for each event that an endpoint subscribes to, and sends it until the receiver accepts it',
  reads: [
    ...stores,
    ...callsOut,
    'webhookPerEndpoint',
    'webhookPerHost',
    'webhookPerTenant',
    'webhookConcurrency',
    'webhookHostFailures',
  ],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const secrets = new Secrets(config.secretKey ?? '');
    const adapters = await openAdapters({ name: 'webhooks', config, secrets, logger });
    onClose(adapters.close);
    const { pool, log } = adapters;
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    await ensureWeeks(pool);
    await ensureMint(pool);
    await ensureSender(pool);
    const clock = await DatabaseClock.open({ pool, logger, registry, readiness });
    onClose(() => clock.close());
    secrets.demand(await keyVersionsInUse(pool));
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    const exchange = new Exchange(guardOf(config), {
      totalMs: config.webhookExchangeMs,
      // Several endpoints may lie behind one origin.
      maxIdlePerOrigin: config.webhookPerTenant,
      maxIdle: config.webhookConcurrency,
    });
    onClose(() => exchange.close());
    const sender = new Sender({
      databaseUrl: adapters.databaseUrl,
      pool,
      store,
      secrets,
      exchange,
      config,
      clock,
      now: clock.now,
      logger,
      registry,
      readiness,
    });
    const dispatcher = startDispatcher(
      { log, eventStore: adapters.store, store, codec, pool, handover: sender, logger },
      signal,
    );
    readiness.add('store', async () => adapters.store.ping().then(() => null));
    readiness.add('log', async () => log.ping().then(() => null));
    watchConsumers({ registry, readiness, pool }, 'dispatcher', () => [dispatcher.consumer]);
    ready();
    // The sender ends after the dispatcher, so it still sends deliveries that the dispatcher hands over at its end.
    const over = new AbortController();
    await Promise.all([
      dispatcher.done.finally(() => over.abort()),
      sender.run(over.signal),
      runRetention({ pool, logger, now: clock.now }, signal),
    ]);
  },
});

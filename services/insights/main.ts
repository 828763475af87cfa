import { openAdapters } from '#infra/adapters.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { watchConsumers } from '#runtime/consuming/lane-health.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { SourceOf } from './deps.ts';
import { startInsights } from './worker.ts';

await runProcess({
  name: 'insights',
  summary: 'asks the networks for figures of posts and accounts, and records them',
  reads: [...stores, ...callsOut, ...networks, 'leaseTtlMs', 'insightsConcurrency'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const adapters = await openAdapters({
      name: 'insights',
      config,
      logger,
      secrets: new Secrets(config.secretKey ?? ''),
    });
    onClose(adapters.close);
    const { pool, log } = adapters;
    const sandbox = new SandboxNetwork({ database: { url: adapters.databaseUrl, connections: 4 } });
    onClose(() => sandbox.close());
    const clock = await DatabaseClock.open({ pool, logger, registry, readiness });
    onClose(() => clock.close());
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    const http = new GuardedNetworkHttp(guardOf(config));
    const live = liveNetworks({ stores: adapters, http, clock: clock.now, config });
    const sourceOf: SourceOf = (network, platform) =>
      network === 'sandbox' ? sandbox : (live.sources[platform] ?? null);
    const reading = { log, eventStore: adapters.store, store, codec, pool };
    const deps = { ...reading, sourceOf, config, clock, logger, registry, readiness };
    readiness.add('store', async () => adapters.store.ping().then(() => null));
    readiness.add('log', async () => log.ping().then(() => null));
    const { done, consumers } = startInsights(deps, signal);
    watchConsumers({ registry, readiness, pool }, 'insights consumer', () => consumers);
    ready();
    await done;
  },
});

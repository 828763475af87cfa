import { openAdapters } from '#infra/adapters.ts';
import { versionsOf } from '#infra/platforms/doctor.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { watchConsumers } from '#runtime/consuming/lane-health.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import { publishingCheck } from '#runtime/process/telemetry.ts';
import { watchVersions } from '#runtime/work/api-versions.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { sweepMetrics } from './metrics.ts';
import { startOutcomes } from './outcomes.ts';

await runProcess({
  name: 'outcomes',
  summary:
    'records the outcomes of targets in their posts, resumes work interrupted by a crash, tells of overdue targets, makes the copies of recycled posts, and listens to networks',
  reads: [...stores, ...callsOut, ...networks, 'leaseTtlMs', 'publishing'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const secrets = new Secrets(config.secretKey ?? '');
    const adapters = await openAdapters({ name: 'outcomes', config, secrets, logger, faultPoint });
    onClose(adapters.close);
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    readiness.add('store', async () => adapters.store.ping().then(() => null));
    readiness.add('log', async () => adapters.log.ping().then(() => null));
    const hold = new PublishingHold(adapters.pool, config.publishing);
    readiness.add(publishingCheck, () => hold.line());
    const clock = await DatabaseClock.open({ pool: adapters.pool, logger, registry, readiness });
    onClose(() => clock.close());
    const time = { clock, now: clock.now };
    const deps = {
      log: adapters.log,
      eventStore: adapters.store,
      store,
      codec,
      pool: adapters.pool,
      hold,
      config,
      logger,
      sandboxClocks,
      ...time,
    };
    const http = new GuardedNetworkHttp(guardOf(config));
    const { credentials, connectCodes, pushedPosts } = adapters;
    const {
      adapters: offered,
      refreshers,
      revokers,
      refreshWindows,
      listeners,
    } = liveNetworks({
      ...{ stores: adapters, http, clock: clock.now, config },
    });
    const rules = Object.fromEntries(
      Object.entries(refreshWindows).map(([platform, windowMs]) => [platform, { windowMs }]),
    );
    const versions = versionsOf(config, Object.keys(offered));
    watchVersions({ versions, now: clock.now, registry, readiness });
    const live = {
      versions,
      watch: { credentials, refreshers, rules },
      revoke: { credentials, revokers },
      listen: { credentials, listeners, connectCodes, pushedPosts },
    };
    const outcomes = startOutcomes({ ...deps, ...live, ...sweepMetrics(registry, adapters.pool) }, signal);
    watchConsumers({ registry, readiness, pool: adapters.pool }, 'outcomes', () => outcomes.consumers);
    ready();
    await outcomes.done;
  },
});

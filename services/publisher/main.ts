import path from 'node:path';
import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { versionsOf } from '#infra/platforms/doctor.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import { watchVersions } from '#runtime/work/api-versions.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { Platform } from '#schemas/common.ts';
import { AccountLimits } from './account-limits.ts';
import { declareOlderCopy } from './look-back.ts';
import { NetworkCalls } from './network-calls.ts';
import { runPublisher } from './publisher.ts';

await runProcess({
  name: 'publisher',
  summary: 'publishes each target at its time, at most once, and finds out what became of it',
  reads: [
    ...stores,
    ...callsOut,
    ...networks,
    'leaseTtlMs',
    'publishing',
    'publishConcurrency',
    'ffmpegPath',
    'mediaTempDir',
  ],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const adapters = await openAdapters({
      name: 'publisher',
      config,
      logger,
      secrets: new Secrets(config.secretKey ?? ''),
    });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    // The sandbox has its own pool and transactions, so that its record of posts survives a crash of the publisher.
    const sandbox = new SandboxNetwork({
      // A connection is held during the append of a boundary, so a burst needs many.
      database: { url: adapters.databaseUrl, connections: 48 },
      faultPoint,
      ffmpegPath: config.ffmpegPath,
      ...(config.boundaryDeadlineMs === null ? {} : { boundaryDeadlineMs: config.boundaryDeadlineMs }),
      ...(config.settleWindowMs === null ? {} : { settleWindowMs: config.settleWindowMs }),
    });
    onClose(() => sandbox.close());
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    const clock = await DatabaseClock.open({ pool: adapters.pool, logger, registry, readiness });
    onClose(() => clock.close());
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    const limits = new AccountLimits({ store, now: clock.now, logger });
    const calls = new NetworkCalls({ store, now: clock.now, logger, registry });
    const guard = guardOf(config);
    const http = new GuardedNetworkHttp(guard, { report: calls.report });
    const live = liveNetworks({ stores: adapters, http, clock: clock.now, config, onLimits: limits.observe });
    const versions = versionsOf(config, Object.keys(live.adapters));
    watchVersions({ versions, now: clock.now, registry, readiness });
    const adapterOf = (network: 'live' | 'sandbox', platform: Platform) =>
      network === 'sandbox' ? sandbox : (live.adapters[platform] ?? null);
    const accountsOf = (network: 'live' | 'sandbox', platform: Platform) =>
      network === 'sandbox' ? sandbox : (live.accounts[platform] ?? null);
    await declareOlderCopy({ store: adapters.store, pool: adapters.pool, openLog: adapters.openLogWriter, logger });
    readiness.add('store', async () => adapters.store.ping().then(() => null));
    readiness.add('database', async () => adapters.pool.query('select 1').then(() => null));
    ready();
    const workDir = path.join(config.mediaTempDir ?? path.join(config.dataDir, 'media-work'), 'publisher');
    const { pool, blobs } = adapters;
    const given = {
      sandboxClocks,
      store,
      pool,
      blobs,
      workDir,
      adapterOf,
      accountsOf,
      config,
      clock,
      logger,
      registry,
      readiness,
      calls,
    };
    await runPublisher(adapters.changes === null ? given : { ...given, changes: adapters.changes }, signal);
    await limits.close();
  },
});

/**
 * The publisher with its adapters of live networks, alone in its process; prints one JSON line at the end: the wall clock
 * at which each publish call began, and its first call of the network.
 */
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { processEnv, readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { NetworkCalls } from '#services/publisher/network-calls.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';
import type { Simulated } from './simulated.ts';

const [, , url = '', key = '', reported = '{}'] = process.argv;
const { env, slow } = JSON.parse(reported) as Omit<Simulated, 'accounts'>;
const parts = await openPublishing(url, { database: { url, connections: 8 } });
const { pool, store, blobs, workDir, sandbox } = parts;
const logger = createLogger('bench', 'warn');
const draining = drainSignal();
const clock = await DatabaseClock.open({ pool, logger });
const calls = new NetworkCalls({ store, now: clock.now, logger });
const guarded = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }), {
  report: calls.report,
});

const begun: [string, number][] = [];
const called: [string, number][] = [];
const http: NetworkHttp = {
  send: (call: NetworkCall, signal: AbortSignal) => {
    if (call.subject.targetId !== null) called.push([call.subject.targetId, Date.now()]);
    return guarded.send(call, signal);
  },
};
const config = readConfig({ ...processEnv(), ...env });
const live = liveNetworks({
  stores: {
    credentials: new PostgresCredentials({ pool, keys: new PostgresDataKeys({ pool, secrets: new Secrets(key) }) }),
    appLimits: new PostgresAppLimits({ pool }),
    connectCodes: new PostgresConnectCodes({ pool }),
    pushedPosts: new PostgresPushedPosts({ pool }),
  },
  ...{ http, clock: clock.now },
  config: { ...config, telegramBotToken: null },
});

/** With the times of `adapter`, and a publish call of its own. */
const withPublish = (adapter: PlatformAdapter, publish: PlatformAdapter['publish']): PlatformAdapter => ({
  boundaryDeadlineMs: Math.max(adapter.boundaryDeadlineMs, 30_000),
  settleWindowMs: (...asked) => adapter.settleWindowMs(...asked),
  absenceIsProof: (...asked) => adapter.absenceIsProof(...asked),
  listsOwnPosts: (...asked) => adapter.listsOwnPosts(...asked),
  reconcile: (request, boundary) => adapter.reconcile(request, boundary),
  comment: (request, signal) => adapter.comment(request, signal),
  publish,
});
/** Its boundary call is answered after 20 s. */
const hanging = withPublish(sandbox, async ({ targetId, account }, steps) => {
  const signal = await steps.boundary({});
  const subject = { accountId: account.id, targetId };
  await guarded.send({ method: 'POST', url: slow, headers: {}, body: [Buffer.from('{}')], subject }, signal);
  return { kind: 'published', externalId: targetId, permalink: null, publishedAt: new Date().toISOString() };
});
/** One of the networks itself is as slow. */
const adapters = { ...live.adapters, pinterest: hanging };
const watched = new Map(
  Object.entries(adapters).map(([platform, adapter]) => [
    platform,
    withPublish(adapter, (request, steps) => {
      begun.push([request.targetId, Date.now()]);
      return adapter.publish(request, steps);
    }),
  ]),
);
process.stdout.write('ready\n');
await runPublisher(
  {
    ...{ store, pool, blobs, workDir, config, clock, logger, calls },
    adapterOf: (network, platform) => (network === 'live' ? (watched.get(platform) ?? null) : hanging),
  },
  draining,
);
await clock.close();
await parts.close();
process.stdin.destroy();
process.stdout.write(`${JSON.stringify({ begun, called })}\n`);

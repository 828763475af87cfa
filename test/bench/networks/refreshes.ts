/**
 * A night in which 10,000 consents of X end soon: calls of its token endpoint, and the most in one minute, with two
 * processes that watch. Time runs 100 times as fast: an hour's budget is spent in 36 s, a minute passes in 600 ms.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { appOf } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { xNetwork } from '#infra/platforms/x/index.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { usualRules, watchCredentials } from '#services/outcomes/credentials.ts';
import { startX } from '#test/support/networks/x/index.ts';
import type { PublishingWorld } from '#test/support/publishing.ts';
import { withWorlds } from '../publisher-rounds.ts';
import type { BenchRow } from '../row.ts';

const speed = 100;
const nightHours = 8;
const perWorkspace = 100;

/** The largest number of instants within one window. @param at ascending, milliseconds */
const most = (at: readonly number[], windowMs: number): number => {
  let from = 0;
  let peak = 0;
  for (const [to, instant] of at.entries()) {
    while ((at[from] ?? 0) <= instant - windowMs) from += 1;
    peak = Math.max(peak, to - from + 1);
  }
  return peak;
};

const night = async (world: PublishingWorld, accounts: number): Promise<readonly BenchRow[]> => {
  const { pool, store, logger } = world;
  const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
  const keys = new PostgresDataKeys({ pool, secrets });
  const credentials = new PostgresCredentials({ pool, keys });
  const appLimits = new PostgresAppLimits({ pool });
  const network = await startX();
  try {
    for (let at = 0; at < accounts; at += perWorkspace) {
      const [workspaceId, clientId] = [randomUUID(), randomUUID()];
      await Promise.all(
        Array.from({ length: perWorkspace }, async () => {
          const secret = { ...network.grant(network.person()), accessUntil: new Date().toISOString() };
          const owner = { accountId: randomUUID(), workspaceId, clientId, platform: 'x' } as const;
          await credentials.keep(owner, { secret, expiresAt: new Date(Date.now() + 86_400_000).toISOString() });
        }),
      );
    }
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const { clientId: xClientId, clientSecret: xClientSecret } = network.state.app;
    const app = appOf('x', { xClientId, xClientSecret, xApi: network.origin });
    if (app === null) throw new Error('X is not offered');
    const { refresher, refreshWindowMs: windowMs } = networkOf(
      xNetwork(),
      { http, credentials, appLimits, clock: Date.now },
      app,
    );
    if (refresher === undefined || windowMs === undefined) throw new Error('X renews no token');
    const asked: number[] = [];
    const watch = () =>
      world.run((signal) =>
        watchCredentials(
          {
            ...{ credentials, store, pool, logger, now: Date.now },
            refreshers: {
              x: (...given) => {
                asked.push(performance.now());
                return refresher(...given);
              },
            },
            rules: { x: { windowMs, perHour: usualRules.perHour * speed } },
            config: { sweepIntervalMs: 300, leaseTtlMs: 2_000 },
          },
          signal,
        ),
      );
    const processes = [watch(), watch()];
    const giveUpAt = performance.now() + (nightHours * 3_600_000) / speed;
    const waiting = async (): Promise<number> => {
      const sql = `select count(*)::int as n from ops.network_credentials where version = 1`;
      return (await pool.query(sql)).rows[0].n;
    };
    let left = await waiting();
    while (left > 0 && performance.now() < giveUpAt) {
      await delay(500);
      left = await waiting();
    }
    for (const one of processes) await one.stop();
    const hours = (((asked.at(-1) ?? 0) - (asked[0] ?? 0)) * speed) / 3_600_000;
    const ofNetwork = network.state.calls.filter(({ path }) => path === '/2/oauth2/token');
    const refused = ofNetwork.filter(({ status }) => status !== 200).length;
    const [peakMinute, peakHour] = [most(asked, 60_000 / speed), most(asked, 3_600_000 / speed)];
    const budget = usualRules.perHour / 60;
    const many = accounts.toLocaleString('en');
    return [
      {
        name: `${many} accounts refreshed a night: calls of the token endpoint`,
        unit: 'calls',
        ours: ofNetwork.length,
        limit: accounts,
        goal: `one for each, within ${nightHours} hours`,
        ok: ofNetwork.length === accounts && refused === 0 && left === 0,
        note: `${hours.toFixed(1)} hours; ${refused} refused, ${left} left; at most ${peakHour.toLocaleString('en')} in an hour of ${usualRules.perHour.toLocaleString('en')}`,
      },
      {
        name: `${many} accounts refreshed a night: most in one minute`,
        unit: 'calls',
        ours: peakMinute,
        limit: budget,
        // A timer that fires late is followed by one on time: at this speed some ms are calls.
        goal: `≤ ${budget} + 5 %`,
        ok: peakMinute <= budget * 1.05 && peakHour <= usualRules.perHour * 1.001,
      },
    ];
  } finally {
    network.close();
  }
};

export const refreshes = (quick: boolean): Promise<readonly BenchRow[]> =>
  withWorlds(1, ([world]) => night(world as PublishingWorld, quick ? 1_000 : 10_000));

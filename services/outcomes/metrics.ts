import type { Pool } from 'pg';
import { countPostsBehind } from '#projections/queries/post-queries.ts';
import { Counter, Gauge, type Registry, scraped } from '#runtime/process/metrics.ts';
import type { CredentialWatchDeps } from './credentials.ts';
import type { ListeningDeps } from './listening.ts';
import type { SweptKind } from './rounds.ts';

/** The count stops at this number, because an operator needs no larger one to act. */
const maxCounted = 10_000;

/** Counts what the rounds meet. */
export interface SweepMetrics {
  readonly onFailure: (kind: SweptKind) => void;
  readonly onOverdue: () => void;
  readonly onRefresh: CredentialWatchDeps['onRefresh'] & {};
  readonly onHearing: ListeningDeps['onHearing'] & {};
}

export const sweepMetrics = (registry: Registry, pool: Pool): SweepMetrics => {
  const registers = [registry];
  const failures = new Counter({
    name: 'sweep_failures_total',
    help: 'posts, archived clients, shifted campaigns, quotas, disconnected accounts and overdue targets that a sweep could not finish; each rests, for longer every time',
    labelNames: ['kind'],
    registers,
  });
  const behind = scraped(() => countPostsBehind(pool, maxCounted));
  new Gauge({
    name: 'plans_behind',
    help: `posts whose targets do not follow their plan yet; counting stops at ${maxCounted}`,
    registers,
    async collect() {
      this.set((await behind())?.posts ?? Number.NaN);
    },
  });
  new Gauge({
    name: 'plans_behind_oldest_seconds',
    help: 'seconds since the oldest plan left behind was last changed; 0 when there is none',
    registers,
    async collect() {
      this.set((await behind())?.oldestSeconds ?? Number.NaN);
    },
  });
  const overdue = new Counter({
    name: 'targets_overdue_total',
    help: 'targets that were unfinished 15 minutes after their attempt was due; each is counted once until it is moved or retried',
    registers,
  });
  const refreshes = new Counter({
    name: 'credential_refreshes_total',
    help: 'refreshes of network credentials ahead of their end; ended: current, lapsed (the owner must connect again), unavailable, missing or failed (by a defect)',
    labelNames: ['platform', 'ended'],
    registers,
  });
  const hearing = new Gauge({
    name: 'network_hearing',
    help: '1 while this process listens to the network and the network answers; of all processes one does',
    labelNames: ['platform'],
    registers,
  });
  const hearingFailures = new Counter({
    name: 'network_hearing_failures_total',
    help: 'answers of networks to their listener without updates; why: unavailable, conflict (another listener or a webhook) or refused (the configured token)',
    labelNames: ['platform', 'why'],
    registers,
  });
  return {
    onHearing: (platform, state) => {
      hearing.set({ platform }, state === 'hearing' ? 1 : 0);
      if (state !== null && state !== 'hearing') hearingFailures.inc({ platform, why: state });
    },
    onFailure: (kind) => failures.inc({ kind }),
    onOverdue: () => overdue.inc(),
    onRefresh: (platform, ended) => refreshes.inc({ platform, ended }),
  };
};

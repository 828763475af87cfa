import type { Pool } from 'pg';
import { Gauge, type Registry, scraped } from '#runtime/process/metrics.ts';
import type { Readiness } from '#runtime/process/telemetry.ts';
import type { Consumer } from './consume.ts';
import { countParked } from './parked-reads.ts';

/** Reports the lanes of a process's consumers in /metrics and /readyz. */

export type Consumers = () => readonly Consumer[];

export interface HealthDeps {
  readonly registry: Registry;
  readonly readiness: Readiness;
  readonly pool: Pool;
}

const minutes = (seconds: number): string => `${Math.ceil(seconds / 60)} min`;

/** Shows parked streams in /readyz, which stays ready because all other streams go on. */
const watchParked = ({ registry, readiness, pool }: HealthDeps, name: string, consumers: Consumers): void => {
  const parked = () =>
    countParked(
      pool,
      consumers().map(({ group }) => group),
    );
  const asked = scraped(parked);
  const gauge = (metric: string, help: string, figure: 'streams' | 'oldest') =>
    new Gauge({
      name: metric,
      help,
      labelNames: ['group'],
      registers: [registry],
      async collect() {
        const found = await asked();
        this.reset();
        for (const { group } of consumers()) {
          this.set({ group }, found === null ? Number.NaN : (found.get(group)?.[figure] ?? 0));
        }
      },
    });
  gauge(
    'parked_streams',
    'streams that a consumer group has set aside, because an event of them cannot be applied',
    'streams',
  );
  gauge(
    'parked_oldest_seconds',
    'seconds since the oldest parked event of a consumer group was parked; 0 when there is none',
    'oldest',
  );
  readiness.add(`${name}: parked`, async () => {
    const found = [...(await parked())];
    if (found.length === 0) return null;
    const summaries = found.map(
      ([group, { streams, oldest: age }]) => `${group} ${streams}, the oldest for ${minutes(age)}`,
    );
    return `streams parked: ${summaries.join('; ')} (npm run admin -- parked list)`;
  });
};

const countLanes = (registry: Registry, consumers: Consumers): void => {
  new Gauge({
    name: 'consumer_lanes',
    help: 'lanes held, by consumer group and state: running, retrying while a dependency is unavailable, or stopped for a rest',
    labelNames: ['group', 'state'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { group, status } of consumers().map((one) => ({ group: one.group, status: one.status() }))) {
        for (const state of ['running', 'retrying', 'stopped']) this.set({ group, state }, 0);
        for (const { state } of status.values()) this.inc({ group, state });
      }
    },
  });
};

/** Metrics of lanes and parked streams, for a process that adds its own check of whether its lanes run. */
export const countConsumers = (deps: HealthDeps, name: string, consumers: Consumers): void => {
  countLanes(deps.registry, consumers);
  watchParked(deps, name, consumers);
};

/** How long a stopped lane still rests, in words for a person. */
export const restingOf = (restsMs: number | null): string =>
  restsMs === null ? '' : ` (stopped; tries again in ${Math.ceil(restsMs / 1_000)} s)`;

/** For /readyz: the lanes that do not run as they should, and why. */
export const stoppedLanes = (consumers: readonly Consumer[]): readonly string[] =>
  consumers.flatMap((one) =>
    [...one.status()].flatMap(([lane, { state, reason, restsMs }]) =>
      state === 'running' ? [] : [`${one.group} ${lane}: ${reason}${restingOf(restsMs)}`],
    ),
  );

/** @param name of the check in /readyz, which fails while a lane does not run */
export const watchConsumers = (deps: HealthDeps, name: string, consumers: Consumers): void => {
  countConsumers(deps, name, consumers);
  deps.readiness.add(name, async () => {
    const stopped = stoppedLanes(consumers());
    if (stopped.length > 0) throw new Error(stopped.join('; '));
    return null;
  });
};

import { type Consumer, stoppedLanes } from './consume.ts';
import { Gauge, type Registry } from './metrics.ts';
import type { Readiness } from './telemetry.ts';

/** What a process says about the lanes of its consumers, in /metrics and in /readyz. */

export type Consumers = () => readonly Consumer[];

/** @param consumers those that run now */
export const countLanes = (registry: Registry, consumers: Consumers): void => {
  new Gauge({
    name: 'consumer_lanes',
    help: 'lanes held, by consumer group and by whether they run, wait for a part, or stopped and rest',
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

/** @param name of the check in /readyz, which fails while a lane does not run */
export const watchConsumers = (
  { registry, readiness }: { readonly registry: Registry; readonly readiness: Readiness },
  name: string,
  consumers: Consumers,
): void => {
  countLanes(registry, consumers);
  readiness.add(name, async () => {
    const stopped = stoppedLanes(consumers());
    if (stopped.length > 0) throw new Error(stopped.join('; '));
    return null;
  });
};

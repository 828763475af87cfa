import { setTimeout as sleep } from 'node:timers/promises';
import { type Coverage, common, type Ran, without } from './coverage.ts';
import type { Trip } from './table.ts';
import type { TripWorld } from './world.ts';

export interface Measured {
  readonly name: string;
  /** What ran each time the trip was taken, from the call until the read models show it. */
  readonly all: Ran;
  /** Of that, what does not run in as long a time without a call. */
  readonly own: Ran;
}

/** What ran by chance beside one trip did not run beside all of them. */
const times = 3;
/** Milliseconds that a consumer has to end its batch after it has stored the position. */
const tailMs = 150;

/** Takes the trip once to fill the caches of the process, and then counts it. */
export const measure = async (trip: Trip, world: TripWorld, coverage: Coverage): Promise<Measured> => {
  const settled = async () => {
    await world.world.settled();
    await sleep(tailMs);
  };
  const stop = await trip.start?.(world);
  const ready = async () => {
    const go = await trip.before(world);
    await settled();
    await coverage.taken();
    return go;
  };
  await (await ready())();
  let longestMs = 0;
  const taken: Ran[] = [];
  while (taken.length < times) {
    const go = await ready();
    const begun = performance.now();
    await go();
    await settled();
    longestMs = Math.max(longestMs, performance.now() - begun);
    taken.push(await coverage.taken());
  }
  await sleep(longestMs - tailMs);
  await settled();
  const idle = await coverage.taken();
  await stop?.();
  const all = taken.reduce(common);
  return { name: trip.name, all, own: without(all, idle) };
};

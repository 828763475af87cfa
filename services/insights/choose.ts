import { pickFairly, RunningCounts } from '#runtime/work/fair-pick.ts';
import type { Platform } from '#schemas/common.ts';
import type { DueAccount } from './due.ts';

/**
 * Who gets a free slot. Pure. A network that does not answer holds its slots until its calls are given up, and a workspace
 * may have more accounts due than all others together: neither may have the slots that others wait for.
 */

export type Holder = Pick<DueAccount, 'workspaceId' | 'platform'>;

const keysOf = ({ workspaceId, platform }: Holder): readonly string[] => [workspaceId, platform];

const countsOf = (running: Iterable<Holder>): RunningCounts => new RunningCounts([...running].map(keysOf));

/** So many slots are only for networks within their share, and never for one workspace that has all the others. */
const reserveOf = (slots: number): number => (slots < 2 ? 0 : Math.max(1, Math.floor(slots / 8)));

/** A network has at most half of what the others leave it: however many networks hang, a further one finds a slot. */
const isWithinShare = (platform: Platform, running: RunningCounts, slots: number): boolean =>
  running.of(platform) < Math.ceil((slots - running.total + running.of(platform)) / 2);

/** Networks of which one more account could be asked now. */
export const openTo = (all: readonly Platform[], running: Iterable<Holder>, slots: number): readonly Platform[] => {
  const counts = countsOf(running);
  if (counts.total >= slots) return [];
  return counts.total < slots - reserveOf(slots) ? all : all.filter((one) => isWithinShare(one, counts, slots));
};

/**
 * Workspaces with the fewest running accounts go first, then such networks, then the order of `due`. Slots that nobody
 * within his shares waits for go to accounts beyond theirs, except for the reserve.
 */
export const choose = (due: readonly DueAccount[], running: Iterable<Holder>, slots: number): readonly DueAccount[] => {
  const unreserved = slots - reserveOf(slots);
  return pickFairly(due, countsOf(running), {
    slots,
    keysOf,
    shares: [
      ({ workspaceId, platform }, counts) =>
        isWithinShare(platform, counts, slots) && counts.of(workspaceId) < unreserved,
      (_account, counts) => counts.total < unreserved,
    ],
  });
};

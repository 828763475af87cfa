import { pickFairly, RunningCounts } from '#runtime/work/fair-pick.ts';
import type { Platform } from '#schemas/common.ts';
import type { DueAccount } from './due.ts';

/**
 * Chooses the accounts that get free slots. Pure. A network that does not answer keeps its slots until its calls time
 * out, and one workspace may have more due accounts than all others together. Neither may take the slots that others
 * wait for.
 */

export type Holder = Pick<DueAccount, 'workspaceId' | 'platform'>;

const keysOf = ({ workspaceId, platform }: Holder): readonly string[] => [workspaceId, platform];

const countsOf = (running: Iterable<Holder>): RunningCounts => new RunningCounts([...running].map(keysOf));

/** Slots reserved for networks within their share. A workspace that runs all the other slots gets none of them. */
const reserveOf = (slots: number): number => (slots < 2 ? 0 : Math.max(1, Math.floor(slots / 8)));

/**
 * A network gets at most half of the slots that the others leave free: however many networks hang, one more finds a
 * slot.
 */
const isWithinShare = (platform: Platform, running: RunningCounts, slots: number): boolean =>
  running.of(platform) < Math.ceil((slots - running.total + running.of(platform)) / 2);

/** Networks of which one more account can be polled now. */
export const openTo = (all: readonly Platform[], running: Iterable<Holder>, slots: number): readonly Platform[] => {
  const counts = countsOf(running);
  if (counts.total >= slots) return [];
  return counts.total < slots - reserveOf(slots) ? all : all.filter((one) => isWithinShare(one, counts, slots));
};

/**
 * Workspaces with the fewest running accounts go first, then networks with the fewest, then the order of `due`. If no
 * account within its shares waits, accounts beyond theirs get the free slots except for the reserve.
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

import { takeFairly } from '#runtime/work/fair-pick.ts';
import { type Share, Slots, type Taker } from '#runtime/work/slots.ts';
import type { Platform } from '#schemas/common.ts';
import type { DueAccount } from './due.ts';

/**
 * Chooses the accounts that get free slots. Pure. A network that does not answer keeps its slots until its calls time
 * out, and one workspace may have more due accounts than all others together. Neither may take the slots that others
 * wait for.
 */

export type Holder = Pick<DueAccount, 'workspaceId' | 'platform'>;

const takerOf = ({ workspaceId, platform }: Holder): Taker => ({ workspaceId, network: platform });

/** Slots without the reserve for networks within their share. A workspace that runs all the others gets none of it. */
const unreserved = ({ size }: Slots): number => size - (size < 2 ? 0 : Math.max(1, Math.floor(size / 8)));

/**
 * A network gets at most half of the slots that the others leave free: however many networks hang, one more finds a
 * slot.
 */
const isWithinShare: Share = ({ network = '' }, slots) =>
  slots.on(network) < Math.ceil((slots.free + slots.on(network)) / 2);

const ofNetworkAndWorkspace: Share = (taker, slots, othersWait) =>
  isWithinShare(taker, slots, othersWait) && slots.of(taker.workspaceId) < unreserved(slots);

const allButReserve: Share = (_taker, slots) => slots.taken < unreserved(slots);

const slotsOf = (running: Iterable<Holder>, size: number): Slots => {
  const slots = new Slots(size, ofNetworkAndWorkspace, allButReserve);
  for (const one of running) slots.take(takerOf(one));
  return slots;
};

/** Networks of which one more account can be polled now. */
export const openTo = (all: readonly Platform[], running: Iterable<Holder>, size: number): readonly Platform[] => {
  const slots = slotsOf(running, size);
  if (slots.free <= 0) return [];
  if (slots.taken < unreserved(slots)) return all;
  return all.filter((network) => isWithinShare({ workspaceId: '', network }, slots, true));
};

/**
 * Workspaces with the fewest running accounts go first, then networks with the fewest, then the order of `due`. If no
 * account within its shares waits, accounts beyond theirs get the free slots except for the reserve.
 */
export const choose = (due: readonly DueAccount[], running: Iterable<Holder>, size: number): readonly DueAccount[] =>
  takeFairly(due, { slots: slotsOf(running, size), takerOf, byNetwork: true });

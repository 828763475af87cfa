import { FairQueue } from '#runtime/work/fair-queue.ts';
import { type Share, Slots, type Taker } from '#runtime/work/slots.ts';

/**
 * Shares slots between workspaces and networks, so that no workspace delays another. A slot of hanging work cannot be
 * taken back, so the rule leaves slots free before another workspace asks for one.
 *
 * A workspace may have another slot on a network while the network's taken slots plus twice the workspace's own slots
 * there are fewer than the free slots. So a network never holds more than half of all slots, and one workspace on one
 * network never more than a quarter, even if no other work waits. The more networks are busy, the fewer slots each
 * gets, so that some slots stay free for the next one. While other workspaces wait, a workspace holds at most a quarter
 * over all networks.
 */

/** Slots that the taker could take one after the other while no other taker takes any. */
export const roomOf = (slots: Slots, taker: Taker): number => {
  // Each slot adds 1 to the network's slots, adds 2 to twice the workspace's own, and removes 1 from the free slots: 4.
  const used = slots.on(taker.network ?? '') + 2 * slots.ofBoth(taker);
  return Math.max(0, Math.ceil((slots.free - used) / 4));
};

const share: Share = (taker, slots, othersWait) => {
  if (roomOf(slots, taker) === 0) return false;
  return !othersWait || slots.of(taker.workspaceId) < Math.max(1, Math.floor(slots.size / 4));
};

/** Once each workspace but one has all that it may have, that one gets what its networks leave. */
export const publisherSlots = (size: number): Slots => new Slots(size, share, share);

/** The workspace with the fewest slots goes first. */
export const publisherQueue = (size: number): FairQueue =>
  new FairQueue({ slots: publisherSlots(size), rank: ({ workspaceId }, slots) => slots.of(workspaceId) });

/** A target with work to do, as the read model shows it. Its stream decides; the row only says where to look. */
export interface DueRow extends Taker {
  /** `live/<platform>` or `sandbox/<platform>`; the two are different networks. */
  readonly network: string;
  readonly id: string;
  readonly revision: number;
}

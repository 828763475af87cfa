import { atMost, Slots } from '#runtime/work/slots.ts';
import { Postponed } from './postponed.ts';

/**
 * Slots for rendering videos in this process. Videos take minutes or hours, everything else seconds. No workspace may
 * take the last slot, and one more is kept for other files, so that a workspace's videos do not delay its own pictures.
 * This needs three slots. With two, a workspace waits for its own video, and the other workspaces do not. With four or
 * more, two videos can run, and no workspace gets both slots.
 */

/** No slot is free for a video now. */
export class NoRoom extends Postponed {
  constructor() {
    super('other videos are being rendered');
  }
}

/** @param slots files that the process works on at once */
export const videoSlots = (slots: number): Slots => {
  const total = Math.max(1, slots - 2);
  return new Slots(total, atMost(Math.max(1, total - 1)));
};

/** The slot of one file's video. */
export interface VideoSlot {
  /** @throws NoRoom */
  enter(): void;
  leave(): void;
}

export const videoSlotOf = (slots: Slots, customer: string): VideoSlot => ({
  enter: () => {
    if (!slots.admits({ workspaceId: customer }, true)) throw new NoRoom();
    slots.take({ workspaceId: customer });
  },
  leave: () => slots.give({ workspaceId: customer }),
});

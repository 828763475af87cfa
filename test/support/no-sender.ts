import type { Handover } from '#projections/webhooks/handover.ts';

/** For a dispatcher without a sender in its thread: every row is queued for any sender. */
export const noSender: Handover = {
  leaseMs: 0,
  reserve: () => 0,
  giveBack: () => undefined,
  send: () => undefined,
  wake: () => undefined,
};

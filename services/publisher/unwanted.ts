import { isUndoable } from '#domain/native-window.ts';
import type { ScheduledTarget, Unwanted } from '#domain/target.ts';
import type { WorkContext } from './context.ts';
import type { Conditions } from './related-streams.ts';

/**
 * A hand-over that nobody wants any more. Who archives a client or disconnects an account cancels its targets, but not one
 * that is being handed over: nobody knows yet what the network has. So the worker reads client and account before it appends
 * the hand-over, to ask for the post back in the same append, and once more after it: whoever came in between saw a target
 * that cannot be canceled, and whoever comes later sees one that can. If the worker dies between the append and the second
 * reading, the network publishes a post whose client was archived, or whose account was disconnected, in those milliseconds.
 */

/** Why nobody wants a post that the network turns out to have; null: it is wanted. */
const unwanted = ({ client, account }: Conditions, now: string): Unwanted | null => {
  if (client.state.status !== 'live') return { reason: 'client_archived', now };
  return account.state.status === 'disconnected' ? { reason: 'account_disconnected', now } : null;
};

/** Before the append. Where the reading fails the latest one counts: the network's word must be recorded all the same. */
export const whyUnwanted = async (
  { conditions, leased }: WorkContext,
  target: ScheduledTarget,
): Promise<Unwanted | null> => {
  const known = await conditions.now(target).catch(() => conditions.latest);
  return unwanted(known, leased.now());
};

/** After the append. */
export const takeBackUnwanted = async ({ conditions, leased }: WorkContext, target: ScheduledTarget): Promise<void> => {
  const handed = leased.state;
  if (handed.status !== 'handed_to_platform' || handed.undo !== null) return;
  const found = unwanted(await conditions.now(target), leased.now());
  if (found === null || !isUndoable(handed.common.dueAt, found.now)) return;
  await leased.record({ type: 'Cancel', postRevision: null, ...found });
};

import type { TargetEvent } from '#schemas/target.ts';
import type { TargetState } from './state.ts';

/** The due times for which a target needs a place of the workspace's quota. */

/** A failed or canceled target needs none; one that its network is asked to give back for another time needs both. */
export const neededTimes = (state: TargetState): readonly string[] => {
  if (state.status === 'none' || state.status === 'failed' || state.status === 'canceled') return [];
  const { dueAt } = state.common;
  if (state.status !== 'handed_to_platform' || state.undo === null) return [dueAt];
  if (state.undo.then === 'cancel') return [dueAt];
  return [dueAt, state.undo.dueAt];
};

/** The due time for which these events of one command need a place; null: they give the target no other time. */
export const timeWanted = (state: TargetState, events: readonly TargetEvent[]): string | null => {
  if (state.status === 'none') return null;
  // A retry keeps the time that was planned.
  const isRetry = state.status === 'failed' && events.some(({ type }) => type === 'TargetRequeued');
  return movedTo(events) ?? (isRetry ? state.common.dueAt : null);
};

/** The other time that these events of one command give the target; null: none. */
export const movedTo = (events: readonly TargetEvent[]): string | null => {
  for (const event of events) {
    if (event.type === 'TargetRescheduled') return event.data.dueAt;
    if (event.type === 'TargetUndoRequested' && event.data.then === 'reschedule') return event.data.dueAt;
  }
  return null;
};

/** Statuses in which a caller may give the target another time; of a publishing one an append would take the claim. */
const movable: readonly TargetState['status'][] = [
  'awaiting_approval',
  'pending',
  'rate_limited',
  'failed',
  'handed_to_platform',
];

/** The place that the next append of the stream needs is given back: a late append at this revision conflicts. */
export const lapsePlace = ({ status }: TargetState): readonly TargetEvent[] =>
  movable.includes(status) ? [{ type: 'TargetPlaceLapsed', data: {} }] : [];

/** Every time at which the target was ever to be due: a place of a former one may be left. */
export const timesEver = (events: readonly { readonly type: string; readonly data: unknown }[]): readonly string[] =>
  events.flatMap(({ type, data }) => {
    const { dueAt } = data as { readonly dueAt?: string | null };
    return timed.has(type) && typeof dueAt === 'string' ? [dueAt] : [];
  });

const timed: ReadonlySet<string> = new Set<TargetEvent['type']>([
  'TargetScheduled',
  'TargetReleased',
  'TargetRescheduled',
  'TargetRevised',
  'TargetUndoRequested',
]);

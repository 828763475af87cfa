import { undoClosesMs } from '#domain/native-window.ts';

/**
 * Targets that a change of many may still cancel. A target with an external id has published a part of its thread; the
 * publisher ends it at its claim. One that its network has, or that is being handed over to it, is open until the network
 * publishes it too soon to take it back.
 */
export const isOpenTarget = (t: string): string =>
  `(${t}.status in ('awaiting_approval', 'pending', 'rate_limited') and ${t}.external_id is null
    or (${t}.status = 'handed_to_platform'
        or ${t}.status in ('publishing', 'outcome_unknown') and ${t}.schedule_mode = 'native' and ${t}.external_id is null)
      and ${t}.undo is distinct from 'pending'
      and ${t}.due_at >= now() + ${undoClosesMs} * interval '1 millisecond')`;

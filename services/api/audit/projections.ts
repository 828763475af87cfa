import type { ReaderState } from '#projections/queries/reader-states.ts';
import { ProjectionState } from '#schemas/http/audit.ts';
import { wholeList } from '../call/cursor.ts';
import { operation } from '../call/operation.ts';
import { auditTag, projectionExample } from './examples.ts';

/** How far what reads the events is, and what is being rebuilt. */

/** A rebuild that was asked for and one of lost tables are the same to a caller. */
const reasons = { asked: 'requested', all: 'requested', shape: 'shape_changed', lost: 'lost' } as const;

const secondsSince = (instant: Date | null, now: number): number =>
  instant === null ? 0 : Math.max(0, Math.round((now - instant.getTime()) / 100) / 10);

const shown = ({ name, kind, epoch, sequence, behind, waitsSince, rebuilding }: ReaderState, now: number) => ({
  ...{ name, object: 'projection' as const, kind },
  ...{ position: `${epoch}.${sequence}`, eventsBehind: behind, lagSeconds: secondsSince(waitsSince, now) },
  rebuilding:
    rebuilding === null
      ? null
      : {
          ...{ reason: reasons[rebuilding.reason], since: rebuilding.since.toISOString() },
          phase: rebuilding.phase ?? ('interrupted' as const),
          progress: Math.floor(rebuilding.progress * 1_000) / 1_000,
          readTo: rebuilding.readTo?.toISOString() ?? null,
        },
});

export const listProjections = operation({
  id: 'listProjections',
  method: 'GET',
  path: '/projections',
  tag: auditTag,
  noun: 'projection',
  summary: 'List what reads the events, how far it is, and what is being rebuilt',
  description:
    'Every read model, the analytics where there are any, the dispatch of webhooks and the feed itself, with regard to the events of this workspace. `position` is a cursor of the feed: every event up to it that the reader reads is applied. Where the log has several partitions it is a bound that may lie too far back for a moment, never too far ahead, and so may the lag. An event that has no number in the feed yet counts for the feed alone. While something is rebuilt its former rows are served, up to the moment of the switch: `position` and `lagSeconds` are of what is served.',
  scope: 'events.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 5,
  answer: ProjectionState,
  list: true,
  codes: [],
  example: { data: projectionExample },
  handle: async ({ deps, workspaceId }) => {
    const states = await deps.readerStates.of(workspaceId);
    const now = deps.clock();
    return wholeList(states.map((state) => shown(state, now)));
  },
});

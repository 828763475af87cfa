import type { PoolClient } from 'pg';
import { exportsEndAt } from '#domain/report.ts';
import type { Applied } from '#runtime/consuming/options.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { ClientEvent } from '#schemas/client.ts';
import type { ReportEvent } from '#schemas/report.ts';
import { idOf } from '#schemas/topics.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { noteReviews } from './reviews.ts';

/**
 * Turns events about reports and their clients into rows: runs to make, schedules to settle, reviews to do. The
 * transaction that moves the consumer's position writes the row, so no event is lost and none counts twice.
 */

export const reportsGroup = 'reports';

type Subscribed = ReportEvent | WorkspaceEvent | ClientEvent;
/** Their reports are noted and looked at page by page. Of a workspace's profile the zone may have changed. */
const reviewedTypes: readonly string[] = [
  'ClientArchived',
  'ClientErased',
  'WorkspaceProfileChanged',
] satisfies Subscribed['type'][];
export const subscribedTypes: readonly string[] = [
  ...(['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted', 'ReportRemoved'] satisfies Subscribed['type'][]),
  ...reviewedTypes,
];

/**
 * A repeat keeps `after`: no run was requested since then, and the stream says from when on the schedule promises runs.
 */
const defineSql = `
insert into ops.report_schedules (report_id, workspace_id, after) values ($1, $2, $3)
on conflict (report_id) do update set due_at = null, version = gen_random_uuid(), look_at = now()`;
const subjectSql = `
insert into ops.report_subjects (client_id, report_id, workspace_id) values ($1, $2, $3) on conflict do nothing`;
const jobSql = `
insert into ops.report_jobs (id, report_id, workspace_id) values ($1, $2, $3)
on conflict (id) do update set version = gen_random_uuid(), due_at = now()`;
const keepSql = `
insert into ops.report_exports (run_id, report_id, workspace_id, ends_at) values ($1, $2, $3, $4) on conflict do nothing`;

export const onEvents = async (tx: PoolClient, events: readonly DecodedEvent[], wake: () => void): Promise<Applied> => {
  const reviewed = events.filter(({ type }) => reviewedTypes.includes(type));
  await noteReviews(
    tx,
    reviewed.map(({ type, stream, metadata: { workspaceId } }) => ({
      ...{ id: idOf(stream), workspaceId, erased: type === 'ClientErased' },
    })),
  );
  for (const event of events) {
    const id = idOf(event.stream);
    const { workspaceId, occurredAt } = event.metadata;
    const { type, data } = { type: event.type, data: event.data } as unknown as Subscribed;
    if (type === 'ReportDefined') {
      const { clientId } = data.definition.filters;
      await tx.query(defineSql, [id, workspaceId, occurredAt]);
      // The client's end may have come on its own lane before this row existed, so the schedule and the run both read
      // the client themselves.
      if (clientId !== null) await tx.query(subjectSql, [clientId, id, workspaceId]);
    } else if (type === 'ReportRunRequested') await tx.query(jobSql, [data.runId, id, workspaceId]);
    else if (type === 'ReportRunCompleted') {
      await tx.query(keepSql, [data.runId, id, workspaceId, exportsEndAt(occurredAt)]);
    } else if (type === 'ReportRemoved') {
      await tx.query('delete from ops.report_schedules where report_id = $1', [id]);
      await tx.query('delete from ops.report_subjects where report_id = $1', [id]);
      await tx.query(jobSql, [id, id, workspaceId]);
    }
  }
  return { committed: wake, rolledBack: () => undefined };
};

import type { PoolClient } from 'pg';
import { exportsEndAt } from '#domain/report.ts';
import type { Applied } from '#runtime/consuming/options.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { ClientEvent } from '#schemas/client.ts';
import type { ReportEvent } from '#schemas/report.ts';
import { idOf } from '#schemas/topics.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';

/**
 * Turns events about reports and their clients into rows: runs to make, schedules to settle, exports to delete. The
 * transaction that moves the consumer's position writes the row, so no event is lost and none counts twice.
 */

export const reportsGroup = 'reports';

type Subscribed = ReportEvent | WorkspaceEvent | ClientEvent;
export const subscribedTypes: readonly Subscribed['type'][] = [
  'ReportDefined',
  'ReportRunRequested',
  'ReportRunCompleted',
  'ReportRemoved',
  'ClientArchived',
  'ClientErased',
  // The zone may have changed.
  'WorkspaceProfileChanged',
];

/**
 * A repeat keeps `after`: no run was requested since then, and the stream says from when on the schedule promises runs.
 */
const defineSql = `
insert into ops.report_schedules (report_id, workspace_id, after) values ($1, $2, $3)
on conflict (report_id) do update set due_at = null, heard = gen_random_uuid(), look_at = now()`;
const subjectSql = `
insert into ops.report_subjects (client_id, report_id, workspace_id) values ($1, $2, $3) on conflict do nothing`;
const jobSql = `
insert into ops.report_jobs (id, report_id, workspace_id) values ($1, $2, $3)
on conflict (id) do update set heard = gen_random_uuid(), due_at = now()`;
const keepSql = `
insert into ops.report_exports (run_id, report_id, workspace_id, ends_at) values ($1, $2, $3, $4) on conflict do nothing`;
/** The next runs of these schedules must be computed again. */
const resettleSql = (which: string): string => `
with mine as (
  select report_id from ops.report_schedules where ${which} order by report_id for update
)
update ops.report_schedules s set due_at = null, heard = gen_random_uuid(), look_at = now()
from mine where s.report_id = mine.report_id`;
const zoneSql = resettleSql('workspace_id = $1');
const endSql = resettleSql(
  'workspace_id = $1 and report_id in (select report_id from ops.report_subjects where client_id = $2)',
);
const eraseSql = `
insert into ops.report_jobs (id, report_id, workspace_id)
select report_id, report_id, workspace_id from ops.report_subjects
where workspace_id = $1 and client_id = $2 order by report_id
on conflict (id) do update set heard = gen_random_uuid(), due_at = now()`;

export const onEvents = async (tx: PoolClient, events: readonly DecodedEvent[], wake: () => void): Promise<Applied> => {
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
    } else if (type === 'WorkspaceProfileChanged') await tx.query(zoneSql, [workspaceId]);
    else if (type === 'ClientArchived' || type === 'ClientErased') {
      await tx.query(endSql, [workspaceId, id]);
      if (type === 'ClientErased') await tx.query(eraseSql, [workspaceId, id]);
    }
  }
  return { committed: wake, rolledBack: () => undefined };
};

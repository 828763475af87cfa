import type { PoolClient } from 'pg';
import type { DecodedEvent } from '#runtime/codec.ts';
import type { Applied } from '#runtime/consume.ts';
import type { ReportEvent } from '#schemas/report.ts';
import { idOf } from '#schemas/topics.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';

/**
 * What is heard of reports: runs to be made, schedules to be found out, exports to be deleted. Each is a row on the
 * transaction that moves the consumer's position: an event heard of is a row, or neither is.
 */

export const reportsGroup = 'reports';

type Heard = ReportEvent | WorkspaceEvent;
export const heardTypes: readonly Heard['type'][] = [
  'ReportDefined',
  'ReportRunRequested',
  'ReportRemoved',
  // The zone may have changed.
  'WorkspaceProfileChanged',
];

const defineSql = `
insert into ops.report_schedules as s (report_id, workspace_id, after) values ($1, $2, $3)
on conflict (report_id) do update
  set after = greatest(s.after, excluded.after), due_at = null, heard = gen_random_uuid(), look_at = now()`;
const jobSql = `
insert into ops.report_jobs (id, report_id, workspace_id) values ($1, $2, $3) on conflict (id) do nothing`;
const zoneSql = `
with mine as (
  select report_id from ops.report_schedules where workspace_id = $1 order by report_id for update
)
update ops.report_schedules s set due_at = null, heard = gen_random_uuid(), look_at = now()
from mine where s.report_id = mine.report_id`;

export const hear = async (tx: PoolClient, events: readonly DecodedEvent[], ring: () => void): Promise<Applied> => {
  for (const event of events) {
    const id = idOf(event.stream);
    const { workspaceId, occurredAt } = event.metadata;
    const { type, data } = { type: event.type, data: event.data } as unknown as Heard;
    if (type === 'ReportDefined') await tx.query(defineSql, [id, workspaceId, occurredAt]);
    else if (type === 'ReportRunRequested') await tx.query(jobSql, [data.runId, id, workspaceId]);
    else if (type === 'ReportRemoved') {
      await tx.query('delete from ops.report_schedules where report_id = $1', [id]);
      await tx.query(jobSql, [id, id, workspaceId]);
    } else if (type === 'WorkspaceProfileChanged') await tx.query(zoneSql, [workspaceId]);
  }
  return { committed: ring, rolledBack: () => undefined };
};

import type { Pool } from 'pg';

/** Streams that the live read models have set aside: what is shown of them is how they were before. */

export interface ParkedRow {
  readonly workspaceId: string;
  readonly stream: string;
}

/** More than these are not spoken of; the operator has long been told. */
const mostTold = 10_000;
const parkedSql = `
select distinct e.workspace_id::text as "workspaceId", e.stream
from ops.projections p join ops.parked_events e on e.consumer_group = 'projection-' || p.name || '-v' || p.live
where e.workspace_id is not null limit ${mostTold}`;

export const parkedRows = async (pool: Pool): Promise<readonly ParkedRow[]> =>
  (await pool.query<ParkedRow>({ name: 'parked-rows', text: parkedSql })).rows;

import type { Pool, QueryConfig } from 'pg';
import { withFirsts } from '#runtime/consuming/parking.ts';

/** Streams that the live read models have parked: their rows show the state before the parked event. */

export interface ParkedRow {
  readonly workspaceId: string;
  readonly stream: string;
}

/** Above this number answers carry no warning; `parked_streams` and /readyz have alerted the operator long before. */
const maxRows = 10_000;
/** Every GET waits for this query, milliseconds: a silent server must not hold each GET for the pool's own time-out. */
const answerMs = 1_000;

const parkedSql = `
${withFirsts(`select 'projection-' || name || '-v' || live from ops.projections`, maxRows)}
select workspace_id::text as "workspaceId", stream from firsts where workspace_id is not null limit ${maxRows}`;

export const parkedRows = async (pool: Pool): Promise<readonly ParkedRow[]> =>
  (await pool.query<ParkedRow>({ name: 'parked-rows', text: parkedSql, query_timeout: answerMs } as QueryConfig)).rows;

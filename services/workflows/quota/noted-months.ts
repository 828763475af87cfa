import type { Pool } from 'pg';
import { BoundedMap } from '#contracts/base/bounded-map.ts';

/**
 * Months in which places may have been taken for an append that never comes. Streams of months are in no topic of the
 * log, so the taker of such places notes the month first; the sweeper reads the streams of these months alone.
 */

/**
 * For so many milliseconds a process notes a month once. With the time of a call it must stay below the age at which
 * the sweeper judges places: until then the note is not deleted.
 */
const believedMs = 15_000;
const maxRemembered = 10_000;

/** By pool: when this process noted a month, monotonic milliseconds, the longest ago first. */
const remembered = new WeakMap<Pool, BoundedMap<string, number>>();

/** If we die behind it, the sweeper looks at a month in which nothing was taken. */
export const noteMonths = async (pool: Pool, workspaceId: string, months: readonly string[]): Promise<void> => {
  const known = remembered.get(pool) ?? new BoundedMap<string, number>(maxRemembered);
  remembered.set(pool, known);
  const now = performance.now();
  const fresh = months.filter((month) => {
    const at = known.get(`${workspaceId} ${month}`);
    return at === undefined || now - at >= believedMs;
  });
  if (fresh.length === 0) return;
  await pool.query(
    `insert into ops.quota_months (workspace_id, month) select $1, month from unnest($2::text[]) as month order by month
     on conflict (workspace_id, month) do update set noted_at = now()`,
    [workspaceId, fresh],
  );
  for (const month of fresh) known.set(`${workspaceId} ${month}`, now);
};

export interface NotedMonth {
  readonly workspaceId: string;
  readonly month: string;
}

/** Those that the sweeper has not looked at since this instant, the longest ago first. */
export const notedMonths = async (pool: Pool, before: Date, limit: number): Promise<readonly NotedMonth[]> => {
  const { rows } = await pool.query<NotedMonth>(
    `select workspace_id::text as "workspaceId", month from ops.quota_months
     where since <= $1 order by since limit $2`,
    [before, limit],
  );
  return rows;
};

/**
 * Ends a look at a month. The note goes where everything was settled and nobody has noted the month since `before`: a
 * process that noted it earlier has taken its places, which the look saw.
 */
export const endLook = async (
  pool: Pool,
  { workspaceId, month }: NotedMonth,
  isSettled: boolean,
  before: Date,
): Promise<void> => {
  if (isSettled) {
    const sql = 'delete from ops.quota_months where workspace_id = $1 and month = $2 and noted_at <= $3';
    if ((await pool.query(sql, [workspaceId, month, before])).rowCount === 1) return;
  }
  const sql = 'update ops.quota_months set since = now() where workspace_id = $1 and month = $2';
  await pool.query(sql, [workspaceId, month]);
};

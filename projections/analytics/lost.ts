import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import { retentionMonths, tableOf } from './tables.ts';
import { callClickHouse, isUnknownTable } from './unavailable.ts';

/** Checks that ClickHouse holds the rows that Postgres recorded as inserted. */

/** Time-out of one query: a ClickHouse that hangs must not hold the caller. Milliseconds. */
const questionMs = 10_000;

/** The only cell of an answer. */
const numberOf = async (
  client: ClickHouseClient,
  query: string,
  query_params: Readonly<Record<string, unknown>>,
): Promise<number> => {
  const abort_signal = AbortSignal.timeout(questionMs);
  const request = { query, query_params, format: 'JSONCompactEachRow', abort_signal } as const;
  const [[answer] = ['0']] = await callClickHouse(async () => (await client.query(request)).json<[string]>());
  return Number(answer);
};

/** Rows of one table that Postgres recorded as inserted. */
interface KnownRows {
  readonly post: boolean;
  readonly workspaces: readonly string[];
  readonly days: readonly string[];
  readonly positions: readonly string[];
}

/** Leaves out rows that retention may have deleted. */
const insertedRowsOf = async (
  pool: Pool,
  version: number,
): Promise<{ readonly had: boolean; readonly held: readonly KnownRows[] }> => {
  const { rows } = await pool.query<{ had: boolean; held: readonly KnownRows[] | null }>({
    name: 'analytics-held',
    text: `select exists (select from ops.analytics_days
             where version = $1 and day > current_date - make_interval(months => $2)) as had,
           (select json_agg(tables) from (
             select post, json_agg(one->>'position') as positions, json_agg(one->>'workspace') as workspaces, json_agg(one->>'day') as days
             from ops.analytics_highest, unnest(held) as one
             where version = $1 and (one->>'day')::date > current_date - make_interval(months => $2)
             group by post) as tables) as held`,
    values: [version, retentionMonths],
  });
  return { had: rows[0]?.had === true, held: rows[0]?.held ?? [] };
};

/** Workspaces and days are there for the primary key; a position identifies one row. */
const lacks = async (client: ClickHouseClient, version: number, { post, ...rows }: KnownRows): Promise<boolean> => {
  const query = `select uniqExact(position) from ${tableOf(post ? 'observations' : 'account_observations', version)}
    where workspace_id in {workspaces:Array(UUID)} and day in {days:Array(Date)} and position in {positions:Array(UInt64)}`;
  try {
    const positions = rows.positions.map(BigInt);
    return (await numberOf(client, query, { ...rows, positions })) < positions.length;
  } catch (error) {
    if (isUnknownTable(error)) return true;
    throw error;
  }
};

/**
 * Whether this version once held observations of days within retention, and now has none, or lacks the newest: it is
 * another ClickHouse than before, its disk was lost, or it was restored to an earlier day.
 */
export const isLost = async (client: ClickHouseClient, version: number, pool: Pool): Promise<boolean> => {
  const { had, held } = await insertedRowsOf(pool, version);
  if (!had) return false;
  const tables = [tableOf('observations', version), tableOf('account_observations', version)];
  const parts = await numberOf(
    client,
    `select count() from system.parts
     where active and rows > 0 and database = currentDatabase() and table in {tables:Array(String)}`,
    { tables },
  );
  if (parts === 0) return true;
  for (const rows of held) if (await lacks(client, version, rows)) return true;
  return false;
};

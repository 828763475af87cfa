import type { ClickHouseClient } from '@clickhouse/client';
import { counters } from '#schemas/insights.ts';
import { columnOf, retentionMonths, type TableName, tableOf } from './tables.ts';
import { callClickHouse } from './unavailable.ts';

/** Two versions of the analytics tables side by side, up to a position that both have read. */

export interface VersionComparison {
  /** Observations, each counted once. */
  readonly before: number;
  readonly after: number;
  /** Rows of the workspaces' daily grain that differ, or that only one version has. */
  readonly differing: number;
}

/** Days that retention is about to delete may already be gone from one version. */
const retained = `day > today() - interval ${retentionMonths - 1} month`;

const one = async (client: ClickHouseClient, query: string): Promise<number> => {
  const answer = await callClickHouse(() => client.query({ query, format: 'JSONEachRow' }));
  const [row] = await answer.json<{ n: string }>();
  return Number(row?.n ?? 0);
};

const workspacesOf = async (client: ClickHouseClient, versions: readonly number[]): Promise<readonly string[]> => {
  const names = ['observations', 'account_observations'] as const;
  const tables = versions.flatMap((version) => names.map((name) => tableOf(name, version)));
  const query = tables.map((table) => `select distinct workspace_id from ${table}`).join(' union distinct ');
  const answer = await callClickHouse(() => client.query({ query, format: 'JSONEachRow' }));
  return (await answer.json<{ workspace_id: string }>()).map((row) => row.workspace_id);
};

/** Compares one workspace at a time: the memory it takes is that of the largest workspace. */
export const compare = async (
  client: ClickHouseClient,
  before: number,
  after: number,
  upTo: bigint | null,
): Promise<VersionComparison> => {
  const observed = (name: TableName, version: number, id: string): Promise<number> =>
    one(
      client,
      `select uniqExact(event_id) as n from ${tableOf(name, version)}
       where workspace_id = '${id}' and position <= ${upTo ?? 0n} and ${retained}`,
    );
  const both = async (version: number, id: string): Promise<number> =>
    (await observed('observations', version, id)) + (await observed('account_observations', version, id));
  const cells = ['targets', ...counters.map(columnOf), 'rated_interactions', 'rated_impressions', 'fetched'].join(', ');
  const newest = (version: number, id: string): string => `select day, platform, ${cells} from (
    select * from ${tableOf('workspace_days', version)} where workspace_id = '${id}' and ${retained}
    order by day, platform, version desc limit 1 by day, platform)`;
  const sum = { before: 0, after: 0, differing: 0 };
  for (const id of await workspacesOf(client, [before, after])) {
    sum.before += await both(before, id);
    sum.after += await both(after, id);
    const [old, made] = [newest(before, id), newest(after, id)];
    sum.differing += await one(client, `select count() as n from (${old} except ${made})`);
    sum.differing += await one(client, `select count() as n from (${made} except ${old})`);
  }
  return sum;
};

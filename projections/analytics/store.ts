import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { Unavailable } from '#runtime/domain-store.ts';
import { asking } from './away.ts';
import { type TableName, tableOf } from './tables.ts';

/** What the analytics are read from: a ClickHouse, and the version of the tables that is live. */
export interface AnalyticsStore {
  readonly client: ClickHouseClient;
  readonly version: () => Promise<number>;
}

/** A read that takes longer is given up. */
const mostSeconds = 10;

/** A version that was just switched, or is not made yet. */
const unknownTable = '60';

const between = (error: unknown): never => {
  if (error instanceof ClickHouseError && error.code === unknownTable) {
    throw new Unavailable('The analytics tables are not there.', { cause: error });
  }
  throw error;
};

export type Cell = string | number | null;

/**
 * Rows as lists of their cells, in the order of the select.
 * @param sqlOf is given names of tables as they are now
 * @param params are bound, never spliced
 * @throws Unavailable when the store is away
 */
export const readRows = async (
  { client, version }: AnalyticsStore,
  sqlOf: (table: (name: TableName) => string) => string,
  params: Readonly<Record<string, unknown>>,
): Promise<readonly (readonly Cell[])[]> => {
  const live = await version();
  const query = sqlOf((name) => tableOf(name, live));
  const asked = asking(async () => {
    const answer = await client.query({
      query,
      query_params: { ...params },
      format: 'JSONCompactEachRow',
      abort_signal: AbortSignal.timeout(mostSeconds * 1_000),
      clickhouse_settings: { max_execution_time: mostSeconds },
    });
    return answer.json<readonly Cell[]>();
  });
  return asked.catch(between);
};

/** Counts come as text where they are 64 bits wide. */
export const numberOf = (cell: Cell | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);

/** Of milliseconds since the epoch. */
export const isoOf = (cell: Cell | undefined): string | null => {
  const ms = numberOf(cell);
  return ms === null ? null : new Date(ms).toISOString();
};

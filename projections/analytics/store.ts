import type { ClickHouseClient } from '@clickhouse/client';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { type TableName, tableOf } from './tables.ts';
import { callClickHouse, isUnknownTable } from './unavailable.ts';

/** The source of the analytics: a ClickHouse, and the live version of the tables. */
export interface AnalyticsStore {
  readonly client: ClickHouseClient;
  /**
   * @param dropped a version whose tables were not found: the live version is then read again and not taken from the
   * cache
   */
  readonly version: (dropped?: number) => Promise<number>;
}

/** Time-out of a read, the wait for the server included. */
const maxSeconds = 10;

/** The result of the work, or an error when its time is over. */
const within = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const over = Promise.withResolvers<never>();
  const end = (): void => over.reject(new Unavailable('The analytics do not answer.'));
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([work, over.promise]);
  } finally {
    signal.removeEventListener('abort', end);
  }
};

export type Cell = string | number | null;

/**
 * Rows as lists of their cells, in the order of the select.
 * @param sqlOf receives the function that names the tables of the live version
 * @param params are bound, never spliced
 * @throws Unavailable when ClickHouse does not answer
 */
export const readRows = (
  store: AnalyticsStore,
  sqlOf: (table: (name: TableName) => string) => string,
  params: Readonly<Record<string, unknown>>,
): Promise<readonly (readonly Cell[])[]> => {
  const signal = AbortSignal.timeout(maxSeconds * 1_000);
  const read = async (version: number): Promise<readonly (readonly Cell[])[]> => {
    // The client ignores a signal that is already aborted when it begins.
    signal.throwIfAborted();
    const answer = await store.client.query({
      query: sqlOf((name) => tableOf(name, version)),
      query_params: { ...params },
      format: 'JSONCompactEachRow',
      abort_signal: signal,
      clickhouse_settings: { max_execution_time: maxSeconds },
    });
    // The client also ignores an abort once the answer has begun.
    const close = (): void => answer.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      // Parsed as one text: a line ends only at a row's end.
      return JSON.parse(`[${(await answer.text()).trimEnd().replaceAll('\n', ',')}]`);
    } finally {
      signal.removeEventListener('abort', close);
    }
  };
  const work = async (): Promise<readonly (readonly Cell[])[]> => {
    const version = await store.version();
    try {
      return await callClickHouse(() => read(version));
    } catch (error) {
      if (!isUnknownTable(error)) throw error;
      // A rebuild dropped it after a switch that this process had not noticed.
      const next = await store.version(version);
      if (next === version) throw error;
      return callClickHouse(() => read(next));
    }
  };
  const answered = work().catch((error: unknown) => {
    if (!isUnknownTable(error)) throw error;
    throw new Unavailable('The analytics tables are not there.', { cause: error });
  });
  return within(answered, signal);
};

/** ClickHouse sends 64-bit counts as text. */
export const numberOf = (cell: Cell | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);

/** From milliseconds since the epoch. */
export const isoOf = (cell: Cell | undefined): string | null => {
  const ms = numberOf(cell);
  return ms === null ? null : new Date(ms).toISOString();
};

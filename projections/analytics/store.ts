import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { type TableName, tableOf } from './tables.ts';
import { asking } from './unavailable.ts';

/** What the analytics are read from: a ClickHouse, and the version of the tables that is live. */
export interface AnalyticsStore {
  readonly client: ClickHouseClient;
  /** @param gone one whose tables were found to be gone: what was remembered is asked for anew */
  readonly version: (gone?: number) => Promise<number>;
}

/** A read that takes longer is given up, whatever it is that takes so long. */
const maxSeconds = 10;

const isUnknownTable = (error: unknown): boolean => error instanceof ClickHouseError && error.code === '60';

/** The work, or the end of its time. */
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
 * @param sqlOf is given names of tables as they are now
 * @param params are bound, never spliced
 * @throws Unavailable when the store is away
 */
export const readRows = (
  store: AnalyticsStore,
  sqlOf: (table: (name: TableName) => string) => string,
  params: Readonly<Record<string, unknown>>,
): Promise<readonly (readonly Cell[])[]> => {
  const signal = AbortSignal.timeout(maxSeconds * 1_000);
  const read = async (version: number): Promise<readonly (readonly Cell[])[]> => {
    // The client does not look at a signal that is over when it begins.
    signal.throwIfAborted();
    const answer = await store.client.query({
      query: sqlOf((name) => tableOf(name, version)),
      query_params: { ...params },
      format: 'JSONCompactEachRow',
      abort_signal: signal,
      clickhouse_settings: { max_execution_time: maxSeconds },
    });
    // Nor at any once the answer has begun.
    const close = (): void => answer.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      // One text: a line ends nowhere but at a row's end.
      return JSON.parse(`[${(await answer.text()).trimEnd().replaceAll('\n', ',')}]`);
    } finally {
      signal.removeEventListener('abort', close);
    }
  };
  const work = async (): Promise<readonly (readonly Cell[])[]> => {
    const version = await store.version();
    try {
      return await asking(() => read(version));
    } catch (error) {
      if (!isUnknownTable(error)) throw error;
      // It was dropped after a switch that we had not noticed.
      const next = await store.version(version);
      if (next === version) throw error;
      return asking(() => read(next));
    }
  };
  const answered = work().catch((error: unknown) => {
    if (!isUnknownTable(error)) throw error;
    throw new Unavailable('The analytics tables are not there.', { cause: error });
  });
  return within(answered, signal);
};

/** Counts come as text where they are 64 bits wide. */
export const numberOf = (cell: Cell | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);

/** Of milliseconds since the epoch. */
export const isoOf = (cell: Cell | undefined): string | null => {
  const ms = numberOf(cell);
  return ms === null ? null : new Date(ms).toISOString();
};

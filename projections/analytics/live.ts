import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import { type AppliedFile, checksumOf, planFor } from '#contracts/base/numbered-files.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { isLost } from './lost.ts';
import type { AnalyticsStore } from './store.ts';
import { appliedTable, createApplied, tableFiles, tableNames, tableOf } from './tables.ts';
import { callClickHouse, isUnknownTable } from './unavailable.ts';

/** The live version of the analytics tables, and its records in Postgres. */

/** The consumer group of a version: positions belong to the tables they were read into. */
export const groupOf = (version: number): string => `analytics-v${version}`;

export const liveVersion = async (pool: Pool): Promise<number> => {
  const { rows } = await pool.query<{ live: number }>({
    name: 'analytics-live',
    text: 'select live from ops.analytics_versions',
  });
  const [row] = rows;
  if (row === undefined) throw new BrokenInvariant('analytics have no tables: run migrations first');
  return row.live;
};

/** Whether a rebuild has begun and its version is not live: it still runs, or it crashed. */
export const isRebuildOpen = async (pool: Pool): Promise<boolean> => {
  const { rows } = await pool.query<{ open: boolean }>('select newest > live as open from ops.analytics_versions');
  return rows[0]?.open === true;
};

/** Time-out of one statement that makes or drops a table: a ClickHouse that hangs must not hold the caller. */
const statementMs = 10_000;

const command = async (client: ClickHouseClient, query: string): Promise<void> => {
  await callClickHouse(() => client.command({ query, abort_signal: AbortSignal.timeout(statementMs) }));
};

/** The files that were carried out for a version; none where one of its tables is gone, so that all are made again. */
const appliedFiles = async (client: ClickHouseClient, version: number): Promise<readonly AppliedFile[]> => {
  const query = `select number, name, checksum, (select count() from system.tables
      where database = currentDatabase() and name in {tables:Array(String)}) as tables
    from ${appliedTable(version)} final order by number`;
  const tables = tableNames.map((name) => tableOf(name, version));
  const request = { query, query_params: { tables }, format: 'JSONEachRow' } as const;
  try {
    const rows = await callClickHouse(async () =>
      (await client.query({ ...request, abort_signal: AbortSignal.timeout(statementMs) })).json<
        AppliedFile & { readonly tables: string }
      >(),
    );
    return rows.every((row) => Number(row.tables) === tables.length) ? rows : [];
  } catch (error) {
    if (isUnknownTable(error)) return [];
    throw error;
  }
};

/**
 * Brings the tables of a version to this build. A process that dies before the record leaves files that the next one
 * carries out again; so do two processes at once.
 * @throws Unavailable also when a file that was carried out is another one here
 */
const makeTables = async (client: ClickHouseClient, version: number): Promise<void> => {
  const plan = planFor(tableFiles(version), await appliedFiles(client, version), appliedTable(version));
  if (plan.mismatch !== null) throw new Unavailable(`CLICKHOUSE_URL: ${plan.mismatch}`);
  if (plan.pending.length === 0) return;
  await command(client, createApplied(version));
  for (const { sql } of plan.pending) {
    await command(client, sql);
    faultPoint('analytics:between-tables');
  }
  faultPoint('analytics:before-record');
  await callClickHouse(() =>
    client.insert({
      table: appliedTable(version),
      values: plan.pending.map((file) => ({ number: file.number, name: file.name, checksum: checksumOf(file) })),
      format: 'JSONEachRow',
      abort_signal: AbortSignal.timeout(statementMs),
    }),
  );
};

/**
 * How long a passed check for lost rows stays valid, milliseconds. Rows inserted meanwhile may go into a ClickHouse
 * that was restored just then; the next check compares the rows of the minutes before.
 */
const believedMs = 5_000;

interface Tables {
  readonly ready: Promise<void>;
  /** Until this instant no caller checks again for lost rows. */
  readonly until: number;
}

const made = new WeakMap<ClickHouseClient, Map<number, Tables>>();

/**
 * Makes the tables at the first use, so that an embedded engine without a use is not started.
 * @param pool with it, lost tables are refused and not recreated empty
 * @throws Unavailable
 */
export const ensureTables = (client: ClickHouseClient, version: number, pool?: Pool): Promise<void> => {
  const known = made.get(client) ?? new Map<number, Tables>();
  made.set(client, known);
  const before = known.get(version);
  if (before !== undefined && pool === undefined) {
    // This caller wants no check for lost rows, so the failure of another caller's check is not its own: a rebuild
    // recreates lost tables.
    return before.ready.catch(() => ensureTables(client, version));
  }
  if (before !== undefined && performance.now() < before.until) return before.ready;
  const ready = (async () => {
    await before?.ready;
    if (pool !== undefined && (await isLost(client, version, pool)))
      throw new Unavailable(
        'ClickHouse lost observations that it held: rebuild them, npm run admin -- rebuild analytics',
      );
    if (before !== undefined) return;
    await makeTables(client, version);
  })();
  const tables = { ready, until: performance.now() + believedMs };
  known.set(version, tables);
  ready.catch(() => {
    if (known.get(version) === tables) known.delete(version);
  });
  return ready;
};

export const dropTables = async (client: ClickHouseClient, version: number): Promise<void> => {
  made.get(client)?.delete(version);
  // First: after a crash in between the next use makes all tables, and a later drop finds them.
  await command(client, `drop table if exists ${appliedTable(version)}`);
  for (const name of tableNames) await command(client, `drop table if exists ${tableOf(name, version)}`);
};

/**
 * How long a reader may use a version after another went live, milliseconds. The tables of the old one stay for longer.
 */
const cachedMs = 1_000;

/** For readers. The tables exist, but may be empty. */
export const analyticsStore = (client: ClickHouseClient, pool: Pool): AnalyticsStore => {
  let known: { readonly version: Promise<number>; readonly until: number } | null = null;
  const version = async (): Promise<number> => {
    const live = await liveVersion(pool);
    await ensureTables(client, live, pool);
    return live;
  };
  const refresh = (): Promise<number> => {
    const current = { version: version(), until: performance.now() + cachedMs };
    known = current;
    current.version.catch(() => {
      if (known === current) known = null;
    });
    return current.version;
  };
  return {
    client,
    version: async (dropped) => {
      const found = known === null || performance.now() > known.until ? await refresh() : await known.version;
      return found === dropped ? refresh() : found;
    },
  };
};

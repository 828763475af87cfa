import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { counters } from '#schemas/insights.ts';
import { withRebuildLock } from '../engine/rebuild.ts';
import type { Zones } from './calendar.ts';
import { dropTables, ensureTables, liveVersion } from './live.ts';
import { countDays } from './recount.ts';
import { quoted } from './sql.ts';
import { columnOf, retentionMonths, type TableName, tableOf } from './tables.ts';
import { callClickHouse } from './unavailable.ts';

/** Counts a workspace's figures again, in tables apart, and compares: what people are shown is what was observed. */

/** Above any version of a rebuild; one verification runs at a time, and drops what a former one left. */
const scratch = 2_000_000_000;
/** Days that retention is about to delete may already be gone from one of both. */
const retained = `day > today() - interval ${retentionMonths - 1} month`;
const summed = [...counters.map(columnOf), 'rated_interactions', 'rated_impressions', 'targets'];

const grains: readonly {
  readonly table: TableName;
  readonly keys: readonly string[];
  readonly cells: readonly string[];
}[] = [
  { table: 'post_days', keys: ['target_id', 'day'], cells: counters.map(columnOf) },
  { table: 'account_days', keys: ['account_id', 'day'], cells: summed },
  { table: 'client_days', keys: ['client_id', 'day', 'platform'], cells: summed },
  { table: 'workspace_days', keys: ['day', 'platform'], cells: summed },
  { table: 'account_figures_days', keys: ['account_id', 'day'], cells: ['follower_count'] },
];

const maxNamed = 20;
/** Days are recounted some seconds behind their observations. */
const tries = 4;
const betweenMs = 2_000;

interface Compared {
  /** Rows of the grains that were counted again. */
  readonly rows: number;
  /** Events of the observations that the live tables have, each once. */
  readonly observations: number;
  /** `<table> <keys>` of rows that differ, or that one of both has alone. */
  readonly differing: readonly string[];
}

const rowsOf = async <T>(client: ClickHouseClient, query: string): Promise<readonly T[]> => {
  const answer = await callClickHouse(() => client.query({ query, format: 'JSONEachRow' }));
  return answer.json<T>();
};

const grainOf = ({ table, keys, cells }: (typeof grains)[number], version: number, workspaceId: string): string => {
  const filled = cells.includes('targets') ? 'where targets > 0' : '';
  return `select ${[...keys, ...cells].join(', ')} from (
    select * from ${tableOf(table, version)} where workspace_id = ${quoted(workspaceId)} and ${retained}
    order by ${keys.join(', ')}, version desc limit 1 by ${keys.join(', ')}) ${filled}`;
};

const differences = async (client: ClickHouseClient, live: number, workspaceId: string): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const grain of grains) {
    const [shown, counted] = [grainOf(grain, live, workspaceId), grainOf(grain, scratch, workspaceId)];
    const rows = await rowsOf<Readonly<Record<string, unknown>>>(
      client,
      `select distinct ${grain.keys.join(', ')} from ((${shown} except ${counted}) union all (${counted} except ${shown}))
       order by all limit ${maxNamed}`,
    );
    found.push(...rows.map((row) => `${grain.table} ${grain.keys.map((key) => String(row[key])).join(' ')}`));
  }
  return found;
};

const copied = async (client: ClickHouseClient, live: number, workspaceId: string): Promise<readonly string[]> => {
  const days = new Set<string>();
  for (const name of ['observations', 'account_observations'] as const) {
    await callClickHouse(() =>
      client.command({
        query: `insert into ${tableOf(name, scratch)} select * from ${tableOf(name, live)} where workspace_id = ${quoted(workspaceId)}`,
      }),
    );
    // Of another name: ClickHouse takes `day` behind `where` for what it is called here.
    const query = `select distinct toString(day) as counted from ${tableOf(name, scratch)} where ${retained}`;
    for (const { counted } of await rowsOf<{ counted: string }>(client, query)) days.add(counted);
  }
  return [...days];
};

export interface FiguresOptions {
  readonly client: ClickHouseClient;
  readonly pool: Pool;
  readonly workspaceId: string;
  readonly zones: Zones;
  readonly signal: AbortSignal;
}

/** @throws Error where another verification counts */
export const compareWithRecount = ({ client, pool, workspaceId, zones, signal }: FiguresOptions): Promise<Compared> =>
  withRebuildLock(pool, 'analytics of a verification', signal, async (held) => {
    const live = await liveVersion(pool);
    await ensureTables(client, live);
    for (let tried = 1; ; tried += 1) {
      await dropTables(client, scratch);
      await ensureTables(client, scratch);
      try {
        const days = await copied(client, live, workspaceId);
        const marks = days.flatMap((day) => (['post', 'account'] as const).map((kind) => ({ workspaceId, kind, day })));
        if (marks.length > 0)
          await countDays(client, scratch, marks, '1', new Map([[workspaceId, zones]]), { signal: held });
        const differing = await differences(client, live, workspaceId);
        if (differing.length > 0 && tried < tries) {
          await pause(betweenMs, held);
          continue;
        }
        const sum = async (queries: readonly string[]): Promise<number> => {
          const parts = await Promise.all(queries.map((query) => rowsOf<{ n: string }>(client, query)));
          return parts.reduce((total, [row]) => total + Number(row?.n ?? 0), 0);
        };
        return {
          differing,
          rows: await sum(grains.map((one) => `select count() as n from (${grainOf(one, scratch, workspaceId)})`)),
          observations: await sum(
            (['observations', 'account_observations'] as const).map(
              (name) => `select uniqExact(event_id) as n from ${tableOf(name, scratch)} where ${retained}`,
            ),
          ),
        };
      } finally {
        await dropTables(client, scratch);
      }
    }
  });

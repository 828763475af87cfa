/**
 * Reads of 100,000,000 observations of 200 workspaces, made inside the engine and counted by our own recount: the overview
 * beside the best query we can write for the same answer over the same connection, alone and among ten times the rows of
 * others, and of a workspace ten times as large.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { utcZones } from '#projections/analytics/calendar.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { countDays } from '#projections/analytics/recount.ts';
import type { Window } from '#projections/analytics/rollup.ts';
import { createStatements, tableOf } from '#projections/analytics/tables.ts';
import { daysOf, summed } from '#projections/analytics/totals.ts';
import { embeddedClickHouse } from '#test/support/clickhouse.ts';
import { type BenchRow, percentile } from '../row.ts';
import { firstDay, generate, lastDay, targetsOf, workspaceIdOf } from './generate.ts';

const version = 1;
/** The memory that standalone gives its engine. */
const engineBytes = 1024 ** 3;
/** The query reads the workspace 0; the last workspace is large. */
const asked = workspaceIdOf(0);
const windows = {
  30: { from: '2026-03-12', to: lastDay },
  100: { from: firstDay, to: lastDay },
} as const satisfies Record<number, Window>;

/** A table with one row for each day and network that is never corrected: the hand-written query reads it. */
const preAggregate = async (client: ClickHouseClient): Promise<void> => {
  const columns = `workspace_id, day, platform, observed_at, ${summed.join(', ')}`;
  await client.command({ query: 'drop table if exists best_days' });
  await client.command({
    query: `create table best_days engine = MergeTree partition by toYYYYMM(day) order by (workspace_id, day, platform)
      as select ${columns} from ${tableOf('workspace_days', version)} final`,
  });
};

/** One statement, the same three answers in it: of all, of each network, of each day. */
const byHand = async (client: ClickHouseClient, workspace: string, { from, to }: Window): Promise<unknown> => {
  const answer = await client.query({
    query: `select grouping(day), grouping(platform), day, platform, max(observed_at),
        ${summed.map((one) => `sum(${one})`).join(', ')}
      from best_days where workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date}
      group by grouping sets ((day), (platform), ()) order by 1, 2, 3, 4`,
    query_params: { workspace, from, to },
    format: 'JSONCompactEachRow',
  });
  return answer.json();
};

const summedRaw = summed.filter((one) => !one.startsWith('rated_'));

/** Reads without a grain: the cost of correctness. The last observation of each target and day counts. */
const plain: Readonly<Record<string, (names: string) => string>> = {
  'argMax of raw': (names) => `select day, platform, ${names} from (
      select day, any(platform) as platform, ${summedRaw.map((one) => `argMax(${one}, observed_at) as ${one}`).join(', ')}
      from ${tableOf('observations', version)}
      where workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date} group by day, target_id)
    group by day, platform`,
  'FINAL of raw': (names) => `select day, platform, ${names} from ${tableOf('observations', version)} final
    where workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date} group by day, platform`,
  'plain scan of raw': (names) => `select day, platform, ${names} from ${tableOf('observations', version)}
    where workspace_id = {workspace:UUID} and day between {from:Date} and {to:Date} group by day, platform`,
};

const plainRead = async (client: ClickHouseClient, name: string, workspace: string, { from, to }: Window) => {
  const query = plain[name]?.(summedRaw.map((one) => `sum(${one})`).join(', ')) ?? '';
  const answer = await client.query({ query, query_params: { workspace, from, to }, format: 'JSONCompactEachRow' });
  return answer.json();
};

/** Medians of single calls in turn, milliseconds. */
const medians = async (
  contenders: Readonly<Record<string, () => Promise<unknown>>>,
  rounds: number,
): Promise<Record<string, { readonly p50: number; readonly p99: number }>> => {
  const times = new Map(Object.keys(contenders).map((name) => [name, [] as number[]]));
  for (let round = -3; round < rounds; round += 1) {
    const turn = Object.entries(contenders);
    for (const [name, call] of round % 2 === 0 ? turn : turn.toReversed()) {
      const began = performance.now();
      await call();
      if (round >= 0) times.get(name)?.push(performance.now() - began);
    }
  }
  return Object.fromEntries(
    [...times].map(([name, all]) => [name, { p50: percentile(all, 0.5), p99: percentile(all, 0.99) }]),
  );
};

/** Waits for merges, since a store has finished them by the next morning. */
const merged = async (client: ClickHouseClient): Promise<void> => {
  for (let quiet = 0; quiet < 3; ) {
    const answer = await client.query({ query: 'select count() from system.merges', format: 'JSONCompactEachRow' });
    const [[merges] = []] = await answer.json<[string]>();
    quiet = Number(merges) === 0 ? quiet + 1 : 0;
    await delay(500);
  }
};

/** Workspaces from the n-th on, with their grains. */
const fillOf = (client: ClickHouseClient) => {
  let drawn = 0;
  return async (from: number, to: number, targets: number): Promise<void> => {
    const began = performance.now();
    let counting = 0;
    for (let n = from; n < to; n += 1) {
      await generate(client, version, n, targets);
      drawn += 1;
      const start = performance.now();
      const marks = daysOf({ from: firstDay, to: lastDay }).map((day) => ({
        workspaceId: workspaceIdOf(n),
        kind: 'post' as const,
        day,
      }));
      const zones = new Map([[workspaceIdOf(n), utcZones]]);
      await countDays(client, version, marks, String(drawn), zones);
      counting += performance.now() - start;
      if ((n - from) % 10 === 9 || n === to - 1) {
        const rows = (n - from + 1) * targets * marks.length;
        const seconds = (performance.now() - began) / 1_000;
        console.log(
          `  ${rows.toLocaleString('en')} observations of ${n - from + 1} workspaces after ${seconds.toFixed(0)} s,` +
            ` ${(counting / 1_000).toFixed(0)} s of them recounting: ${Math.round(rows / (counting / 1_000)).toLocaleString('en')} a second`,
        );
      }
    }
    await merged(client);
  };
};

/** A database of its own on the one server. */
const databaseOf = async (url: string, name: string): Promise<ClickHouseClient> => {
  const server = openAnalytics({ url });
  await server.command({ query: `create database ${name}` });
  await server.close();
  const own = new URL(url);
  own.pathname = `/${name}`;
  const client = openAnalytics({ url: own.href });
  for (const query of createStatements(version)) await client.command({ query });
  return client;
};

export const queries = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const ordinary = quick ? 8 : 190;
  const few = Math.ceil(ordinary / 10);
  const rounds = quick ? 30 : 200;
  const { embedded, remove } = await embeddedClickHouse(engineBytes);
  const client = await databaseOf(embedded.url, 'many');
  const fewer = await databaseOf(embedded.url, 'few');
  try {
    console.log(`  ${few} workspaces, for the reads among few others`);
    await fillOf(fewer)(0, few, targetsOf.ordinary);
    console.log(`  ${ordinary} workspaces, and one ten times as large`);
    const fill = fillOf(client);
    await fill(0, ordinary, targetsOf.ordinary);
    await fill(ordinary, ordinary + 1, targetsOf.large);
    await preAggregate(client);
    const large = workspaceIdOf(ordinary);
    const overview = (of: ClickHouseClient, workspace: string, days: keyof typeof windows) => {
      const reader = analyticsReader({ client: of, version: async () => version });
      return () => reader.overview(workspace, windows[days], {});
    };
    const now = await medians(
      Object.fromEntries(
        ([30, 100] as const).flatMap((days) => [
          [`${days}`, overview(client, asked, days)],
          [`hand ${days}`, () => byHand(client, asked, windows[days])],
          [`few ${days}`, overview(fewer, asked, days)],
          [`large ${days}`, overview(client, large, days)],
        ]),
      ),
      rounds,
    );
    const slow = Object.keys(plain);
    const raw = await medians(
      Object.fromEntries(
        slow.flatMap((name) =>
          ([30, 100] as const).map((days) => [`${name} ${days}`, () => plainRead(client, name, asked, windows[days])]),
        ),
      ),
      quick ? 3 : 10,
    );
    const p50 = (from: typeof now, name: string): number => from[name]?.p50 ?? Number.NaN;
    const rows: BenchRow[] = [];
    for (const [days, most] of [
      [30, 15],
      [100, 60],
    ] as const) {
      const ours = p50(now, `${days}`);
      const hand = p50(now, `hand ${days}`);
      const beside = slow.map((name) => `${name} ${p50(raw, `${name} ${days}`).toFixed(0)} ms`).join(', ');
      rows.push({
        name: `overview of ${days} days, ${(targetsOf.ordinary * days).toLocaleString('en')} observations`,
        unit: 'ms p50',
        ours,
        limit: hand,
        goal: `≤ ${most}, ≤ 1.3 ×`,
        ok: ours <= most && ours <= hand * 1.3,
        note: `${(ours / hand).toFixed(2)} × the hand-written query on a table of one row a day and network; p99 ${now[days]?.p99.toFixed(1)}; ${beside}`,
      });
      const before = p50(now, `few ${days}`);
      rows.push({
        name: `the same, ten times the rows of others`,
        unit: 'ms p50',
        ours,
        limit: before,
        goal: '≤ 1.15 ×',
        ok: ours <= before * 1.15,
        note: `${(ours / before).toFixed(2)} × the time among ${few} workspaces`,
      });
      const big = p50(now, `large ${days}`);
      rows.push({
        name: `the same, of a workspace ten times as large`,
        unit: 'ms p50',
        ours: big,
        limit: ours,
        goal: '≤ 3 ×',
        ok: big <= ours * 3,
        note: `${(big / ours).toFixed(2)} ×`,
      });
    }
    return rows;
  } finally {
    await fewer.close();
    await client.close();
    await remove();
  }
};

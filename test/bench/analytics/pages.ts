/**
 * The list of posts with their figures, over HTTP: its first page and one 100,000 posts deep. Posts, targets and the days of
 * their figures are copies made by SQL in both stores (no streams behind them: lists read no streams).
 */
import type { ClickHouseClient } from '@clickhouse/client';
import type pg from 'pg';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { columnOf, createStatements, tableOf } from '#projections/analytics/tables.ts';
import { view } from '#projections/shapes.ts';
import { counters } from '#schemas/insights.ts';
import { embeddedClickHouse } from '#test/support/clickhouse.ts';
import { compare, copyRows, makePost } from '../lists.ts';
import type { BenchRow } from '../row.ts';
import { startStandalone } from '../standalone.ts';

const version = 1;
const observedDays = 3;
const batch = 100_000;

/** Three days of every published target. */
const fillFigures = async (pool: pg.Pool, client: ClickHouseClient): Promise<void> => {
  for (const query of createStatements(version)) await client.command({ query });
  await client.command({
    query: `create table published (workspace_id UUID, post_id UUID, target_id UUID, client_id UUID, account_id UUID,
      platform String, published_at DateTime64(3, 'UTC')) engine = MergeTree order by (workspace_id, post_id)`,
  });
  for (let last = '00000000-0000-0000-0000-000000000000'; ; ) {
    const { rows } = await pool.query(
      `select workspace_id, post_id, id as target_id, client_id, account_id, platform,
         to_char(published_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as published_at
       from ${view('post_targets')} where id > $1 and published_at is not null order by id limit ${batch}`,
      [last],
    );
    if (rows.length === 0) break;
    await client.insert({ table: 'published', values: rows, format: 'JSONEachRow' });
    last = rows.at(-1).target_id;
  }
  const columns = counters.map(columnOf);
  const figures = columns.map((_, at) => `toInt64(${at < 8 ? `100 * (d + 1) + ${at}` : '0'})`);
  await client.command({
    query: `insert into ${tableOf('post_days', version)} (workspace_id, post_id, target_id, day, client_id, account_id, platform,
        published_at, removed_at, fetched, ${columns.join(', ')}, more, observed_at, version)
      select workspace_id, post_id, target_id, toDate(published_at) + d, client_id, account_id, platform, published_at, null,
        255, ${figures.join(', ')}, '{}', published_at + interval 1 hour + toIntervalDay(d), 1
      from published cross join (select number as d from numbers(${observedDays})) as days`,
  });
};

export const pages = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const { embedded, remove } = await embeddedClickHouse();
  const client = openAnalytics({ url: embedded.url });
  try {
    const world = await startStandalone({ env: { CLICKHOUSE_URL: embedded.url } });
    try {
      for (const line of world.environment) console.log(line);
      await makePost(world);
      const out = "one.created_at - n * interval '1 minute'";
      await copyRows(world.pool, {
        posts: { published_at: out, status: "'published'" },
        targets: {
          published_at: "clock_timestamp() - n * interval '1 minute'",
          status: "'published'",
          next_action_at: 'null',
        },
      });
      await fillFigures(world.pool, client);
      const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
      const [rounds, roundMs] = quick ? [5, 1_000] : [6, 5_000];
      return [await compare(world, `/v1/analytics/posts?from=${day(120)}&to=${day(0)}`, rounds, roundMs)];
    } finally {
      await world.stop();
    }
  } finally {
    await client.close();
    await remove();
  }
};

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { interactionsOf } from '#domain/engagement.ts';
import { utcZones, type Zones } from '#projections/analytics/calendar.ts';
import { observationOf } from '#projections/analytics/encode.ts';
import { Ingester } from '#projections/analytics/ingest.ts';
import { ensureTables } from '#projections/analytics/live.ts';
import { isLost } from '#projections/analytics/lost.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { countDays } from '#projections/analytics/recount.ts';
import { Recounter } from '#projections/analytics/recounter.ts';
import { markOutdated } from '#projections/analytics/rules.ts';
import { columnOf, createStatements } from '#projections/analytics/tables.ts';
import { daysOf } from '#projections/analytics/totals.ts';
import { compareWithRecount } from '#projections/analytics/verify.ts';
import { type DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import { combined } from '#services/api/analytics/combine.ts';
import { previousOf } from '#services/api/analytics/window.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { expectedRollup } from '#test/support/expected-analytics.ts';
import {
  history,
  keys,
  observed,
  randomOf,
  type Seen,
  shownGrain,
  sumsBy,
  targetDays,
} from '#test/support/observations.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { stored, TestKeys } from '#test/support/projecting.ts';
import { suite } from '#test/support/suite.ts';

const codec = new EventCodec(new TestKeys());
let position = 0n;
const eventOf = async (seen: Seen): Promise<DecodedEvent> => {
  position += 1n;
  return codec.decode(await stored(codec, observed(seen), { revision: 0, position, workspaceId: seen.workspaceId }));
};
const eventsOf = (all: readonly Seen[]): Promise<DecodedEvent[]> => Promise.all(all.map(eventOf));

const ids = () => ({
  workspaceId: randomUUID(),
  postId: randomUUID(),
  targetId: randomUUID(),
  clientId: randomUUID(),
  accountId: randomUUID(),
  platform: 'instagram' as const,
});
/** Of the workspaces that are not in UTC. */
const zones = new Map<string, Zones>();
const zonesOf = async (workspaceId: string): Promise<Zones> => zones.get(workspaceId) ?? utcZones;
const bitsOf = (...names: CounterName[]): number => names.reduce((bits, name) => bits + 2 ** counters.indexOf(name), 0);
const byTime = (one: Seen, other: Seen): number => (one.observedAt < other.observedAt ? -1 : 1);
const on = (day: string, hour = '02') => ({ day, observedAt: `${day}T${hour}:00:00.000Z` });

/** What reads answer of a day, a network, a client or a window. */
type Figures = Readonly<Partial<Record<CounterName | 'engagementRate', unknown>>>;
const gains = (of: Figures): Figures =>
  Object.fromEntries(counters.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]])));
const rated = (of: Figures): Figures => ({ ...gains(of), engagementRate: of.engagementRate });
const added = (values: readonly unknown[]): number | null =>
  values.reduce<number | null>((sum, one) => (typeof one === 'number' ? (sum ?? 0) + one : sum), null);
/** Absent where no part has it, null where no part knows it. */
const sumOf = (parts: readonly Figures[]): Figures =>
  Object.fromEntries(
    counters.flatMap((name) => {
      const found = parts.flatMap((one) => (one[name] === undefined ? [] : [one[name]]));
      return found.length === 0 ? [] : [[name, added(found)]];
    }),
  );

suite('grains of the analytics', { timeoutMs: 180_000 }, (t) => {
  let clickhouse: TestClickHouse;
  let pool: Pool;
  let ingester: Ingester;
  let recounter: Recounter;
  t.before(async () => {
    const [house, db] = await Promise.all([testClickHouse(), preparedDatabase()]);
    clickhouse = house;
    pool = new Pool({ connectionString: db.url, max: 4 });
    ingester = new Ingester(clickhouse.client, pool, 1);
    recounter = new Recounter(clickhouse.client, pool, 1, zonesOf);
  });
  t.after(() => pool?.end());

  const apply = (events: readonly DecodedEvent[]): Promise<unknown> =>
    inTransaction(pool, async (tx) => ({ commit: true, result: await ingester.apply(tx, events.map(observationOf)) }));
  const given = async (...all: readonly Seen[]): Promise<void> => {
    await apply(await eventsOf(all));
    await recounter.all();
  };
  const rows = async (query: string) =>
    (await clickhouse.client.query({ query, format: 'JSONEachRow' })).json<Record<string, unknown>>();
  const day = async (seen: { workspaceId: string }, column: string): Promise<unknown> => {
    const found =
      await rows(`select day, ${column} as n from workspace_days_v1 where workspace_id = '${seen.workspaceId}'
      order by day, version desc limit 1 by day`);
    return Object.fromEntries(found.map((row) => [row.day, row.n === null ? null : Number(row.n)]));
  };

  t('a verification finds nothing until a figure is changed, and names its row then', async () => {
    const [post, other] = [ids(), ids()];
    const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
    await given(
      ...[daysAgo(9), daysAgo(8), daysAgo(6)].map((one, at) => ({ ...post, ...on(one), figures: { likes: 10 * at } })),
      { ...other, ...on(daysAgo(5)), figures: { likes: 3 } },
    );
    const { workspaceId, targetId } = post;
    const verified = () =>
      compareWithRecount({
        client: clickhouse.client,
        pool,
        workspaceId,
        zones: utcZones,
        signal: AbortSignal.timeout(60_000),
      });
    const { rows: counted, observations, differing } = await verified();
    assert.deepEqual([differing, observations], [[], 3]);
    assert.ok(counted > 0);
    await clickhouse.client.command({
      query: `insert into post_days_v1 select * replace (likes + 1 as likes, version + 1 as version) from post_days_v1
        where target_id = '${targetId}' and day = '${daysAgo(8)}' order by version desc limit 1`,
    });
    assert.deepEqual((await verified()).differing, [`post_days ${targetId} ${daysAgo(8)}`]);
  });

  t('a counter is interpolated at midnight between two looks; after 36 h its gain falls on the later day', async () => {
    const post = ids();
    await given(
      { ...post, ...on('2026-02-01'), figures: { likes: 10 } },
      { ...post, ...on('2026-02-02'), figures: { likes: 25 } },
      { ...post, ...on('2026-02-05'), figures: { likes: 20 } },
    );
    assert.deepEqual(await day(post, 'likes'), { '2026-02-01': 24, '2026-02-02': 1, '2026-02-05': -5 });
  });

  t('the followers of a channel are subscribers and no follows, and keep the bits of what was fetched', async () => {
    const video = { ...ids(), platform: 'youtube' as const };
    await given({
      ...video,
      ...on('2026-02-05'),
      figures: { follows: null, subscribersGained: 9, subscribersLost: 1 },
    });
    assert.deepEqual(await day(video, 'subscribers_gained'), { '2026-02-05': 9 });
    assert.deepEqual(await day(video, 'follows'), { '2026-02-05': null });
    const channel = { ...ids(), platform: 'youtube' as const };
    await given({ ...channel, ...on('2026-02-05'), figures: { subscribersGained: 2 } });
    assert.deepEqual(await day(channel, 'fetched'), { '2026-02-05': bitsOf('subscribersGained') });
  });

  t('text with any special character is read back unchanged', async () => {
    const odd = 'tab\t line\n return\r nul\0 back\\slash \\N \\t "quote" \'single\' \u2028 ünïcödé 🎉';
    const post = ids();
    const [event] = await eventsOf([{ ...post, ...on('2026-02-01'), figures: { likes: 1, permalink: odd } }]);
    assert.ok(event);
    const raw = { odd, '\\N': null, nested: [odd, { [odd]: 0 }] };
    const source = 'api \t\\N\n v1';
    const { figures } = event.data;
    const account = {
      ...event,
      id: randomUUID(),
      type: 'AccountMetricsObserved',
      data: { ...event.data, figures: { followerCount: 5 }, figuresDay: null, demographics: { odd }, raw, source },
    };
    await apply([{ ...event, data: { ...event.data, raw, source } }, account]);
    const where = `where workspace_id = '${post.workspaceId}'`;
    const [reported] = await rows(`select more, raw, source, likes, comments from observations_v1 ${where}`);
    assert.deepEqual(
      { ...reported, more: JSON.parse(String(reported?.more)), raw: JSON.parse(String(reported?.raw)) },
      { more: { permalink: (figures as { permalink: string }).permalink }, raw, source, likes: '1', comments: null },
    );
    const [own] = await rows(
      `select figures, figures_day, demographics, raw, source from account_observations_v1 ${where}`,
    );
    assert.deepEqual(
      {
        ...own,
        ...{ figures: JSON.parse(String(own?.figures)), demographics: JSON.parse(String(own?.demographics)) },
        raw: JSON.parse(String(own?.raw)),
      },
      { figures: { followerCount: 5 }, figures_day: null, demographics: { odd }, raw, source },
    );
  });

  t('absent, null and 0 stay apart, and sums use known figures alone', async () => {
    const post = ids();
    await given({
      ...post,
      ...on('2026-02-01'),
      figures: {
        impressions: 0,
        likes: null,
        permalink: 'https://example.com/p',
        skipRate: null,
        videoViews: 9_007_199_254_740_991,
      },
    });
    const [raw] = await rows(`select fetched, impressions, likes, comments, video_views, more, raw, removed_at
      from observations_v1 where workspace_id = '${post.workspaceId}'`);
    const bit = (name: (typeof counters)[number]): number => (Number(raw?.fetched) >> counters.indexOf(name)) & 1;
    assert.deepEqual(
      (['impressions', 'likes', 'comments'] as const).map((name) => [bit(name), raw?.[columnOf(name)]]),
      [
        [1, '0'],
        [1, null],
        [0, null],
      ],
    );
    assert.equal(raw?.video_views, '9007199254740991');
    assert.deepEqual(JSON.parse(String(raw?.more)), { permalink: 'https://example.com/p', skipRate: null });
    const [shown] = await rows(`select impressions, likes, comments from workspace_days_v1
      where workspace_id = '${post.workspaceId}' order by version desc limit 1`);
    assert.deepEqual(shown, { impressions: '0', likes: null, comments: null });
    const [postDay] = await rows(
      `select fetched, impressions, likes, more from post_days_v1 where workspace_id = '${post.workspaceId}'`,
    );
    assert.deepEqual(postDay, { fetched: raw?.fetched, impressions: '0', likes: null, more: raw?.more });
  });

  t('a workspace that moves west repeats a day, which is counted once', async () => {
    const post = ids();
    zones.set(post.workspaceId, [
      { since: Number.NEGATIVE_INFINITY, timezone: 'Pacific/Kiritimati' },
      { since: Date.parse('2026-02-09T14:30:00.000Z'), timezone: 'America/Los_Angeles' },
    ]);
    await given(
      { ...post, day: '2026-02-10', observedAt: '2026-02-09T13:30:00.000Z', figures: { likes: 100 } },
      { ...post, day: '2026-02-09', observedAt: '2026-02-09T15:30:00.000Z', figures: { likes: 150 } },
    );
    assert.deepEqual(await day(post, 'likes'), { '2026-02-10': 150 });
  });

  t('interactions are not counted twice where a network reports its total on some days only', async () => {
    const post = ids();
    await given(
      { ...post, ...on('2026-02-01'), figures: { impressions: 100, likes: 10, totalInteractions: null } },
      { ...post, ...on('2026-02-02'), figures: { impressions: 120, likes: 11, totalInteractions: 12 } },
      { ...post, ...on('2026-02-03'), figures: { impressions: 200 } },
    );
    assert.deepEqual(await day(post, 'rated_interactions'), { '2026-02-01': 11, '2026-02-02': 0, '2026-02-03': null });
    assert.deepEqual(await day(post, 'rated_impressions'), { '2026-02-01': 118, '2026-02-02': 75, '2026-02-03': 7 });
  });

  t('a workspace whose recount fails is named and waits; other workspaces are counted', async () => {
    const [sick, well] = [ids(), ids()];
    await apply(
      await eventsOf([
        { ...sick, ...on('2026-02-01'), figures: { likes: 1 } },
        { ...well, ...on('2026-02-01'), figures: { likes: 2 } },
      ]),
    );
    const own = new Recounter(clickhouse.client, pool, 1, zonesOf);
    const damaged = 'workspace_id = $1 and day = $2';
    await pool.query(`insert into ops.analytics_marked values (1, $1, 'post', $2, 0, 0)`, [
      sick.workspaceId,
      'infinity',
    ]);
    await assert.rejects(own.round(), /no id or day/);
    await assert.rejects(own.round(), /no id or day/);
    // No round more than is needed: the sick one does not rest for long.
    while ((await own.round()) === 0);
    assert.deepEqual(await day(well, 'likes'), { '2026-02-01': 2 });
    assert.match(own.trouble() ?? '', new RegExp(sick.workspaceId));
    await pool.query(`delete from ops.analytics_marked where ${damaged}`, [sick.workspaceId, 'infinity']);
    await recounter.all();
    assert.deepEqual(await day(sick, 'likes'), { '2026-02-01': 1 });
  });

  t('each version is higher than any before, also after the sequence was reset', async () => {
    const post = ids();
    await given({ ...post, ...on('2026-02-01'), figures: { likes: 10 } });
    await pool.query(`select setval('ops.analytics_recounts', 1)`);
    await given({ ...post, ...on('2026-02-01', '04'), figures: { likes: 12 } });
    assert.deepEqual(await day(post, 'likes'), { '2026-02-01': 12 });
  });

  t('long rows are split into several inserts', async () => {
    const post = ids();
    const long = 'a'.repeat(100_000);
    const days = Array.from({ length: 28 }, (_, n) => `2026-02-${String(n + 1).padStart(2, '0')}`);
    const seen = days.flatMap((one) =>
      Array.from({ length: 10 }, () => ({ ...post, ...on(one), figures: { likes: 1 } })),
    );
    const all = (await eventsOf(seen)).map((event) => ({ ...event, data: { ...event.data, raw: { long } } }));
    await apply(all);
    const [count] = await rows(`select count() as n, sum(length(raw)) as bytes from observations_v1
      where workspace_id = '${post.workspaceId}'`);
    assert.equal(Number(count?.n), all.length);
    assert.ok(Number(count?.bytes) > 28_000_000);
  });

  t('the gain of a counter that is missing on one day falls once on the next day that has it', async () => {
    const post = ids();
    await given(
      { ...post, ...on('2026-02-01'), figures: { likes: 10 } },
      { ...post, ...on('2026-02-02'), figures: { likes: null } },
      { ...post, ...on('2026-02-03'), figures: {} },
      { ...post, ...on('2026-02-04'), figures: { likes: 12 } },
    );
    assert.deepEqual(await day(post, 'likes'), {
      '2026-02-01': 10,
      '2026-02-02': null,
      '2026-02-03': null,
      '2026-02-04': 2,
    });
  });

  t(
    'a figure that a look did not fetch keeps its last value, and the next look that fetches it has the gain',
    async () => {
      const post = ids();
      await given(
        { ...post, ...on('2026-02-01'), figures: { likes: 10, clicks: 4, saves: 1 } },
        { ...post, ...on('2026-02-02', '02'), figures: { likes: 20, clicks: 7 } },
        { ...post, ...on('2026-02-02', '15'), figures: { likes: 25 } },
        { ...post, ...on('2026-02-03'), figures: { likes: 26, saves: null } },
        { ...post, ...on('2026-02-04'), figures: { likes: 27, clicks: 9 } },
      );
      const bits = ['likes', 'clicks', 'saves'].map((name) => 2 ** counters.indexOf(name as 'likes'));
      const shown = await rows(`select fetched, likes, clicks, saves from post_days_v1
      where workspace_id = '${post.workspaceId}' order by day`);
      assert.deepEqual(
        shown.map(({ fetched, ...cells }) => [
          fetched,
          ...Object.values(cells).map((one) => (one === null ? null : Number(one))),
        ]),
        [
          [10, 4, 1],
          [25, 7, 1],
          [26, 7, null],
          [27, 9, null],
        ].map((cells) => [bits.reduce((sum, bit) => sum + bit, 0), ...cells]),
      );
      assert.deepEqual(await day(post, 'clicks'), {
        '2026-02-01': 7,
        '2026-02-02': 0,
        '2026-02-03': null,
        '2026-02-04': 2,
      });
    },
  );

  t('daily figures of an account belong to the network’s day, followers to the day of the look', async () => {
    const { workspaceId, accountId, clientId } = ids();
    const reported = async (observedAt: string, on: string, figuresDay: string | null, figures: object) => {
      const about = { accountId, clientId, platform: 'instagram', source: 'test/1', raw: {} };
      const data = { ...about, observedAt, day: on, figures, figuresDay };
      const given = { stream: `accountmetrics-${accountId}`, type: 'AccountMetricsObserved', data };
      position += 1n;
      const event = await stored(codec, given, { revision: 0, position, workspaceId });
      await apply([await codec.decode(event)]);
      await recounter.all();
    };
    // In New York: a night, somebody’s refresh of the evening, when its network’s next day has begun, and the next night.
    await reported('2026-02-02T07:00:00.000Z', '2026-02-02', '2026-02-01', { followerCount: 10, profileViews: 5 });
    await reported('2026-02-03T01:30:00.000Z', '2026-02-02', '2026-02-02', { followerCount: 11, profileViews: 7 });
    await reported('2026-02-03T07:00:00.000Z', '2026-02-03', '2026-02-02', { followerCount: 12, profileViews: 8 });
    await reported('2026-02-04T07:00:00.000Z', '2026-02-04', null, { followerCount: 13 });
    const newest = (table: string, columns: string) =>
      rows(
        `select day, ${columns} from ${table} where workspace_id = '${workspaceId}' order by day, version desc limit 1 by day`,
      );
    const audience = await newest('account_audience_days_v1', 'figures');
    assert.deepEqual(
      audience.map((row) => [row.day, JSON.parse(String(row.figures)).profileViews]),
      [
        ['2026-02-01', 5],
        ['2026-02-02', 8],
      ],
    );
    const own = await newest('account_figures_days_v1', 'follower_count');
    assert.deepEqual(
      own.map((row) => [row.day, Number(row.follower_count)]),
      [
        ['2026-02-02', 11],
        ['2026-02-03', 12],
        ['2026-02-04', 13],
      ],
    );
  });

  t('a late observation changes its own day and the gain of the next', async () => {
    const post = ids();
    await given(
      { ...post, ...on('2026-02-01'), figures: { likes: 10 } },
      { ...post, ...on('2026-02-09'), figures: { likes: 50 } },
    );
    await given({ ...post, ...on('2026-02-04'), figures: { likes: 30 } });
    assert.deepEqual(await day(post, 'likes'), { '2026-02-01': 10, '2026-02-04': 20, '2026-02-09': 20 });
  });

  t('a later observation of a day replaces the earlier one; a former client keeps no figures', async () => {
    const post = ids();
    await given({ ...post, ...on('2026-02-01'), figures: { likes: 10 } });
    await given({ ...post, ...on('2026-02-01', '14'), clientId: randomUUID(), figures: { likes: 8 } });
    assert.deepEqual(await day(post, 'likes'), { '2026-02-01': 8 });
    const shown = await shownGrain(clickhouse.client, 'client_days');
    assert.deepEqual(
      [...shown]
        .filter(([key]) => key.startsWith(post.workspaceId))
        .map(([key, { likes }]) => [key.includes(post.clientId), likes]),
      [[false, 8]],
    );
  });

  t('an event with a day that no table can hold is parked, and no row is stored', async () => {
    const [bad] = await eventsOf([{ ...ids(), ...on('2999-01-01'), figures: { likes: 1 } }]);
    const verdict = (await apply([bad as DecodedEvent])) as { action: string; reason: string };
    assert.equal(verdict.action, 'park');
    assert.match(verdict.reason, /2999-01-01/);
  });

  t('equals a recount in TypeScript for shuffled, repeated, split and late events', async () => {
    for (let round = 0; round < 3; round += 1) {
      const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
      const random = randomOf(seed);
      const all = [1, 2].flatMap(() => history(random, { targets: 12, days: 14 }));
      const events = await eventsOf(all.toSorted(() => random() - 0.5));
      for (let at = 0; at < events.length; ) {
        const size = 20 + Math.floor(random() * 120);
        await apply(events.slice(Math.max(0, at - Math.floor(random() * 10)), at + size));
        if (random() < 0.4) await recounter.round();
        at += size;
      }
      await recounter.all();
      const ours = new Set(all.map((seen) => seen.workspaceId));
      for (const name of ['workspace_days', 'client_days', 'account_days'] as const) {
        const shown = [...(await shownGrain(clickhouse.client, name))].filter(([key]) => ours.has(key.slice(0, 36)));
        const wanted = [...sumsBy(targetDays(all), keys[name])];
        const sorted = (of: typeof shown) => of.toSorted(([a], [b]) => (a < b ? -1 : 1));
        assert.deepEqual(sorted(shown), sorted(wanted), `${name} with SEED=${seed}`);
      }
    }
  });

  t('a day is provisional by the clock that dates the figures, however far it is ahead of ours', async () => {
    const [post, story, dayMs, hourMs] = [ids(), ids(), 86_400_000, 3_600_000];
    const first = Date.parse(new Date().toISOString().slice(0, 10)) + 30 * dayMs + 2 * hourMs;
    const seenAt = (of: ReturnType<typeof ids>, at: number, ageMs: number): Seen => {
      const [observedAt, publishedAt] = [at, at - ageMs].map((one) => new Date(one).toISOString()) as [string, string];
      return { ...of, publishedAt, observedAt, day: observedAt.slice(0, 10), figures: { likes: 5 } };
    };
    const reader = analyticsReader({ client: clickhouse.client, version: async () => 1 });
    const window = { from: first - dayMs, to: first + 5 * dayMs };
    const days = daysOf({
      from: new Date(window.from).toISOString().slice(0, 10),
      to: new Date(window.to).toISOString().slice(0, 10),
    });
    const openFrom = async (all: readonly [Seen, ...Seen[]], now: number): Promise<number> => {
      const [{ workspaceId, accountId, clientId }] = all;
      const own = { from: days[0] ?? '', to: days.at(-1) ?? '' };
      const wanted = expectedRollup(all, () => true, own, { zone: 'UTC', now }).series;
      const answers = await Promise.all([
        reader.overview(workspaceId, own, {}, { now }),
        reader.client(workspaceId, clientId, own, {}, { now }),
        reader.account(workspaceId, accountId, own, { now }),
      ]);
      for (const { series } of answers)
        assert.deepEqual(
          series.map(({ provisional }) => provisional),
          wanted.map(({ provisional }) => provisional),
        );
      return wanted.findIndex(({ provisional }) => provisional);
    };
    // Its first day is too far behind the next look to be counted again.
    const looks = [seenAt(post, first, hourMs), seenAt(post, first + 4 * dayMs, hourMs + 4 * dayMs)] as const;
    await given(looks[0]);
    assert.equal(await openFrom([looks[0]], first), 1);
    await given(looks[1]);
    assert.equal(await openFrom([...looks], first + 4 * dayMs), 5);
    assert.equal(await openFrom([...looks], first + 4 * dayMs + 36 * hourMs), -1);
    const last = seenAt(story, first, 23 * hourMs);
    await given(last);
    assert.equal(await openFrom([last], first + 3 * hourMs - 1), 1);
    assert.equal(await openFrom([last], first + 3 * hourMs), -1);
  });

  t('one number that is asked for in two ways is one number', async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = randomOf(seed);
    const words = `SEED=${seed}`;
    // Two targets a post, on any accounts. An account has one client.
    const made = history(random, { targets: 14, days: 12 });
    const clientOf = new Map(made.map((seen) => [seen.accountId, seen.clientId]));
    const targets = [...new Set(made.map(({ targetId }) => targetId))];
    const pair = (targetId: string) => targets[2 * Math.floor(targets.indexOf(targetId) / 2)] ?? '';
    const all = made.map((seen) => ({
      ...seen,
      postId: pair(seen.targetId),
      clientId: clientOf.get(seen.accountId) ?? '',
    }));
    await given(...all);
    const [{ workspaceId }] = all as [Seen, ...Seen[]];
    const accounts = new Map(all.map((seen) => [seen.accountId, seen]));
    for (const { accountId, clientId, platform } of accounts.values()) {
      for (const day of daysOf({ from: '2026-02-01', to: '2026-02-12' }).filter(() => random() < 0.4)) {
        const about = { accountId, clientId, platform, source: 'test/1', raw: {}, figuresDay: null, day };
        const figures = random() < 0.2 ? { followerCount: null } : { followerCount: Math.floor(random() * 900) };
        const data = { ...about, observedAt: `${day}T03:00:00.000Z`, figures };
        const reported = { stream: `accountmetrics-${accountId}`, type: 'AccountMetricsObserved', data };
        position += 1n;
        await apply([await codec.decode(await stored(codec, reported, { revision: 0, position, workspaceId }))]);
      }
    }
    await recounter.all();
    const reader = analyticsReader({ client: clickhouse.client, version: async () => 1 });
    const whole = { from: '2026-01-28', to: '2026-02-16' };
    const big = await reader.overview(workspaceId, whole, {}, { networks: true });
    const bigDay = new Map(big.series.map((one) => [one.day, one]));
    const days = daysOf(whole);
    const between = () => {
      const [a, b] = [0, 1].map(() => Math.floor(random() * days.length)).toSorted((x, y) => x - y) as [number, number];
      return { from: days[a] ?? '', to: days[b] ?? '' };
    };
    for (let round = 0; round < 8; round += 1) {
      const window = round === 0 ? whole : between();
      const previous = previousOf(window, round % 2 === 0 ? 'previous' : 'previous_weekday');
      const beside = { networks: true, previous };
      const about = `${window.from} to ${window.to}, ${words}`;
      const [board, before] = await Promise.all([
        reader.overview(workspaceId, window, {}, beside),
        reader.overview(workspaceId, previous, {}, { networks: true }),
      ]);
      const totals = gains(board.totals);
      // One day in two windows, alone and in sums.
      for (const one of board.series)
        assert.deepEqual(rated(one), rated(bigDay.get(one.day) ?? {}), `${one.day} ${about}`);
      assert.deepEqual(sumOf(board.series), totals, `days of ${about}`);
      const { previous: _none, ...earlier } = before;
      assert.deepEqual(board.previous, earlier, `previous of ${about}`);
      const [day] = board.series;
      const alone = await reader.overview(workspaceId, { from: window.from, to: window.from }, {});
      assert.deepEqual(rated(alone.totals), rated(day ?? {}), `one day of ${about}`);
      // Groups against rows.
      assert.deepEqual(sumOf(board.byPlatform), totals, `networks of ${about}`);
      for (const network of board.byPlatform) {
        const only = await reader.overview(workspaceId, window, { platforms: [network.platform] }, { networks: true });
        const { series, platform: _platform, ...shown } = network;
        assert.deepEqual([shown, series], [only.totals, only.series], `${network.platform} of ${about}`);
      }
      const clients = await Promise.all(
        [...new Set(clientOf.values())].map(async (clientId) => {
          const one = await reader.client(workspaceId, clientId, window, {}, beside);
          assert.deepEqual(one, await reader.overview(workspaceId, window, { clientId }, beside), `client of ${about}`);
          return one.totals;
        }),
      );
      assert.deepEqual(sumOf(clients), totals, `clients of ${about}`);
      const owned = await Promise.all(
        [...accounts.keys()].map(async (socialAccountId) => {
          const one = await reader.account(workspaceId, socialAccountId, window);
          const clientId = clientOf.get(socialAccountId) ?? '';
          const filtered = await reader.overview(workspaceId, window, { socialAccountId, clientId });
          assert.deepEqual(one.totals, filtered.totals, `account of ${about}`);
          for (const [at, own] of one.series.entries()) {
            const { followerCount, ...figures } = filtered.series[at] ?? assert.fail();
            // The board goes on with the last snapshot of the window; the account shows the days that have one.
            assert.deepEqual(
              { ...own, followerCount: own.followerCount ?? followerCount },
              { ...figures, followerCount },
            );
          }
          return one.totals;
        }),
      );
      assert.deepEqual(sumOf(owned), totals, `accounts of ${about}`);
      assert.equal(board.totals.followerCount, added(owned.map(({ followerCount }) => followerCount)), about);
      assert.equal(board.totals.followerCount, board.series.at(-1)?.followerCount, about);
    }
    // Posts against ranks, tops and gains.
    const out = [...Map.groupBy(all, ({ postId }) => postId)].map(([id, its]) => {
      const times = its.map(({ publishedAt = '' }) => publishedAt).sort();
      return { id, first: times[0] ?? '', last: times.at(-1) ?? '' };
    });
    const found = await reader.posts(workspaceId, out, whole.to);
    const byPost = Map.groupBy(found, ({ postId }) => postId);
    const combinedOf = (id: string) => combined(byPost.get(id) ?? []);
    const request = {
      since: '2026-01-28T00:00:00.000Z',
      to: whole.to,
      seenBy: '2026-03-01T00:00:00.000Z',
      filters: {},
    };
    for (const sort of ['impressions', 'likes', 'saves', 'totalInteractions', 'engagementRate'] as const) {
      const ranked = await reader.ranked(workspaceId, request, sort, { after: null, limit: 100 });
      const known = out.flatMap(({ id }) => {
        const value = combinedOf(id)[sort];
        return typeof value === 'number' ? [[id, value] as const] : [];
      });
      const order = (pairs: readonly (readonly [string, number])[]) => pairs.toSorted(([a], [b]) => (a < b ? -1 : 1));
      assert.deepEqual(order(ranked.map(({ id, value }) => [id, Number(value)])), order(known), `${sort} ${words}`);
    }
    for (const { postId, ...top } of await reader.top(workspaceId, whole, 'UTC', {}, 100)) {
      const { impressions = null, engagementRate = null } = combinedOf(postId);
      const interactions = added((byPost.get(postId) ?? []).map(({ figures }) => interactionsOf(figures)));
      const shown = {
        impressions: top.impressions,
        engagementRate: top.engagementRate,
        interactions: top.interactions,
      };
      assert.deepEqual(shown, { impressions, engagementRate, interactions }, `top ${words}`);
    }
    // A network that stopped to report a counter takes back its figure, and none of its gains.
    const lastKnown = (targetId: string, name: CounterName): unknown =>
      all
        .filter((one) => one.targetId === targetId && typeof one.figures[name] === 'number')
        .toSorted(byTime)
        .at(-1)?.figures[name];
    for (const name of counters) {
      const lifetime = found.map(({ targetId, figures }) => figures[name] ?? lastKnown(targetId, name));
      assert.equal(big.totals[name] ?? null, added(lifetime), `${name} ${words}`);
    }
  });

  t('a recount of too many days runs in slices, with the same result', async () => {
    const all = history(randomOf(7), { targets: 20, days: 10 });
    await given(...all);
    const marks = [...new Set(all.map((seen) => seen.day))].map((one) => ({
      workspaceId: all[0]?.workspaceId ?? '',
      kind: 'post' as const,
      day: one,
    }));
    const inUtc = new Map(marks.map(({ workspaceId }) => [workspaceId, utcZones]));
    const before = await shownGrain(clickhouse.client, 'account_days');
    await countDays(clickhouse.client, 1, marks, '4000000000000000000', inUtc, { slices: 5 });
    assert.deepEqual(await shownGrain(clickhouse.client, 'account_days'), before);
    const [newest] = await rows(
      `select max(version) as v, count() as n from account_days_v1 where version = 4000000000000000000`,
    );
    assert.ok(Number(newest?.n) > 0);
  });

  t('a post with an unknown publication time does not change the gains of other posts', async () => {
    const [post, odd] = [ids(), ids()];
    await given(
      { ...post, ...on('2026-02-01'), figures: { likes: 100, comments: 7 } },
      { ...post, ...on('2026-02-02'), figures: { likes: 124 } },
    );
    const publishedAt = '1970-01-01T00:00:00.000Z';
    await given(
      { ...odd, ...on('2026-02-05'), publishedAt, figures: { likes: 1 } },
      { ...post, ...on('2026-02-05'), figures: { likes: 130 } },
    );
    assert.equal(((await day(post, 'likes')) as Record<string, unknown>)['2026-02-05'], 6);
    const reported = `select comments from post_days_v1 where target_id = '${post.targetId}' and day = '2026-02-05'`;
    assert.deepEqual(await rows(`${reported} order by version desc limit 1`), [{ comments: '7' }]);
  });

  /** Rows into the tables of a version of their own. */
  const ownVersion = (version: number) => {
    const into = new Ingester(clickhouse.client, pool, version);
    const give = async (...events: readonly DecodedEvent[]): Promise<bigint> => {
      const all = events.map(observationOf);
      await inTransaction(pool, async (tx) => ({ commit: true, result: await into.apply(tx, all) }));
      return all.at(-1)?.position ?? 0n;
    };
    const one = async (day: string): Promise<DecodedEvent> =>
      (await eventsOf([{ ...ids(), ...on(day), figures: { likes: 1 } }]))[0] as DecodedEvent;
    const ofAccount = async (day: string): Promise<DecodedEvent> => {
      const event = await one(day);
      const data = { ...event.data, figures: { followerCount: 5 }, figuresDay: null };
      return { ...event, id: randomUUID(), type: 'AccountMetricsObserved', data };
    };
    const remove = (table: string, rows: string) =>
      clickhouse.client.command({
        query: `alter table ${table}_v${version} delete where ${rows} settings mutations_sync = 2`,
      });
    const lost = () => isLost(clickhouse.client, version, pool);
    /** As if what was given last had been given some minutes ago. */
    const wait = () =>
      pool.query(`update ops.analytics_highest set since = since - interval '3 minutes' where version = $1`, [version]);
    return { give, one, ofAccount, remove, lost, wait };
  };

  t('days that an earlier rule counted are counted again, once', async () => {
    const version = 80;
    const { give } = ownVersion(version);
    for (const query of createStatements(version)) await clickhouse.client.command({ query });
    const post = ids();
    await give(...(await eventsOf([{ ...post, ...on('2026-02-01'), figures: { likes: 4, saves: null } }])));
    // That rule counted the day, wrongly, and left no mark.
    await pool.query('delete from ops.analytics_marked where version = $1', [version]);
    await pool.query('insert into ops.analytics_rules (version, rule) values ($1, 0)', [version]);
    const { workspaceId, clientId, accountId, platform } = post;
    const counted = {
      ...{ workspace_id: workspaceId, client_id: clientId, account_id: accountId, platform, targets: 1, version: 1 },
      ...{ day: '2026-02-01', likes: 9, fetched: bitsOf('likes'), observed_at: '2026-02-01 02:00:00.000' },
    };
    for (const table of ['workspace_days', 'client_days', 'account_days'])
      await clickhouse.client.insert({ table: `${table}_v${version}`, values: [counted], format: 'JSONEachRow' });

    await ensureTables(clickhouse.client, version, pool);
    const reader = analyticsReader({ client: clickhouse.client, version: async () => version });
    const window = { from: '2026-02-01', to: '2026-02-01' };
    const read = async () =>
      Promise.all([
        reader.overview(workspaceId, window, {}),
        reader.client(workspaceId, clientId, window, {}),
        reader.account(workspaceId, accountId, window),
      ]);
    const figures = async () => (await read()).flatMap(({ totals, series: [day] }) => [totals, day]);
    const own = { engagementRate: null, followerCount: null };
    const answers = (one: object) => [one, { day: '2026-02-01', provisional: false, ...one }];
    const before = answers({ likes: 9, ...own });
    assert.deepEqual(await figures(), [...before, ...before, ...before]);

    const recounts = new Recounter(clickhouse.client, pool, version, zonesOf);
    assert.equal(await recounts.all(), 0, 'nothing but the rule has it counted');
    assert.equal(await markOutdated(pool, version), 1);
    assert.equal(await recounts.all(), 1);
    const after = answers({ likes: 4, saves: null, ...own });
    assert.deepEqual(await figures(), [...after, ...after, ...after]);
    assert.equal(await markOutdated(pool, version), 0);
  });

  t('tables that lost rows are detected, also when new rows arrived before the check', async () => {
    const { give, one, ofAccount, remove, lost, wait } = ownVersion(70);
    const backup = await give(await one('2026-02-01'), await ofAccount('2026-02-01'));
    await wait();
    await give(await one('2026-02-01'), await one('2026-01-31'));
    const last = await give(await one('2026-02-02'));
    // What comes in while it is still believed falls into three minutes of the clock at most.
    for (const day of ['2026-02-02', '2026-02-03', '2026-02-03']) {
      await wait();
      await give(await one(day));
      await give(await one(day));
    }
    assert.equal(await lost(), false);
    await remove('observations', `position > ${backup} and position <= ${last}`);
    assert.equal(await lost(), true);
  });

  t(
    'lost account rows and missing tables are detected; rows that retention may have deleted do not count',
    async () => {
      const { give, one, ofAccount, remove, lost } = ownVersion(71);
      const late = await one('2026-02-01');
      await give(await one('2026-02-01'), await ofAccount('2026-02-02'));
      // Batches of several lanes come in any order.
      await give(late);
      assert.equal(await lost(), false);
      await remove('observations', `position = ${late.position}`);
      assert.equal(await lost(), false, 'not the highest');
      await remove('account_observations', '1');
      assert.equal(await lost(), true);

      const old = ownVersion(72);
      await old.give(await old.one('2026-02-01'), await old.ofAccount('2026-02-01'));
      await old.wait();
      await old.give(await old.one('2019-02-01'));
      await old.remove('observations', `day < '2020-01-01'`);
      assert.equal(await old.lost(), false, 'older than what is kept');
      await clickhouse.client.command({ query: 'drop table observations_v72' });
      assert.equal(await old.lost(), true);
    },
  );
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Pool } from 'pg';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { analyticsStore, dropTables, ensureTables } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { readEngaged } from '#projections/analytics/read-posts.ts';
import type { AnalyticsReader, Board, SortMetric } from '#projections/analytics/rollup.ts';
import type { AnalyticsStore } from '#projections/analytics/store.ts';
import { columnOf, createStatements, type TableName, tableOf } from '#projections/analytics/tables.ts';
import { daysOf, noTotals } from '#projections/analytics/totals.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import { embeddedClickHouse, type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { afterFile, suite } from '#test/support/suite.ts';

const workspace = randomUUID();
const other = randomUUID();
const [client, account, post, target] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];

const at = (day: string, time = '08:00:00.000'): string => `${day} ${time}`;
const bitsOf = (...names: CounterName[]): number => names.reduce((bits, name) => bits + 2 ** counters.indexOf(name), 0);

/** Rows of one table, in the columns' own names; what is not named is null or the type's default. */
const writer =
  ({ client: to }: TestClickHouse) =>
  (table: TableName, ...values: readonly Readonly<Record<string, unknown>>[]) =>
    to.insert({ table: tableOf(table, 1), values: [...values], format: 'JSONEachRow' });

suite('queries of the analytics', (t) => {
  let house: TestClickHouse;
  let store: AnalyticsStore;
  let reader: AnalyticsReader;
  let write: ReturnType<typeof writer>;
  t.before(async () => {
    house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
    store = { client: house.client, version: async () => 1 };
    reader = analyticsReader(store);
    write = writer(house);
  });

  const week = { from: '2026-05-01', to: '2026-05-07' };

  t('overview: gains by day and platform of the newest version; absent, null and 0 stay apart', async () => {
    const day = (date: string, platform: string, version: number, more: object) => ({
      workspace_id: workspace,
      day: date,
      platform,
      targets: 1,
      observed_at: at(date),
      version,
      ...more,
    });
    // Separate inserts: nothing has merged them yet.
    const all = 2 ** counters.length - 1;
    await write('workspace_days', day('2026-05-01', 'x', 1, { impressions: 999, likes: 999, fetched: all }));
    await write(
      'workspace_days',
      day('2026-05-01', 'x', 2, {
        impressions: 100,
        likes: 5,
        saves: 0,
        rated_interactions: 5,
        rated_impressions: 100,
        fetched: bitsOf('impressions', 'likes', 'saves', 'comments'),
      }),
      day('2026-05-01', 'youtube', 3, {
        ...{ likes: 2, watch_time_minutes: 40 },
        fetched: bitsOf('likes', 'watchTimeMinutes', 'subscribersLost', 'reach'),
      }),
      day('2026-05-03', 'x', 4, {
        ...{ impressions: -10, likes: 1, rated_interactions: 1, rated_impressions: -10 },
        fetched: bitsOf('impressions', 'likes'),
      }),
      day('2026-04-30', 'x', 5, { impressions: 7, fetched: all }),
      day('2026-05-08', 'x', 6, { impressions: 7, fetched: all }),
      { ...day('2026-05-02', 'x', 7, { impressions: 70_000 }), workspace_id: other },
    );
    const found = await reader.overview(workspace, week, {});
    assert.equal(found.asOf, '2026-05-03T08:00:00.000Z');
    assert.deepEqual(found.totals, {
      ...{ followerCount: null, comments: null, reach: null, subscribersLost: null },
      impressions: 90,
      likes: 8,
      saves: 0,
      watchTimeMinutes: 40,
      engagementRate: 6 / 90,
    });
    assert.deepEqual(
      found.series.map(({ day: date, impressions, likes }) => [date, impressions, likes]),
      [
        ['2026-05-01', 100, 7],
        ['2026-05-02', undefined, undefined],
        ['2026-05-03', -10, 1],
        ...['2026-05-04', '2026-05-05', '2026-05-06', '2026-05-07'].map((date) => [date, undefined, undefined]),
      ],
    );
    const own = { followerCount: null, provisional: false };
    assert.deepEqual(found.series.slice(1, 3), [
      { day: '2026-05-02', engagementRate: null, ...own },
      { day: '2026-05-03', impressions: -10, likes: 1, engagementRate: null, ...own },
    ]);
    // A correction downwards makes no rate.
    assert.deepEqual([found.series[0]?.engagementRate, found.series[2]?.engagementRate], [0.05, null]);
    const youtube = { likes: 2, watchTimeMinutes: 40, subscribersLost: null, reach: null };
    assert.deepEqual(found.byPlatform, [
      {
        ...{ platform: 'x', impressions: 90, likes: 6, saves: 0, comments: null },
        ...{ engagementRate: 6 / 90, followerCount: null },
      },
      { platform: 'youtube', ...youtube, engagementRate: null, followerCount: null },
    ]);
    const one = await reader.overview(workspace, week, { platforms: ['youtube'] });
    assert.deepEqual(one.totals, { ...youtube, engagementRate: null, followerCount: null });
    assert.equal(one.asOf, '2026-05-01T08:00:00.000Z');
  });

  t('a window without observations and another workspace have no figures on any day', async () => {
    assert.deepEqual(noTotals, { engagementRate: null });
    const none = { asOf: null, totals: noTotals, byPlatform: [] };
    const empty = { from: '2020-02-28', to: '2020-03-01' };
    const series = ['2020-02-28', '2020-02-29', '2020-03-01'].map((day) => ({ day, ...noTotals, provisional: false }));
    const days = series.map((day) => ({ ...day, followerCount: null }));
    const totals = { ...noTotals, followerCount: null };
    const nothing = { ...none, totals, series: days, accounts: new Map(), previous: null };
    assert.deepEqual(await reader.overview(workspace, empty, {}), nothing);
    assert.deepEqual(await reader.client(workspace, randomUUID(), empty, {}), nothing);
    const found = await reader.account(randomUUID(), account, empty);
    assert.deepEqual(found.totals, { ...noTotals, followerCount: null });
    assert.equal(found.demographics, undefined);
    assert.deepEqual(found.audience, {});
  });

  t('a day is provisional while a look at one of its posts may change it, as is each day after it', async () => {
    const mine = randomUUID();
    const row = { workspace_id: mine, client_id: client, account_id: account, platform: 'x', targets: 1, version: 1 };
    const soon = new Date(Date.now() + 3_600_000).toISOString().slice(0, 23).replace('T', ' ');
    for (const table of ['workspace_days', 'client_days', 'account_days'] as const) {
      await write(
        table,
        { ...row, day: '2026-05-02', observed_at: at('2026-05-02'), open_until: at('2026-05-03', '20:00:00.000') },
        { ...row, day: '2026-05-04', observed_at: at('2026-05-04'), open_until: soon },
        { ...row, day: '2026-05-05', observed_at: at('2026-05-05') },
      );
    }
    const wanted = [false, false, false, true, true, true, true];
    const all = await Promise.all([
      reader.overview(mine, week, {}),
      reader.client(mine, client, week, {}),
      reader.account(mine, account, week),
    ]);
    for (const { series } of all)
      assert.deepEqual(
        series.map((day) => day.provisional),
        wanted,
      );
    const before = { from: '2026-05-01', to: '2026-05-03' };
    assert.deepEqual(
      (await reader.overview(mine, before, {})).series.map((day) => day.provisional),
      [false, false, false],
    );
    // The same day says the same of itself in a window that leaves out the day whose look it waits for.
    for (const window of [
      { from: '2026-05-05', to: '2026-05-06' },
      { from: '2026-05-06', to: '2026-05-06' },
    ]) {
      const found = await reader.overview(mine, window, {}, { networks: true, previous: before });
      assert.ok(
        found.series.every(({ provisional }) => provisional),
        window.from,
      );
      assert.ok(
        found.previous?.series.every(({ provisional }) => !provisional),
        window.from,
      );
      const { series } = await reader.account(mine, account, window);
      assert.ok(
        series.every(({ provisional }) => provisional),
        window.from,
      );
    }
    assert.equal(
      (await reader.overview(mine, { from: '2026-05-03', to: '2026-05-03' }, {})).series[0]?.provisional,
      false,
    );
  });

  t('a filter by client reads the client’s grain, one by account the account’s', async () => {
    const row = { workspace_id: workspace, client_id: client, day: '2026-05-02', platform: 'x', targets: 1 };
    const seen = { observed_at: at('2026-05-02'), version: 1 };
    await write('client_days', { ...row, ...seen, likes: 30 }, { ...row, ...seen, workspace_id: other, likes: 1_000 });
    await write('client_days', { ...row, ...seen, platform: 'threads', likes: 4 });
    await write(
      'account_days',
      { ...row, ...seen, account_id: account, likes: 11 },
      { ...row, ...seen, account_id: randomUUID(), likes: 19 },
    );
    assert.equal((await reader.client(workspace, client, week, {})).totals.likes, 34);
    assert.equal((await reader.client(workspace, client, week, { platforms: ['threads'] })).totals.likes, 4);
    assert.equal((await reader.overview(workspace, week, { clientId: client })).totals.likes, 34);
    const filters = { clientId: client, socialAccountId: account };
    assert.equal((await reader.overview(workspace, week, filters)).totals.likes, 11);
    assert.equal((await reader.client(workspace, client, week, { socialAccountId: account })).totals.likes, 11);
    const elsewhere = { ...filters, clientId: randomUUID() };
    assert.equal((await reader.overview(workspace, week, elsewhere)).totals.likes, undefined);
    const onFacebook = { ...filters, platforms: ['facebook'] as const };
    assert.equal((await reader.overview(workspace, week, onFacebook)).totals.likes, undefined);
    assert.equal((await reader.client(other, client, week, {})).totals.likes, 1_000);
  });

  t('account: followers by day, sums of daily figures, the newest demographics up to the end', async () => {
    const row = { workspace_id: workspace, account_id: account, client_id: client, platform: 'instagram' };
    const own = (day: string, version: number, figures: object, demographics: string) => ({
      ...row,
      day,
      follower_count: (figures as { followerCount?: number }).followerCount ?? null,
      demographics,
      observed_at: at(day, '09:30:00.125'),
      version,
    });
    await write('account_figures_days', own('2026-05-01', 1, { followerCount: 1 }, ''));
    await write(
      'account_figures_days',
      own('2026-05-01', 2, { followerCount: 100 }, ''),
      own('2026-05-03', 3, { followerCount: 104 }, ''),
      own('2026-05-05', 4, { followerCount: null }, ''),
      own('2026-04-20', 5, { followerCount: 50 }, '{"country":{"DE":60,"FR":40}}'),
      own('2026-05-09', 6, { followerCount: 900 }, '{"country":{"DE":1}}'),
      { ...own('2026-05-04', 7, { followerCount: 7 }, 'null'), workspace_id: other },
    );
    // Each told the day after.
    const ofDay = (day: string, version: number, figures: object) => {
      const observed_at = `2026-05-${String(Number(day.slice(8)) + 1).padStart(2, '0')} 09:30:00.000`;
      return { ...row, day, figures: JSON.stringify(figures), observed_at, version };
    };
    await write('account_audience_days', ofDay('2026-05-01', 1, { profileViews: 90 }));
    await write(
      'account_audience_days',
      ofDay('2026-05-01', 2, { followerCount: 100, profileViews: 9, videoViews: null, contentPlays: 0 }),
      ofDay('2026-05-03', 3, { followerCount: 104, profileViews: 4, videoViews: null }),
      ofDay('2026-05-05', 4, { profileViews: null }),
      ofDay('2026-04-30', 5, { profileViews: 5_000 }),
      ofDay('2026-05-08', 6, { profileViews: 7_000 }),
      { ...ofDay('2026-05-04', 7, { profileViews: 70 }), workspace_id: other },
    );
    const found = await reader.account(workspace, account, week);
    assert.equal(found.asOf, '2026-05-05T09:30:00.125Z');
    assert.equal(found.totals.followerCount, 104);
    assert.equal(found.totals.likes, 11);
    assert.deepEqual(
      found.series.map(({ followerCount, likes }) => [followerCount, likes]),
      [
        [100, undefined],
        [null, 11],
        [104, undefined],
        [null, undefined],
        [null, undefined],
        [null, undefined],
        [null, undefined],
      ],
    );
    assert.deepEqual(found.audience, { profileViews: 13, videoViews: null, contentPlays: 0 });
    assert.deepEqual(found.demographics, { country: { DE: 60, FR: 40 } });
    const theirs = await reader.account(other, account, week);
    assert.equal(theirs.demographics, null);
    assert.equal(theirs.totals.followerCount, 7);
  });

  t('accounts engaged: the network’s figure for one day, null for several days', async () => {
    const [mine, engaged] = [randomUUID(), randomUUID()];
    const ofDay = (day: string, figures: object) => ({
      ...{ workspace_id: mine, account_id: engaged, client_id: client, platform: 'instagram', day, version: 1 },
      ...{ figures: JSON.stringify(figures), observed_at: at(day) },
    });
    await write(
      'account_audience_days',
      ofDay('2026-05-01', { accountsEngaged: 150, profileViews: 7 }),
      ofDay('2026-05-02', { accountsEngaged: 160, profileViews: 2 }),
      ofDay('2026-05-03', { accountsEngaged: null }),
    );
    const audienceOf = async (from: string, to: string) =>
      (await reader.account(mine, engaged, { from: `2026-05-${from}`, to: `2026-05-${to}` })).audience;
    assert.deepEqual(await audienceOf('01', '02'), { accountsEngaged: null, profileViews: 9 });
    assert.deepEqual(await audienceOf('02', '02'), { accountsEngaged: 160, profileViews: 2 });
    assert.deepEqual(await audienceOf('03', '03'), { accountsEngaged: null });
    // Of a longer window one told day is not all of it.
    assert.deepEqual(await audienceOf('02', '07'), { accountsEngaged: null, profileViews: 2 });
    assert.deepEqual(await audienceOf('04', '04'), {});
  });

  t('a comparison window has the figures of its own days; days are also split by network', async () => {
    const mine = randomUUID();
    const likes = (day: string, platform: string, n: number, more: object = {}) => ({
      ...{ workspace_id: mine, day, platform, targets: 1, observed_at: at(day), version: 1, likes: n, ...more },
    });
    await write(
      'workspace_days',
      ...[likes('2026-05-01', 'x', 1), likes('2026-05-04', 'x', 2), likes('2026-05-04', 'youtube', 4)],
      ...[likes('2026-05-05', 'youtube', 8), likes('2026-05-07', 'x', 16, { open_until: at('2100-01-01') })],
      ...[likes('2026-05-08', 'youtube', 32), likes('2026-05-12', 'x', 64)],
    );
    const window = { from: '2026-05-07', to: '2026-05-09' };
    const likesOf = (board: Board | null) => ({
      all: board?.totals.likes,
      networks: board?.byPlatform.map(({ platform, likes: n }) => `${platform} ${n}`),
      days: board?.series.map(({ day, likes: n }) => `${day.slice(8)} ${n}`),
    });
    const now = { all: 48, networks: ['x 16', 'youtube 32'], days: ['07 16', '08 32', '09 undefined'] };
    const alone = await reader.overview(mine, window, {});
    assert.deepEqual([likesOf(alone), alone.previous], [now, null]);
    const touching = await reader.overview(mine, window, {}, { previous: { from: '2026-05-04', to: '2026-05-06' } });
    assert.deepEqual(likesOf(touching), now);
    const before = { all: 14, networks: ['x 2', 'youtube 12'], days: ['04 6', '05 8', '06 undefined'] };
    assert.deepEqual([likesOf(touching.previous), touching.previous?.asOf], [before, '2026-05-05T08:00:00.000Z']);
    // A week before, weekday by weekday: the days in between are of neither.
    const apart = await reader.overview(mine, window, {}, { previous: { from: '2026-04-30', to: '2026-05-02' } });
    assert.deepEqual(likesOf(apart), now);
    assert.deepEqual(likesOf(apart.previous), {
      all: 1,
      networks: ['x 1'],
      days: ['30 undefined', '01 1', '02 undefined'],
    });

    assert.ok(alone.byPlatform.every((one) => !('series' in one)));
    const { byPlatform } = await reader.overview(mine, window, {}, { networks: true });
    assert.deepEqual(
      byPlatform.map(({ series }) => series?.map(({ likes: n, provisional }) => [n, provisional])),
      [
        [
          [16, true],
          [undefined, true],
          [undefined, true],
        ],
        [
          [undefined, false],
          [32, false],
          [undefined, false],
        ],
      ],
    );
  });

  t('followers of many accounts: the last value of each counts until its next, by network and day', async () => {
    const [mine, first, second, third] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const [owner, elsewhere] = [randomUUID(), randomUUID()];
    const look = (account_id: string, day: string, follower_count: number | null, more: object = {}) => ({
      ...{ workspace_id: mine, account_id, client_id: owner, platform: 'x', day, follower_count, demographics: '' },
      ...{ observed_at: at(day, '03:00:00.000'), version: 1, ...more },
    });
    await write('account_figures_days', look(first, '2026-05-01', 7_777));
    await write(
      'account_figures_days',
      ...[look(first, '2026-05-01', 100, { version: 2 }), look(first, '2026-05-03', 90)],
      // Not told on the 3rd: as before.
      ...[look(second, '2026-05-02', 10), look(second, '2026-05-03', null), look(second, '2026-05-04', 12)],
      look(third, '2026-05-03', 0, { platform: 'threads', client_id: elsewhere }),
      // Days before the window are not of it, and those after it neither.
      ...[look(first, '2026-04-28', 50), look(second, '2026-05-08', 1_000)],
      look(third, '2026-04-30', 5, { platform: 'threads' }),
      look(first, '2026-05-02', 1_000_000, { workspace_id: other }),
    );
    const followersOf = (board: Board | null) => board?.series.map(({ followerCount }) => followerCount);
    const found = await reader.overview(mine, week, {}, { networks: true });
    assert.deepEqual(followersOf(found), [100, 110, 100, 102, 102, 102, 102]);
    assert.equal(found.totals.followerCount, 102);
    assert.deepEqual(
      found.byPlatform.map(({ platform, followerCount, likes }) => [platform, followerCount, likes]),
      [
        ['threads', 0, undefined],
        ['x', 102, undefined],
      ],
    );
    const [threads] = found.byPlatform;
    assert.deepEqual(
      threads?.series?.map(({ followerCount }) => followerCount),
      [null, null, 0, 0, 0, 0, 0],
    );
    assert.deepEqual(
      found.accounts,
      new Map([
        [first, '2026-05-03T03:00:00.000Z'],
        [second, '2026-05-04T03:00:00.000Z'],
        [third, '2026-05-03T03:00:00.000Z'],
      ]),
    );
    assert.equal(found.asOf, '2026-05-04T03:00:00.000Z');
    const ofClient = await reader.client(mine, elsewhere, week, {});
    assert.deepEqual([ofClient.totals.followerCount, [...ofClient.accounts.keys()]], [0, [third]]);
    const ofAccount = await reader.overview(mine, week, { socialAccountId: first });
    assert.deepEqual([ofAccount.totals.followerCount, ofAccount.accounts.size], [90, 1]);
    assert.equal((await reader.overview(mine, week, { platforms: ['threads'] })).totals.followerCount, 0);
    // The window before has its own last snapshots, and lends none to the window.
    const previous = { from: '2026-04-24', to: '2026-04-30' };
    const compared = await reader.overview(mine, { from: '2026-05-02', to: '2026-05-04' }, {}, { previous });
    assert.deepEqual(followersOf(compared), [10, 100, 102]);
    assert.deepEqual(followersOf(compared.previous), [null, null, null, null, 50, 50, 55]);
    assert.deepEqual(
      compared.previous?.byPlatform.map(({ platform, followerCount }) => [platform, followerCount]),
      [
        ['threads', 5],
        ['x', 50],
      ],
    );
    assert.equal(compared.previous?.accounts.get(first), '2026-04-28T03:00:00.000Z');
  });

  t('posts: lifetime figures of the newest day up to the end; absent, null and 0 stay apart', async () => {
    const row = { workspace_id: workspace, post_id: post, target_id: target, client_id: client, account_id: account };
    const on = (day: string, version: number, more: object) => ({
      ...row,
      platform: 'facebook',
      published_at: at('2026-05-01', '07:00:00.000'),
      day,
      observed_at: at(day),
      version,
      more: '{}',
      ...more,
    });
    const fetched = bitsOf('impressions', 'likes', 'saves', 'subscribersLost');
    await write('post_days', on('2026-05-02', 1, { fetched, impressions: 1, likes: 1 }));
    await write('post_days', on('2026-05-02', 2, { fetched, impressions: 200, likes: 10, subscribers_lost: 0 }));
    await write(
      'post_days',
      on('2026-05-04', 3, {
        fetched: bitsOf('impressions', 'likes'),
        impressions: 300,
        likes: 9,
        removed_at: at('2026-05-04', '05:00:00.000'),
        more: '{"permalink":null,"reactionsByType":{"like":9,"love":0}}',
      }),
    );
    const went = (id: string) => ({ id, first: '2026-05-01T07:00:00.000Z', last: '2026-05-01T07:00:00.000Z' });
    const early = await reader.posts(workspace, [went(post), went(randomUUID())], '2026-05-03');
    assert.deepEqual(early, [
      {
        postId: post,
        targetId: target,
        platform: 'facebook',
        figures: { impressions: 200, likes: 10, saves: null, subscribersLost: 0, platformRemovedAt: null },
        engagementRate: 0.05,
        fetchedAt: '2026-05-02T08:00:00.000Z',
        day: '2026-05-02',
      },
    ]);
    const [late] = await reader.posts(workspace, [went(post)], '2026-05-31');
    assert.deepEqual(late?.figures, {
      impressions: 300,
      likes: 9,
      permalink: null,
      reactionsByType: { like: 9, love: 0 },
      platformRemovedAt: '2026-05-04T05:00:00.000Z',
    });
    assert.deepEqual(await reader.posts(workspace, [went(post)], '2026-05-01'), []);
    assert.deepEqual(await reader.posts(other, [went(post)], '2026-05-31'), []);
    assert.deepEqual(await reader.posts(workspace, [], '2026-05-31'), []);
  });

  t('posts sorted by a figure of their newest look, in pages without gap or repeat', async () => {
    const mine = randomUUID();
    const posts: readonly string[] = Array.from({ length: 6 }, () => randomUUID());
    const look = (n: number, day: string, more: object) => ({
      ...{ workspace_id: mine, post_id: posts[n], target_id: posts[n], client_id: client, account_id: account },
      ...{ platform: 'threads', published_at: at('2026-05-01', '07:00:00.000'), day, observed_at: at(day), version: 1 },
      ...{ more: '{}', fetched: 2 ** counters.length - 1, ...more },
    });
    await write('post_days', look(0, '2026-05-02', { likes: 1_000, version: 1 }));
    await write(
      'post_days',
      ...[look(0, '2026-05-02', { likes: 10, version: 2 }), look(0, '2026-05-03', { likes: 7, impressions: 10 })],
      // Of its two targets the sum; what one does not tell is no zero.
      look(1, '2026-05-03', { likes: 5, impressions: 20, comments: null }),
      look(1, '2026-05-03', { target_id: randomUUID(), likes: 3, platform: 'x', account_id: randomUUID() }),
      // Ties, and a figure beyond what a double holds.
      ...[look(2, '2026-05-03', { likes: 7 }), look(3, '2026-05-03', { likes: '9007199254740993' })],
      // Told once, and not any more: the newest look counts, and it does not tell.
      ...[look(4, '2026-05-02', { likes: 99 }), look(4, '2026-05-03', { likes: null, shares: 1 })],
      look(5, '2026-05-03', { likes: 500, published_at: at('2026-04-01') }),
      look(5, '2026-05-03', { likes: 900, workspace_id: other }),
    );
    const asked = {
      ...{ since: '2026-05-01T00:00:00.000Z', to: '2026-05-31', seenBy: '2026-06-01T00:00:00.000Z', filters: {} },
    };
    const all = { after: null, limit: 10 };
    const orderOf = async (more: object, sort: SortMetric = 'likes') =>
      (await reader.ranked(mine, { ...asked, ...more }, sort, all)).map(({ id, value }) => [posts.indexOf(id), value]);
    const tied = [[0, '7'] as const, [2, '7'] as const].sort(([a], [b]) =>
      (posts[a] ?? '') > (posts[b] ?? '') ? -1 : 1,
    );
    assert.deepEqual(await orderOf({}), [[3, '9007199254740993'], [1, '8'], ...tied]);
    const before = await orderOf({ seenBy: '2026-05-02T23:00:00.000Z' });
    assert.deepEqual(before, [
      [4, '99'],
      [0, '10'],
    ]);
    assert.deepEqual(await orderOf({ to: '2026-05-02' }), before);
    assert.deepEqual(await orderOf({ filters: { platforms: ['x'] } }), [[1, '3']]);
    assert.deepEqual(await orderOf({ filters: { socialAccountId: account, clientId: client } }), [
      [3, '9007199254740993'],
      ...tied,
      [1, '5'],
    ]);
    assert.deepEqual(await orderOf({ posts: [posts[1], posts[4]] }), [[1, '8']]);
    assert.deepEqual(await orderOf({ filters: { clientId: randomUUID() } }), []);
    // 17 of 30 would be the rate of all that is told; of the target without impressions nothing is in it.
    assert.deepEqual(await orderOf({}, 'engagementRate'), [
      [0, '0.7'],
      [1, '0.25'],
    ]);
    // For reports: of what went out in the window, with what it got.
    const may = { from: '2026-05-01', to: '2026-05-31' };
    const top = await reader.top(mine, may, 'Europe/Berlin', {}, 2);
    assert.deepEqual(top, [
      {
        ...{ postId: posts[3], publishedAt: '2026-05-01T07:00:00.000Z', platforms: ['threads'] },
        ...{ impressions: null, interactions: 9007199254740992, engagementRate: null },
      },
      {
        ...{ postId: posts[1], publishedAt: '2026-05-01T07:00:00.000Z', platforms: ['threads', 'x'] },
        ...{ impressions: 20, interactions: 8, engagementRate: 0.25 },
      },
    ]);
    assert.equal((await reader.top(mine, may, 'UTC', {}, 10)).length, 5);
    assert.deepEqual(await reader.top(mine, { from: '2026-05-02', to: '2026-05-31' }, 'UTC', {}, 10), []);
    assert.deepEqual(await reader.top(mine, { from: '2026-04-01', to: '2026-04-30' }, 'UTC', {}, 10), []);
    for (const sort of ['likes', 'engagementRate'] as const) {
      const whole = await reader.ranked(mine, asked, sort, all);
      const walked: unknown[] = [];
      for (let after = null as (typeof whole)[number] | null; ; ) {
        const [next] = await reader.ranked(mine, asked, sort, { after, limit: 1 });
        if (next === undefined) break;
        walked.push(next);
        after = next;
      }
      assert.deepEqual(walked, whole, sort);
    }
  });

  t('best times read the last look at each post up to an age, within a range of time', async () => {
    const mine = randomUUID();
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    const on = (targetId: string, day: string, published: string, more: object) => ({
      workspace_id: mine,
      post_id: targetId,
      target_id: targetId,
      client_id: client,
      account_id: account,
      platform: 'threads',
      published_at: published,
      day,
      observed_at: at(day),
      version: 1,
      more: '{}',
      ...more,
    });
    const early = at('2026-05-01', '06:15:00.000');
    await write(
      'post_days',
      on(first, '2026-05-01', early, { likes: 1 }),
      on(first, '2026-05-07', early, { likes: 8, comments: 2, impressions: 90 }),
      // The look at the age of seven days counts, one of a millisecond later does not.
      on(second, '2026-05-08', early, { observed_at: at('2026-05-08', '06:15:00.000'), likes: 5 }),
      on(second, '2026-05-09', early, { likes: 500 }),
      on(third, '2026-05-08', early, { observed_at: at('2026-05-08', '06:15:00.001'), likes: 500 }),
      on(first, '2026-05-30', early, { likes: 800 }),
      on(randomUUID(), '2026-03-05', at('2026-03-01', '20:00:00.000'), { likes: 3 }),
      on(randomUUID(), '2026-05-21', at('2026-05-20', '00:00:00.001'), { likes: 3 }),
    );
    const range = { since: '2026-05-01T00:00:00.000Z', until: '2026-05-20T00:00:00.000Z', ageMs: 7 * 86_400_000 };
    const of = (targetId: string, observedAt: string, interactions: number) => ({
      ...{ postId: targetId, targetId, accountId: account, platform: 'threads' },
      ...{ publishedAt: '2026-05-01T06:15:00.000Z', observedAt, interactions },
    });
    const wanted = [of(first, '2026-05-07T08:00:00.000Z', 10), of(second, '2026-05-08T06:15:00.000Z', 5)];
    const read = async (workspace: string, filters: Parameters<typeof readEngaged>[3]) =>
      (await readEngaged(store, workspace, range, filters)).toSorted(
        (a, b) => (b.interactions ?? 0) - (a.interactions ?? 0),
      );
    assert.deepEqual(await read(mine, {}), wanted);
    assert.deepEqual(await read(mine, { clientId: client, platforms: ['threads'] }), wanted);
    assert.deepEqual(await read(mine, { clientId: randomUUID() }), []);
    assert.deepEqual(await read(mine, { platforms: ['x'] }), []);
    assert.deepEqual(await read(randomUUID(), {}), []);
  });

  t('every counter is read from its own column, up to the largest integer', async () => {
    const mine = randomUUID();
    const columns = Object.fromEntries(counters.map((name, place) => [columnOf(name), 1_000 + place]));
    const row = { workspace_id: mine, day: '2026-05-01', platform: 'x', targets: 1, observed_at: at('2026-05-01') };
    await write('workspace_days', {
      ...{ ...row, version: 1, ...columns },
      ...{ likes: String(Number.MAX_SAFE_INTEGER), fetched: 2 ** counters.length - 1 },
    });
    const { totals, byPlatform, series } = await reader.overview(mine, week, {});
    for (const [place, name] of counters.entries()) {
      // People are counted once for each post, and who saw two posts is one of a window: no network tells how many.
      const reported = name === 'reach' ? null : name === 'likes' ? Number.MAX_SAFE_INTEGER : 1_000 + place;
      for (const figures of [totals, byPlatform[0], series[0]]) assert.equal(figures?.[name], reported, name);
    }
    const targetId = randomUUID();
    const fetched = counters.reduce((bits, _name, bit) => bits + 2 ** bit, 0);
    await write('post_days', {
      ...{ workspace_id: mine, post_id: targetId, target_id: targetId, client_id: client, account_id: account },
      ...{ day: '2026-05-01', platform: 'instagram', published_at: at('2026-05-01'), observed_at: at('2026-05-01') },
      ...{ version: 1, more: '{}', fetched, ...columns },
    });
    const out = '2026-05-01T08:00:00.000Z';
    const [found] = await reader.posts(mine, [{ id: targetId, first: out, last: out }], '2026-05-01');
    const figures: Readonly<Record<string, unknown>> = found?.figures ?? {};
    for (const [place, name] of counters.entries()) assert.equal(figures[name], 1_000 + place, name);
  });

  t('a store without tables is unavailable; a window has each of its days once', async () => {
    const nowhere = analyticsReader({ ...store, version: async () => 2 });
    await assert.rejects(nowhere.overview(workspace, week, {}), Unavailable);
    const year = daysOf({ from: '2026-01-01', to: '2026-12-31' });
    assert.deepEqual([year.length, year[58], year[59]], [365, '2026-02-28', '2026-03-01']);
  });

  t('a hanging store times out, also while tables are made and in the middle of an answer', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    const client = openAnalytics({ url: embedded.url });
    const half = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n["2026'));
    });
    half.listen(0, '127.0.0.1');
    await once(half, 'listening');
    const { port } = half.address() as AddressInfo;
    const halfway = openAnalytics({ url: `http://postline:x@127.0.0.1:${port}/postline` });
    afterFile(async () => {
      await Promise.all([client.close(), halfway.close()]);
      half.close();
      await remove();
    });
    await ensureTables(client, 1);
    const pid = embedded.pid();
    assert.ok(pid !== null);
    process.kill(pid, 'SIGSTOP');
    try {
      const began = performance.now();
      const asked = [
        ensureTables(client, 2),
        analyticsReader({ client, version: async () => 1 }).overview(workspace, week, {}),
        analyticsReader({ client, version: () => ensureTables(client, 3).then(() => 3) }).overview(workspace, week, {}),
        analyticsReader({ client, version: () => new Promise(() => undefined) }).overview(workspace, week, {}),
        analyticsReader({ client: halfway, version: async () => 1 }).overview(workspace, week, {}),
      ];
      await Promise.all(asked.map((one) => assert.rejects(one, Unavailable)));
      assert.ok(performance.now() - began < 20_000);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const again = await analyticsReader({ client, version: async () => 1 }).overview(workspace, week, {});
    assert.deepEqual(again.totals, { ...noTotals, followerCount: null });
  });

  t('a reader whose version was dropped reads the live version and tries again', async () => {
    const [{ client }, { url }] = await Promise.all([testClickHouse(), preparedDatabase()]);
    const pool = new Pool({ connectionString: url, max: 2 });
    pool.on('error', () => undefined);
    afterFile(() => pool.end());
    const live = analyticsReader(analyticsStore(client, pool));
    const likesOf = async () => (await live.overview(workspace, week, {})).totals.likes;
    await ensureTables(client, 2);
    await client.insert({
      table: tableOf('workspace_days', 2),
      values: [
        {
          workspace_id: workspace,
          day: '2026-05-01',
          platform: 'x',
          targets: 1,
          observed_at: at('2026-05-01'),
          version: 1,
          likes: 3,
        },
      ],
      format: 'JSONEachRow',
    });
    assert.equal(await likesOf(), undefined);
    await pool.query('update ops.analytics_versions set live = 2, newest = 2');
    await dropTables(client, 1);
    assert.deepEqual(await Promise.all([1, 2, 3, 4].map(likesOf)), [3, 3, 3, 3]);
    await client.command({ query: `drop table ${tableOf('workspace_days', 2)}` });
    await assert.rejects(likesOf(), Unavailable);
  });
});

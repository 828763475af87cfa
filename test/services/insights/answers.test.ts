import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  AccountInsightsAnswer,
  InsightsSource,
  PostInsightsAnswer,
  ReportedProfile,
} from '#contracts/ports/platform-insights.ts';
import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { nextMidnight } from '#services/insights/schedule.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { counted, MetricsWorld, type Started } from './world.ts';

const minute = 60_000;
const hour = 60 * minute;

const insights = (values: Readonly<Record<string, number>>) => ({
  data: Object.entries(values).map(([name, value]) => ({ name, values: [{ value }] })),
});

type OfPosts = (
  externalIds: readonly string[],
) => readonly PostInsightsAnswer[] | Promise<readonly PostInsightsAnswer[]>;

/** Networks that answer otherwise than the sandbox does, an account each. */
suite('answers of a network', { timeoutMs: 240_000 }, (t) => {
  let world: MetricsWorld;
  let observer: Started;
  const posts = new Map<string, OfPosts>();
  const accounts = new Map<string, () => AccountInsightsAnswer | Promise<AccountInsightsAnswer>>();
  const asked = new Map<string, number>();
  /** Accounts whose calls break when all that is given was told. */
  const breaking = new Set<string>();

  t.before(async () => {
    world = await MetricsWorld.open('America/New_York');
    const { sandbox } = world.posts;
    const source: InsightsSource = {
      insightsVersion: 'other/1',
      minIntervalMs: 0,
      maxAheadMs: hour,
      async *fetchPostInsights(platform, account, all, signal) {
        asked.set(account.id, (asked.get(account.id) ?? 0) + 1);
        const reported = await posts.get(account.id)?.(all.map(({ externalId }) => externalId));
        yield* reported ?? sandbox.fetchPostInsights(platform, account, all, signal);
        if (breaking.has(account.id)) throw new Error('the connection was reset');
      },
      fetchAccountInsights: async (platform, account, signal) =>
        (await accounts.get(account.id)?.()) ?? (await sandbox.fetchAccountInsights(platform, account, signal)),
    };
    const billed = { ...source, nightAgesMs: [24 * hour, 5 * 24 * hour] };
    observer = world.start({ sourceOf: (_, platform) => (platform === 'x' ? billed : source) });
  });
  t.after(() => world.close());

  t('a post whose reads are billed is asked for at its ages alone, from the first answer on', async () => {
    const one = await world.account('x');
    const [post = ''] = await world.published([one]);
    await world.received([post]);
    posts.set(one.id, (all) => all.map(() => reported(3)));
    const sql = `update ops.insights_jobs set use = 'feed', has_video = false,
      published_at = date_trunc('milliseconds', now()) - interval '50 hours' where id = $1 returning published_at as at`;
    const { rows } = await world.posts.pool.query<{ at: Date }>(sql, [post]);
    await world.due(post);
    await world.tried(post);
    const age = (rows[0]?.at.getTime() ?? 0) + 5 * 24 * hour;
    equal((await world.job(post))?.dueAt.getTime(), nextMidnight(age, 'America/New_York', one.id));
  });

  t('an answer that did not change is stored once, and the final figures have it whole', async () => {
    const one = await world.account('x');
    const [post = ''] = await world.published([one]);
    await world.received([post]);
    const sql = `update ops.insights_jobs set use = 'feed', has_video = false,
      published_at = date_trunc('milliseconds', now()) - interval '50 hours' where id = $1`;
    await world.posts.pool.query(sql, [post]);
    const look = async (answer: PostInsightsAnswer) => {
      posts.set(one.id, (all) => all.map(() => answer));
      await world.due(post);
      await world.tried(post);
    };
    const ago = (minutes: number) => new Date(Date.now() - minutes * minute).toISOString();
    for (const [at, likes] of [3, 3, 3, 4, 4].entries()) await look(reported(likes, ago(90 - at)));
    for (const minutes of [70, 0]) await look({ kind: 'removed', raw: null, observedAt: ago(minutes) });
    const events = await world.posts.store.readStream(`targetmetrics-${post}`);
    const shown = events.map(({ data }) => [(data.figures as { likes?: number }).likes, data.raw]);
    const raw = (likes: number) => ({ data: { public_metrics: { like_count: likes } } });
    deepEqual(shown, [
      [3, raw(3)],
      [3, null],
      [3, null],
      [4, raw(4)],
      [4, null],
      [4, raw(4)],
    ]);
    ok(events.at(-1)?.data.platformRemovedAt !== null);
    equal(new Set(events.map(({ data }) => data.observedAt)).size, 6, 'each look moves the time of the figures on');
  });

  t('an answer about an account that did not change is stored once, with its figures at each look', async () => {
    const one = await world.account('x');
    await world.received([one.id]);
    const raw = (followers: number) => ({ data: { public_metrics: { followers_count: followers } } });
    for (const [at, followers] of [7, 7, 8, 8].entries()) {
      const observedAt = new Date(Date.now() - (90 - at) * minute).toISOString();
      accounts.set(one.id, () => ({ kind: 'reported', raw: raw(followers), observedAt, figuresOf: null }));
      await world.due(one.id);
      await world.tried(one.id);
    }
    const events = await world.posts.store.readStream(`accountmetrics-${one.id}`);
    deepEqual(
      events.map(({ data }) => [(data.figures as { followerCount?: number }).followerCount, data.raw]),
      [
        [7, raw(7)],
        [7, null],
        [8, raw(8)],
        [8, null],
      ],
    );
  });

  const reported = (likes: number, observedAt = new Date().toISOString()): PostInsightsAnswer => ({
    kind: 'reported',
    raw: { data: { public_metrics: { like_count: likes } } },
    observedAt,
  });
  const externalIdOf = async (id: string): Promise<string> => {
    const state = await world.posts.target(id);
    return state.status === 'published' ? state.externalId : '';
  };
  const restOf = async (accountId: string) => {
    const sql = 'select not_before as at, limits from ops.insights_accounts where account_id = $1';
    const { rows } = await world.posts.pool.query<{ at: Date | null; limits: number }>(sql, [accountId]);
    return rows[0] ?? { at: null, limits: 0 };
  };

  t('a profile is cleaned, and one that a consent overtakes is left to the next look', async () => {
    const name = randomUUID();
    const one = await world.account('x', name);
    const state = async () => {
      const loaded = await world.posts.store.load(account, one.id);
      ok(loaded.state.status === 'connected');
      const { username, displayName, avatarUrl } = loaded.state;
      return [username, displayName, avatarUrl];
    };
    const shows = (profile: ReportedProfile, first: () => Promise<unknown> = async () => undefined) =>
      accounts.set(one.id, async () => {
        await first();
        return {
          kind: 'reported',
          raw: { data: { public_metrics: { followers_count: 3 } } },
          observedAt: new Date().toISOString(),
          figuresOf: null,
          profile,
        };
      });
    const looked = async () => {
      await world.due(one.id);
      await world.tried(one.id);
    };
    const good = 'https://cdn.example/a.png';
    await world.received([one.id]);
    shows({ username: 'a\u0000b', displayName: `${'x'.repeat(199)}\u{1f600}`, avatarUrl: good });
    await looked();
    deepEqual(await state(), ['ab', 'x'.repeat(199), good]);
    for (const avatarUrl of [
      'javascript:alert(1)',
      'http://cdn.example/a.png',
      'a.png',
      '',
      `${good}?${'x'.repeat(2_000)}`,
    ]) {
      shows({ username: '\u0000', displayName: '\ud800', avatarUrl });
      await looked();
      deepEqual(await state(), [null, '\ufffd', null], avatarUrl);
    }
    shows({ username: 'old', displayName: null, avatarUrl: null }, async () => {
      await world.posts.connect(one.clientId, 'x', name);
      accounts.delete(one.id);
    });
    await looked();
    const events = await world.posts.story(`account-${one.id}`);
    equal(events.at(-1), 'AccountReauthorized', events.join());
    // The network that says nothing of a profile changes none.
    accounts.set(one.id, () => ({
      kind: 'reported',
      raw: { data: { public_metrics: { followers_count: 3 } } },
      observedAt: new Date().toISOString(),
      figuresOf: null,
    }));
    await looked();
    equal((await world.posts.story(`account-${one.id}`)).length, events.length);
  });

  t('a story that disappears after its day has ended and counts as not removed', async () => {
    const one = await world.account('instagram');
    const [story = '', post = ''] = [...(await world.published([one])), ...(await world.published([one]))];
    await world.received([story, post]);
    posts.set(one.id, (all) => all.map(() => ({ kind: 'removed', raw: null, observedAt: new Date().toISOString() })));
    const sql = `update ops.insights_jobs set use = case id when $1 then 'story' else 'feed' end, has_video = false,
      published_at = now() - interval '25 hours' where id = any($2::uuid[])`;
    await world.posts.pool.query(sql, [story, [story, post]]);
    await world.due(story, post);
    await until('it has ended', async () => (await world.job(story)) === null);
    equal((await world.observed(story)).length, 0);
    ok(!(await world.posts.story(`target-${story}`)).includes('TargetRemovedOnPlatform'));
    ok((await world.job(post))?.goneAt instanceof Date, 'what is no story seems gone');
  });

  t('a story that disappears before its day is over counts as removed', async () => {
    const one = await world.account('instagram');
    const [story = ''] = await world.published([one]);
    await world.received([story]);
    posts.set(one.id, (all) => all.map(() => ({ kind: 'removed', raw: null, observedAt: new Date().toISOString() })));
    const sql = `update ops.insights_jobs set use = 'story', has_video = false, published_at = now() - interval '26 hours',
      gone_at = now() - interval '20 hours' where id = $1`;
    await world.posts.pool.query(sql, [story]);
    await world.due(story);
    await until('it is over', async () => (await world.job(story)) === null);
    ok((await world.posts.story(`target-${story}`)).includes('TargetRemovedOnPlatform'));
  });

  t(
    'a story is observed until its day is nearly over, other posts after each midnight of their workspace',
    async () => {
      const one = await world.account('instagram');
      const [story = '', post = ''] = [...(await world.published([one])), ...(await world.published([one]))];
      await world.received([story, post]);
      const aged = async (hours: number) => {
        const sql = `update ops.insights_jobs set use = case id when $1 then 'story' else 'feed' end, has_video = false,
        published_at = date_trunc('milliseconds', now()) - $3 * interval '1 hour' where id = any($2::uuid[])
        returning published_at as at`;
        const { rows } = await world.posts.pool.query<{ at: Date }>(sql, [story, [story, post], hours]);
        return rows[0]?.at.getTime() ?? 0;
      };
      posts.set(one.id, (all) =>
        all.map(() => ({ ...reported(1), raw: { insights: insights({ views: 1 }) } }) as PostInsightsAnswer),
      );
      // Another zone than that of the workspace, whose days the figures are of.
      const away = 'update ops.insights_accounts set timezone = $2 where account_id = $1';
      await world.posts.pool.query(away, [one.id, 'Asia/Kathmandu']);
      const publishedAt = await aged(22);
      const begun = Date.now();
      await world.due(story, post);
      await world.tried(story, post);
      equal((await world.job(story))?.dueAt.getTime(), publishedAt + 23 * hour);
      const next = [begun, Date.now()].map((now) => nextMidnight(now, 'America/New_York', one.id));
      const young = publishedAt + 24 * hour;
      const due = (await world.job(post))?.dueAt.getTime() ?? 0;
      ok(
        next.some((at) => Math.min(at, young) === due),
        `${new Date(due).toISOString()} is the next midnight`,
      );
      await aged(23.1);
      await world.due(story);
      await until('it is over', async () => (await world.job(story)) === null);
      equal((await world.observed(story)).length, 2);
    },
  );

  t('one post that the token cannot read leaves its account connected', async () => {
    const one = await world.account('x');
    const [well = '', ill = ''] = [...(await world.published([one])), ...(await world.published([one]))];
    await world.received([well, ill]);
    const external = await externalIdOf(ill);
    posts.set(one.id, (all) =>
      all.map((id) => (id === external ? { kind: 'reauth_required', reason: 'no' } : reported(1))),
    );
    await world.due(well, ill);
    await world.tried(well, ill);
    deepEqual(await world.posts.story(`account-${one.id}`), ['AccountConnected']);
    equal((await world.observed(well)).length, 1);
    equal((await world.job(ill))?.failures, 1);
    posts.set(one.id, (all) => all.map(() => ({ kind: 'reauth_required', reason: 'dead' })));
    await world.due(well, ill);
    const story = async () => (await world.posts.story(`account-${one.id}`)).includes('AccountReauthRequired');
    await until('nothing is told: the token is dead', story);
  });

  t('a rate limit without a future time delays the account a minute, doubled with each one in a row', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    for (const [limits, retryAt] of ['', '2001-01-01T00:00:00.000Z', 'soon'].entries()) {
      posts.set(one.id, (all) => all.map(() => ({ kind: 'rate_limited', retryAt })));
      await world.posts.pool.query('update ops.insights_accounts set not_before = null where account_id = $1', [
        one.id,
      ]);
      await world.due(id);
      await until('it rests', async () => (await restOf(one.id)).limits === limits + 1);
      const rest = ((await restOf(one.id)).at?.getTime() ?? 0) - Date.now();
      ok(Math.abs(rest - minute * 2 ** limits) < 20_000, `${rest} ms after ${limits} limits`);
      equal(asked.get(one.id), limits + 1);
    }
    posts.delete(one.id);
    await world.posts.pool.query('update ops.insights_accounts set not_before = null where account_id = $1', [one.id]);
    await world.tried(id);
    equal((await restOf(one.id)).limits, 0);
  });

  t('an answer with a time far ahead or before the publication is parked and blocks no later one', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    for (const [at, reason] of [
      ['2099-01-01T00:00:00.000Z', /ahead/],
      ['1999-01-01T00:00:00.000Z', /before/],
    ] as const) {
      posts.set(one.id, (all) => all.map(() => reported(1, at)));
      await world.due(id);
      await until('it is set aside', async () => reason.test((await world.parked(one.id))[0]?.reason ?? ''));
      equal((await world.observed(id)).length, 0);
    }
    posts.set(one.id, (all) => all.map(() => reported(2)));
    await world.due(id);
    await world.tried(id);
    deepEqual(
      (await world.observed(id)).map(({ figures }) => figures.likes),
      [2],
    );
  });

  t(
    'daily figures belong to the network’s own day whenever it is asked; figures of no valid day are parked',
    async () => {
      const one = await world.account('x');
      await world.received([one.id]);
      const raw = { data: { public_metrics: { followers_count: 7 } } };
      const now = new Date().toISOString();
      const yesterday = new Date(Date.now() - 24 * hour).toISOString().slice(0, 10);
      accounts.set(one.id, () => ({ kind: 'reported', raw, observedAt: now, figuresOf: yesterday }));
      await world.due(one.id);
      await world.tried(one.id);
      deepEqual(
        (await world.observedOf(one.id)).map(({ figuresDay }) => figuresDay),
        [yesterday],
      );
      for (const figuresOf of ['2026-02-30', 'today', '2099-01-01', '0001-01-01']) {
        accounts.set(one.id, () => ({ kind: 'reported', raw, observedAt: new Date().toISOString(), figuresOf }));
        await world.posts.pool.query('delete from ops.insights_parked where account_id = $1', [one.id]);
        await world.due(one.id);
        await until(`${figuresOf} is set aside`, async () => (await world.parked(one.id)).length === 1);
      }
      equal((await world.observedOf(one.id)).length, 1);
    },
  );

  t(
    'a requested figure that the network lacks is null; one that was not requested is absent and keeps its last value',
    async () => {
      const one = await world.account('x');
      const [id = ''] = await world.published([one]);
      await world.received([id]);
      const whole = { public_metrics: { like_count: 3 }, non_public_metrics: { url_link_clicks: 9, engagements: 12 } };
      const seen: unknown[] = [];
      for (const [at, raw] of [
        { data: whole },
        { data: { public_metrics: { like_count: 4 } } },
        { data: { public_metrics: {}, non_public_metrics: { engagements: 13 } } },
      ].entries()) {
        const fields = (['likes', 'clicks'] as const).slice(0, at);
        posts.set(one.id, (all) =>
          all.map(() => ({
            kind: 'reported',
            raw,
            observedAt: new Date().toISOString(),
            ...(at === 0 ? {} : { fields }),
          })),
        );
        await world.due(id);
        await world.tried(id);
        const { likes, clicks, totalInteractions } = (await world.observed(id)).at(-1)?.figures ?? {};
        seen.push({ likes, clicks, totalInteractions });
      }
      deepEqual(seen, [
        { likes: 3, clicks: 9, totalInteractions: 12 },
        { likes: 4, clicks: undefined, totalInteractions: undefined },
        { likes: null, clicks: null, totalInteractions: 13 },
      ]);
      posts.set(one.id, (all) => all.map(() => reported(5)));
      await world.due(id);
      await world.tried(id);
      const ahead = new Date(Date.now() + minute).toISOString();
      posts.set(one.id, (all) => all.map(() => ({ kind: 'removed', raw: null, observedAt: ahead })));
      await world.posts.pool.query(`update ops.insights_jobs set gone_at = now() - interval '2 hours' where id = $1`, [
        id,
      ]);
      await world.due(id);
      await until('it is over', async () => (await world.job(id)) === null);
      const { likes, clicks, totalInteractions } = (await world.observed(id)).at(-1)?.figures ?? {};
      deepEqual({ likes, clicks, totalInteractions }, { likes: 5, clicks: null, totalInteractions: 13 });
    },
  );

  t('one invalid figure is left out and counted, and the figures beside it are kept', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id, one.id]);
    const raw = { data: { public_metrics: { like_count: Number.NaN, reply_count: 4, retweet_count: '1' } } };
    posts.set(one.id, (all) =>
      all.map(() => ({ ...reported(1), raw, fields: ['likes', 'comments'] }) as PostInsightsAnswer),
    );
    await world.due(id);
    await world.tried(id);
    const [{ figures } = { figures: {} }] = await world.observed(id);
    deepEqual(
      ['likes', 'comments', 'reposts'].map((name) => (figures as Record<string, unknown>)[name]),
      [undefined, 4, undefined],
    );
    equal((await world.parked(one.id)).length, 0);
    const odd = (field: string) => counted(observer.registry, 'insights_odd_figures_total', { platform: 'x', field });
    deepEqual([await odd('likes'), await odd('reposts'), await odd('comments')], [1, 1, 0]);
  });

  t('accounts of a network that hangs leave slots to those of another that became due later', async () => {
    const hanging = await Promise.all(Array.from({ length: 6 }, () => world.account('x')));
    const other = await world.account('bluesky');
    const ids = [...hanging, other].map(({ id }) => id);
    await world.received(ids);
    const released = Promise.withResolvers<AccountInsightsAnswer>();
    for (const { id } of hanging) accounts.set(id, () => released.promise);
    await world.posts.pool.query(
      `with moved as (
         update ops.insights_jobs set due_at = date_trunc('milliseconds', now()) - case when id = $2 then interval '0' else interval '1 minute' end
         where id = any($1::uuid[]) returning account_id, due_at)
       update ops.insights_accounts a set next_at = moved.due_at from moved where a.account_id = moved.account_id`,
      [ids, other.id],
    );
    try {
      await until('the other is told', async () => (await world.observedOf(other.id)).length === 1);
      for (const { id } of hanging) equal((await world.observedOf(id)).length, 0);
    } finally {
      released.resolve({ kind: 'unavailable', reason: 'it hung' });
    }
    await world.tried(...ids);
  });

  t('answers that arrive before a call fails are kept, and only the rest is requested again', async () => {
    const one = await world.account('x');
    const ids = [
      ...(await world.published([one])),
      ...(await world.published([one])),
      ...(await world.published([one])),
    ];
    await world.received(ids);
    posts.set(one.id, () => [reported(1), reported(2)]);
    breaking.add(one.id);
    await world.due(...ids);
    await world.tried(...ids);
    breaking.delete(one.id);
    const seen = await Promise.all(ids.map(async (id) => (await world.observed(id)).length));
    deepEqual(seen.toSorted(), [0, 1, 1]);
    const failures = await Promise.all(ids.map(async (id) => (await world.job(id))?.failures));
    deepEqual(
      failures,
      seen.map((count) => 1 - count),
      'who was told is not asked again in a minute',
    );
  });

  t('three missed nights lose no day, and a day that the network revises is observed again', async () => {
    const one = await world.account('youtube');
    await world.received([one.id]);
    const dayOfAgo = (ago: number) => new Date(Date.now() - ago * 24 * hour).toISOString().slice(0, 10);
    const raw = (views: number) => ({
      day: { columnHeaders: [{ name: 'views' }, { name: 'estimatedMinutesWatched' }], rows: [[views, 1]] },
    });
    const channel = { channel: { statistics: { subscriberCount: '70' } } };
    /** The newest day, and views of the days before it, the newest first. */
    const tell = async (newest: number, views: readonly (number | string)[]) => {
      const earlier = views.map((count, place) => ({ day: dayOfAgo(newest + place + 1), raw: raw(count as number) }));
      accounts.set(one.id, () => ({
        ...{ kind: 'reported', raw: { ...channel, ...raw(10) }, observedAt: new Date().toISOString() },
        ...{ figuresOf: dayOfAgo(newest), earlier },
      }));
      const before = (await world.observedOf(one.id)).length;
      await world.due(one.id);
      await world.tried(one.id);
      const all = (await world.observedOf(one.id)).slice(before);
      const followers = all.map(({ figures }) => figures.followerCount);
      deepEqual(
        followers,
        all.map(() => 70),
        'each look tells the followers of now',
      );
      equal(new Set(all.map(({ observedAt }) => observedAt)).size, 1);
      return all.map(({ figuresDay, figures }) => [figuresDay, figures.videoViews]);
    };
    deepEqual(await tell(5, []), [[dayOfAgo(5), 10]]);
    // The nights of four, three and two days ago have no answer; the network revised the day of five days ago.
    deepEqual(await tell(1, [7, 8, 9, 11]), [
      [dayOfAgo(5), 11],
      [dayOfAgo(4), 9],
      [dayOfAgo(3), 8],
      [dayOfAgo(2), 7],
      [dayOfAgo(1), 10],
    ]);
    deepEqual(await tell(1, [7, 8, 9, 12]), [
      [dayOfAgo(5), 12],
      [dayOfAgo(1), 10],
    ]);
    // A figure that the list leaves out for a day is absent, although it was requested: its earlier value stays.
    accounts.set(one.id, () => ({
      ...{ kind: 'reported', raw: { ...channel, ...raw(10) }, observedAt: new Date().toISOString() },
      ...{ figuresOf: dayOfAgo(0), fields: ['videoViews', 'videoWatchTimeMinutes'] as const },
      earlier: [{ day: dayOfAgo(1), raw: { day: { columnHeaders: [{ name: 'views' }], rows: [[12]] } } }],
    }));
    await world.due(one.id);
    await world.tried(one.id);
    const revised = (await world.observedOf(one.id)).findLast(({ figuresDay }) => figuresDay === dayOfAgo(1));
    deepEqual([revised?.figures.videoViews, revised?.figures.videoWatchTimeMinutes], [12, 1]);
    // An unreadable day and an invalid date leave the other days alone; a day observed before stays as it was.
    deepEqual(await tell(1, ['many', 8, 9, 12]), [[dayOfAgo(1), 10]]);
    accounts.set(one.id, () => ({
      ...{
        kind: 'reported',
        raw: { ...channel, ...raw(10) },
        observedAt: new Date().toISOString(),
        figuresOf: dayOfAgo(1),
      },
      earlier: [dayOfAgo(1), '2026-02-30', '0001-01-01'].map((day) => ({ day, raw: raw(1) })),
    }));
    const before = (await world.observedOf(one.id)).length;
    await world.due(one.id);
    await world.tried(one.id);
    equal((await world.observedOf(one.id)).length, before + 1);
  });

  t('a look reads only the new events of the stream', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    const seen = async () => {
      const sql = 'select seen_revision as seen from ops.insights_jobs where id = $1';
      return (await world.posts.pool.query<{ seen: number | null }>(sql, [id])).rows[0]?.seen;
    };
    for (let look = 0; look < 3; look += 1) {
      posts.set(one.id, (all) => all.map(() => reported(look)));
      await world.due(id);
      await world.tried(id);
      equal(await seen(), look);
    }
    // A row that is ahead of a stream which was put back to an earlier day.
    await world.posts.pool.query('update ops.insights_jobs set seen_revision = 90 where id = $1', [id]);
    await world.due(id);
    await world.tried(id);
    equal((await world.observed(id)).length, 4);
    equal(await seen(), 3);
  });

  t('accounts of an archived client are no longer polled; observations stay', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id, one.id]);
    await world.due(id, one.id);
    await world.tried(id, one.id);
    const before = asked.get(one.id);
    await execute(world.posts.store, client, one.clientId, { type: 'Archive' }, world.posts.context());
    await until('nothing is left to do', async () => (await world.job(id)) === null);
    equal(await world.job(one.id), null);
    equal((await world.observed(id)).length, 1);
    const [said] = await world.refreshed(await world.refresh([one.id]));
    deepEqual(said?.data, { accountIds: [], failedAccountIds: [one.id] });
    equal(asked.get(one.id), before);
  });

  t(
    'accounts of an erased client are no longer polled, late answers are dropped, and parked ones are deleted',
    async () => {
      const one = await world.account('x');
      const [id = ''] = await world.published([one]);
      await world.received([id, one.id]);
      posts.set(one.id, (all) => all.map(() => ({ kind: 'reported', raw: { data: -1 }, observedAt: randomUUID() })));
      await world.due(id);
      await until('it is set aside', async () => (await world.parked(one.id)).length === 1);
      const { store } = world.posts;
      const erase = () => execute(store, client, one.clientId, { type: 'Erase' }, world.posts.context());
      // Between the question and the answer.
      posts.set(one.id, async (all) => {
        await erase();
        return all.map(() => reported(1));
      });
      await world.due(id);
      await until('nothing is left to do', async () => (await world.job(id)) === null);
      equal((await world.observed(id)).length, 0);
      await until('nothing is set aside', async () => (await world.parked(one.id)).length === 0);
      equal(await world.job(one.id), null);
    },
  );
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { SandboxNetwork, sandboxAhead } from '#infra/platforms/sandbox/index.ts';
import { createStatements, type TableName, tableOf } from '#projections/analytics/tables.ts';
import { view } from '#projections/shapes.ts';
import type { Platform } from '#schemas/common.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** In the workspace's zone, Berlin, a day begins two hours before it does in UTC. */
const window = 'from=2026-05-01&to=2026-05-07';
const allCounters = counters.reduce((bits, _name, bit) => bits + 2 ** bit, 0);

suite('analytics over HTTP', (t) => {
  let world: World;
  let house: TestClickHouse;
  let caller: Caller;
  let acme: Composer;
  let workspaceId: string;
  let other: Caller;

  const write = (table: TableName, ...values: readonly Readonly<Record<string, unknown>>[]) =>
    house.client.insert({ table: tableOf(table, 1), values: [...values], format: 'JSONEachRow' });

  /** A post that went out; its targets by network. The network of x alone gives an address with the publication. */
  const published = async (publishedAt: string, platforms: readonly Platform[]) => {
    const id = randomUUID();
    const targets = platforms.map((platform) =>
      planned({
        targetId: randomUUID(),
        accountId: acme.accounts[platform] ?? '',
        clientId: acme.clientId,
        platform,
        dueAt: publishedAt,
      }),
    );
    const context = contextOf(world.operator, workspaceId);
    const append = (stream: string, ...events: { type: string; data: unknown }[]) =>
      world.store.append(stream, -1, events, context, id);
    const attempt = { attempt: 1, takeover: 0 };
    const createdBy = { type: 'member', id: 'm' };
    const data = { clientId: acme.clientId, createdBy, body: postBody(), plan: { number: 1, targets } };
    await append(
      `post-${id}`,
      { type: 'PostScheduled', data },
      ...targets.map(({ targetId }) => ({
        type: 'PostTargetSettled',
        data: { targetId, targetRevision: 1, outcome: 'published', publishedAt },
      })),
    );
    for (const one of targets) {
      const permalink = one.platform === 'x' ? `https://x.example/${one.targetId}` : null;
      await append(
        `target-${one.targetId}`,
        { type: 'TargetScheduled', data: { ...one, postId: id, postRevision: 0 } },
        { type: 'TargetPublished', data: { ...attempt, externalId: one.targetId, permalink, publishedAt } },
      );
    }
    return { id, publishedAt, targetOf: (platform: Platform) => targets.find((one) => one.platform === platform) };
  };
  type Published = Awaited<ReturnType<typeof published>>;

  const observed = (post: Published, platform: Platform, day: string, figures: object) => {
    const target = post.targetOf(platform);
    return {
      workspace_id: workspaceId,
      post_id: post.id,
      target_id: target?.targetId,
      client_id: acme.clientId,
      account_id: target?.accountId,
      platform,
      published_at: post.publishedAt.replace('T', ' ').replace('Z', ''),
      day,
      observed_at: `${day} 02:00:00.000`,
      version: 1,
      fetched: allCounters,
      more: '{}',
      ...figures,
    };
  };

  t.before(async () => {
    house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
    const sandboxAheadHere = (id: string): Promise<number> => sandboxAhead(world.pool, id);
    world = await startWorld({ deps: { analytics: house.client, sandboxAhead: sandboxAheadHere } });
    caller = world.tester;
    workspaceId = testTwinIdOf(world.workspaceId);
    acme = await composer(world, ['instagram', 'x', 'facebook']);
    other = (await world.agency('Southern Cross')).tester;
  });
  t.after(() => world.close());

  t('the overview, a client and an account: each of its own grain, other tenants see none of it', async () => {
    const seen = { day: '2026-05-02', observed_at: '2026-05-02 03:00:00.500', version: 1, targets: 1 };
    const row = { workspace_id: workspaceId, client_id: acme.clientId, platform: 'x', ...seen };
    const bitsOf = (...names: CounterName[]) => ({
      fetched: names.reduce((bits, name) => bits + 2 ** counters.indexOf(name), 0),
    });
    const rated = { rated_interactions: 30, rated_impressions: 600 };
    await write('workspace_days', { ...row, likes: 30, ...rated, ...bitsOf('likes', 'reach') });
    await write('client_days', { ...row, likes: 20, saves: 0, ...bitsOf('likes', 'saves', 'linkClicks') });
    const ofAccount = { ...row, account_id: acme.accounts.x };
    await write('account_days', { ...ofAccount, likes: 10, shares: -1, ...bitsOf('likes', 'shares', 'saves') });
    await write('account_figures_days', {
      ...{ ...row, account_id: acme.accounts.x, follower_count: 77 },
      demographics: '{"city":{"Bonn":3}}',
    });
    await write('account_audience_days', {
      ...{ ...row, account_id: acme.accounts.x, figures: '{"followerCount":77,"profileViews":null,"videoViews":0}' },
    });
    const asOf = '2026-05-02T03:00:00.500Z';
    const overview = await caller.get(`/analytics/overview?${window}`);
    assert.equal(overview.status, 200, overview.text);
    const { series, ...rest } = overview.data;
    // What was asked for and not reported is null; what was never asked for is not there.
    const totals = { likes: 30, reach: null, engagementRate: 0.05, followerCount: 77, posts: 0 };
    assert.deepEqual(rest, {
      object: 'workspace_analytics',
      ...{ from: '2026-05-01', to: '2026-05-07', asOf, staleAccounts: 1, totals },
      byPlatform: [{ platform: 'x', ...totals }],
    });
    assert.deepEqual(
      (series as { day: string; likes?: number | null }[]).map(({ day, likes }) => [day.slice(8), likes]),
      [
        ...[
          ['01', undefined],
          ['02', 30],
        ],
        ...['03', '04', '05', '06', '07'].map((day) => [day, undefined]),
      ],
    );
    const [first] = series as object[];
    assert.deepEqual(first, { day: '2026-05-01', provisional: false, engagementRate: null, followerCount: null });
    const client = await caller.get(`/analytics/clients/${acme.clientId}?${window}`);
    assert.deepEqual(
      [client.data.object, client.data.clientId, client.data.asOf],
      ['client_analytics', acme.clientId, asOf],
    );
    const ofRate = { engagementRate: null, followerCount: 77 };
    assert.deepEqual(client.data.totals, { likes: 20, saves: 0, linkClicks: null, ...ofRate, posts: 0 });
    const account = await caller.get(`/analytics/accounts/${acme.accounts.x}?${window}`);
    assert.deepEqual(account.data.totals, { likes: 10, shares: -1, saves: null, ...ofRate });
    assert.deepEqual(account.data.audience, { profileViews: null, videoViews: 0 });
    assert.deepEqual(account.data.demographics, { city: { Bonn: 3 } });
    assert.deepEqual([account.data.socialAccountId, account.data.platform], [acme.accounts.x, 'x']);
    const quiet = await caller.get(`/analytics/accounts/${acme.accounts.instagram}?${window}`);
    assert.deepEqual([quiet.data.asOf, quiet.data.audience, 'demographics' in quiet.data], [null, {}, false]);

    const likes = async (path: string, by = caller) => {
      const answer = await by.get(path);
      assert.equal(answer.status, 200, answer.text);
      return (answer.data.totals as { likes?: number | null }).likes;
    };
    for (const [filter, wanted] of [
      [`clientId=${acme.clientId}`, 20],
      [`clientId=${acme.clientId}&socialAccountId=${acme.accounts.x}`, 10],
      [`socialAccountId=${acme.accounts.x}`, 10],
      [`socialAccountId=${acme.accounts.x}&platform=instagram`, undefined],
      ['platform=x,facebook', 30],
      ['platform=twitter', 30],
      ['platform=facebook', undefined],
      [`clientId=${randomUUID()}`, undefined],
    ] as const) {
      assert.equal(await likes(`/analytics/overview?${window}&${filter}`), wanted, filter);
    }
    assert.equal(await likes(`/analytics/clients/${acme.clientId}?${window}&clientId=${randomUUID()}`), undefined);
    assert.equal(await likes(`/analytics/accounts/${acme.accounts.x}?${window}&platform=tiktok`), undefined);
    for (const filter of ['', `&clientId=${acme.clientId}`, `&socialAccountId=${acme.accounts.x}`]) {
      assert.equal(await likes(`/analytics/overview?${window}${filter}`, other), undefined);
      assert.equal(await likes(`/analytics/overview?${window}${filter}`, world.owner), undefined);
    }
    for (const by of [other, world.owner]) {
      for (const path of [`clients/${acme.clientId}`, `accounts/${acme.accounts.x}`]) {
        const foreign = await by.get(`/analytics/${path}?${window}`);
        const unknown = await by.get(`/analytics/${path.split('/')[0]}/${randomUUID()}?${window}`);
        refused(foreign, 404, 'not_found');
        assert.equal(foreign.body.detail, unknown.body.detail);
      }
    }
  });

  t(
    'posts published in the window, the newest first: null, 0 and posts without an observation stay apart',
    async () => {
      const late = await published('2026-05-07T21:59:59.999Z', ['x']);
      const both = await published('2026-05-03T10:00:00.000Z', ['instagram', 'facebook']);
      const early = await published('2026-04-30T22:00:00.000Z', ['x']);
      const before = await published('2026-04-30T21:59:59.999Z', ['x']);
      const after = await published('2026-05-07T22:00:00.000Z', ['x']);
      await world.settled();
      await write(
        'post_days',
        observed(both, 'instagram', '2026-05-04', {
          impressions: 100,
          likes: 9,
          saves: 1,
          more: '{"permalink":"https://a.example"}',
        }),
        observed(both, 'facebook', '2026-05-05', {
          fetched: 5,
          impressions: 300,
          likes: 3,
          more: '{"reactionsByType":{"like":3}}',
        }),
        observed(both, 'facebook', '2026-05-09', { fetched: 5, impressions: 900, likes: 9 }),
        observed(early, 'x', '2026-05-01', { likes: 0, removed_at: '2026-05-01 01:00:00.000' }),
        observed(before, 'x', '2026-05-02', { likes: 4 }),
      );
      const listed = await caller.get(`/analytics/posts?${window}`);
      assert.equal(listed.status, 200, listed.text);
      assert.deepEqual(
        listed.rows.map((row) => row.postId),
        [late.id, both.id, early.id],
      );
      const [unseen, two, gone] = listed.rows;
      assert.deepEqual([unseen?.metrics, unseen?.fetchedAt, unseen?.asOf], [{}, null, null]);
      const metrics = two?.metrics as Record<string, unknown>;
      assert.deepEqual(
        [metrics.impressions, metrics.likes, metrics.saves, metrics.comments, metrics.engagementRate],
        [400, 12, 1, null, 13 / 400],
      );
      assert.deepEqual([metrics.permalink, metrics.reactionsByType], ['https://a.example', { like: 3 }]);
      assert.equal('skipRate' in metrics, false);
      assert.deepEqual([two?.fetchedAt, two?.asOf], ['2026-05-05T02:00:00.000Z', '2026-05-05T02:00:00.000Z']);
      assert.deepEqual(two?.platforms, ['facebook', 'instagram']);
      assert.deepEqual(gone?.metrics, {
        ...Object.fromEntries(counters.map((name) => [name, null])),
        ...{ likes: 0, engagementRate: null, platformRemovedAt: '2026-05-01T01:00:00.000Z' },
      });

      // What names a row; of several targets there is no one account and no one address.
      const labels = (row: Readonly<Record<string, unknown>> | undefined) => [row?.accountId, row?.permalink];
      const xAddress = `https://x.example/${late.targetOf('x')?.targetId}`;
      for (const row of listed.rows) {
        assert.deepEqual([row.clientId, row.excerpt], [acme.clientId, postBody().content]);
      }
      assert.deepEqual(labels(unseen), [acme.accounts.x, xAddress]);
      assert.deepEqual(labels(two), [null, null]);
      const onInstagram = await caller.get(`/analytics/posts?${window}&platform=instagram`);
      assert.deepEqual(labels(onInstagram.rows[0]), [acme.accounts.instagram, 'https://a.example']);
      const sorted = await caller.get(`/analytics/posts?${window}&platform=x&sort=likes`);
      assert.deepEqual(
        sorted.rows.map((row) => [row.postId, row.excerpt, row.accountId]),
        [early.id, late.id].map((id) => [id, postBody().content, acme.accounts.x]),
      );

      // A filter narrows the targets, and so what a post shows.
      const onFacebook = await caller.get(`/analytics/posts?${window}&platform=facebook`);
      assert.deepEqual(
        onFacebook.rows.map(({ postId, platforms }) => [postId, platforms]),
        [[both.id, ['facebook']]],
      );
      assert.deepEqual(onFacebook.rows[0]?.metrics, {
        ...{ impressions: 300, likes: 3, reactionsByType: { like: 3 }, platformRemovedAt: null, engagementRate: 0.01 },
      });
      const ofAccount = await caller.get(`/analytics/posts?${window}&socialAccountId=${acme.accounts.x}`);
      assert.deepEqual(
        ofAccount.rows.map(({ postId }) => postId),
        [late.id, early.id],
      );
      assert.deepEqual((await caller.get(`/analytics/posts?${window}&clientId=${randomUUID()}`)).rows, []);
      for (const by of [other, world.owner]) assert.deepEqual((await by.get(`/analytics/posts?${window}`)).rows, []);

      // Page by page: all of them, once; a cursor is of its filters.
      const seen: unknown[] = [];
      let cursor: string | null = null;
      do {
        const page = await caller.get(
          `/analytics/posts?${window}&limit=1${cursor === null ? '' : `&cursor=${cursor}`}`,
        );
        seen.push(...page.rows.map(({ postId }) => postId));
        cursor = page.body.page?.nextCursor ?? null;
      } while (cursor !== null);
      assert.deepEqual(seen, [late.id, both.id, early.id]);
      const first = await caller.get(`/analytics/posts?${window}&limit=1`);
      refused(await caller.get(`/analytics/posts?cursor=${first.body.page?.nextCursor}`), 400, 'invalid_cursor');

      const one = await caller.get(`/analytics/posts/${both.id}?${window}`);
      assert.deepEqual(
        (one.data.targets as Record<string, unknown>[]).map((row) => [row.clientId, ...labels(row)]),
        [
          [acme.clientId, acme.accounts.facebook, null],
          [acme.clientId, acme.accounts.instagram, 'https://a.example'],
        ],
      );
      assert.deepEqual([one.data.excerpt, ...labels(one.data)], [postBody().content, null, null]);
      assert.deepEqual(
        (one.data.targets as { platform: string; metrics: { impressions: number }; fetchedAt: string }[]).map(
          ({ platform, metrics: own, fetchedAt }) => [platform, own.impressions, fetchedAt],
        ),
        [
          ['facebook', 300, '2026-05-05T02:00:00.000Z'],
          ['instagram', 100, '2026-05-04T02:00:00.000Z'],
        ],
      );
      const now = await caller.get(`/analytics/posts/${both.id}?from=2026-05-09&to=2026-05-20`);
      assert.deepEqual(
        [(now.data.metrics as { impressions: number }).impressions, now.data.asOf],
        [1_000, '2026-05-09T02:00:00.000Z'],
      );
      // A post out of the window is still one post; a look from before the window is none in it.
      const outside = await caller.get(`/analytics/posts/${before.id}?from=2026-05-09&to=2026-05-20`);
      assert.deepEqual([outside.data.fetchedAt, outside.data.asOf], ['2026-05-02T02:00:00.000Z', null]);
      assert.equal((await caller.get(`/analytics/posts/${after.id}?${window}`)).data.fetchedAt, null);
      for (const id of [both.id, randomUUID()]) refused(await other.get(`/analytics/posts/${id}`), 404, 'not_found');
      const draft = await caller.post('/posts', acme.body({ saveDraft: true }));
      const empty = await caller.get(`/analytics/posts/${draft.data.id}?${window}`);
      assert.deepEqual([empty.status, empty.data.targets, empty.data.publishedAt], [200, [], null], empty.text);

      // Beside the figures how many posts went out: each once, and once on each of its networks.
      const countsOf = (board: unknown) => {
        const { totals, byPlatform } = board as {
          totals: { posts: number };
          byPlatform: { platform: string; posts: number }[];
        };
        return [totals.posts, ...byPlatform.map(({ platform, posts }) => `${platform} ${posts}`)];
      };
      const board = async (path: string, by = caller) => {
        const answer = await by.get(`/analytics/${path}`);
        assert.equal(answer.status, 200, answer.text);
        return answer.data;
      };
      const overview = await board(`overview?${window}&compare=previous`);
      assert.deepEqual(countsOf(overview), [3, 'facebook 1', 'instagram 1', 'x 2']);
      const previous = overview.previous as { from: string; to: string };
      assert.deepEqual([previous.from, previous.to, ...countsOf(previous)], ['2026-04-24', '2026-04-30', 1, 'x 1']);
      const weeks = (await board(`overview?from=2026-05-03&to=2026-05-10&compare=previous_weekday`)).previous;
      assert.deepEqual(
        [(weeks as typeof previous).from, (weeks as typeof previous).to],
        ['2026-04-19', '2026-04-26'],
        'eight days lie two weeks apart',
      );
      assert.deepEqual(countsOf(await board(`clients/${acme.clientId}?${window}&platform=instagram`)), [
        1,
        'instagram 1',
      ]);
      assert.deepEqual(countsOf(await board(`overview?${window}&socialAccountId=${acme.accounts.x}`)), [2, 'x 2']);
      assert.deepEqual(countsOf(await board(`clients/${acme.clientId}?${window}&clientId=${randomUUID()}`)), [0]);
      for (const by of [other, world.owner]) {
        const theirs = await board(`overview?${window}&compare=previous`, by);
        assert.deepEqual([countsOf(theirs), countsOf(theirs.previous)], [[0], [0]]);
      }
      assert.equal('previous' in (await board(`overview?${window}`)), false);
      const ofNetworks = await board(`clients/${acme.clientId}?${window}&breakdown=platform`);
      for (const one of ofNetworks.byPlatform as { platform: string; series?: unknown[] }[])
        assert.equal(one.series?.length, 7, one.platform);
      const account = await board(`accounts/${acme.accounts.x}?from=2026-05-09&to=2026-05-15&compare=previous`);
      const past = account.previous as { from: string; totals: { likes: number; followerCount: number } };
      assert.deepEqual([past.from, past.totals.likes, past.totals.followerCount], ['2026-05-02', 10, 77]);
      for (const path of ['overview', `clients/${acme.clientId}`, `accounts/${acme.accounts.x}`])
        refused(await caller.get(`/analytics/${path}?compare=last_year`), 400, 'invalid_parameter');
      refused(await caller.get('/analytics/overview?breakdown=day'), 400, 'invalid_parameter');
    },
  );

  t(
    'posts by a figure: the highest first, those without it last, page by page each once while figures change',
    async () => {
      const days = 'from=2026-03-01&to=2026-03-31';
      const out = (hour: number, ...platforms: Platform[]) =>
        published(`2026-03-10T${String(hour).padStart(2, '0')}:00:00.000Z`, platforms);
      const [low, both, high, mute, unseen] = [
        await out(8, 'x'),
        await out(9, 'instagram', 'facebook'),
        await out(10, 'x'),
        await out(11, 'instagram'),
        await out(12, 'x'),
      ];
      // Its first target went out before the window: it is not of it, however high its figure is.
      const early = await published('2026-02-28T12:00:00.000Z', ['x', 'instagram']);
      await world.settled();
      const late = early.targetOf('instagram');
      await write(
        'post_days',
        ...[observed(low, 'x', '2026-03-11', { likes: 1 }), observed(high, 'x', '2026-03-11', { likes: 30 })],
        ...[observed(both, 'instagram', '2026-03-11', { likes: 9 })],
        ...[observed(both, 'facebook', '2026-03-11', { likes: 9 }), observed(mute, 'instagram', '2026-03-11', {})],
        {
          ...observed(early, 'instagram', '2026-03-11', { likes: 5_000 }),
          ...{ target_id: late?.targetId, published_at: '2026-03-02 00:00:00.000' },
        },
      );
      const order: readonly { readonly id: string }[] = [high, both, low, unseen, mute];
      const names = new Map<string, string>(
        Object.entries({ low, both, high, mute, unseen, early }).map(([name, { id }]) => [id, name]),
      );
      const wanted = order.map(({ id }) => names.get(id));
      const namesOf = (rows: readonly Readonly<Record<string, unknown>>[]) =>
        rows.map(({ postId }) => names.get(String(postId)));
      const whole = await caller.get(`/analytics/posts?${days}&sort=likes`);
      assert.equal(whole.status, 200, whole.text);
      assert.deepEqual(namesOf(whole.rows), wanted);
      assert.deepEqual(whole.body.page, { hasMore: false, cursor: null, nextCursor: null });
      assert.deepEqual(
        whole.rows.slice(0, 3).map(({ metrics }) => (metrics as { likes: number }).likes),
        [30, 18, 1],
      );
      const filtered = await caller.get(`/analytics/posts?${days}&sort=likes&platform=instagram`);
      assert.deepEqual(namesOf(filtered.rows), ['both', 'mute']);
      assert.deepEqual((await other.get(`/analytics/posts?${days}&sort=likes`)).rows, []);

      for (const limit of [1, 2, 3]) {
        const seen: unknown[] = [];
        for (let cursor = '', pages = 0; ; pages += 1) {
          assert.ok(pages < 10, 'the walk comes to an end');
          const page = await caller.get(`/analytics/posts?${days}&sort=likes&limit=${limit}${cursor}`);
          assert.equal(page.status, 200, page.text);
          seen.push(...namesOf(page.rows));
          const next = page.body.page?.nextCursor ?? null;
          if (next === null) break;
          cursor = `&cursor=${next}`;
          // A look of another day turns the order round; this walk goes by what was there when it began.
          const today = new Date(Date.now() + 60_000).toISOString();
          await write('post_days', {
            ...observed(low, 'x', '2026-03-12', { likes: 1_000 + limit }),
            observed_at: today.replace('T', ' ').replace('Z', ''),
          });
        }
        assert.deepEqual(seen, wanted, `pages of ${limit}`);
      }
      const first = await caller.get(`/analytics/posts?${days}&sort=likes&limit=1`);
      const cursor = first.body.page?.nextCursor;
      refused(await caller.get(`/analytics/posts?${days}&sort=shares&cursor=${cursor}`), 400, 'invalid_cursor');
      refused(await caller.get(`/analytics/posts?${days}&cursor=${cursor}`), 400, 'invalid_cursor');
      refused(await caller.get('/analytics/posts?sort=permalink'), 400, 'invalid_parameter');
      // Nothing tells it: all posts, the newest first.
      const none = await caller.get(`/analytics/posts?${days}&sort=quotes`);
      assert.deepEqual(namesOf(none.rows), ['unseen', 'mute', 'high', 'both', 'low']);
    },
  );

  t(
    'figures are as fresh as the account with the oldest last observation; accounts that missed a night are counted',
    async () => {
      const now = Date.now();
      const look = (platform: Platform, hoursAgo: number) => {
        const at = new Date(now - hoursAgo * 3_600_000).toISOString();
        return {
          ...{ workspace_id: workspaceId, account_id: acme.accounts[platform], client_id: acme.clientId, platform },
          ...{ day: at.slice(0, 10), follower_count: 5, demographics: '', version: 1 },
          observed_at: at.replace('T', ' ').replace('Z', ''),
        };
      };
      const [fresh, stale] = [look('x', 1), look('instagram', 48)];
      await write('account_figures_days', fresh, stale);
      const freshness = async (query: string) => {
        const { data, text } = await caller.get(`/analytics/overview${query}`);
        assert.ok(data !== undefined, text);
        return [data.asOf, data.staleAccounts];
      };
      const iso = ({ observed_at }: { observed_at: string }) => `${observed_at.replace(' ', 'T')}Z`;
      // Facebook's was connected a moment ago, and has missed no night yet.
      assert.deepEqual(await freshness(''), [iso(stale), 1]);
      const change = (set: string, ids: readonly unknown[]) =>
        world.pool.query(`update read.accounts set ${set} where id = any($1)`, [ids]);
      await change(`created_at = created_at - interval '3 days'`, Object.values(acme.accounts));
      // Nobody ever looked at facebook's.
      assert.deepEqual(await freshness(''), [iso(stale), 2]);
      assert.deepEqual(await freshness('?platform=x'), [iso(fresh), 0]);
      assert.deepEqual(await freshness('?platform=facebook'), [null, 1]);
      assert.deepEqual(await freshness(`?socialAccountId=${acme.accounts.instagram}`), [iso(stale), 1]);
      assert.deepEqual(await freshness(`?clientId=${randomUUID()}`), [null, 0]);
      const { data } = await caller.get(`/analytics/clients/${acme.clientId}`);
      assert.deepEqual([data.asOf, data.staleAccounts], [iso(stale), 2]);
      assert.equal((await other.get('/analytics/overview')).data.staleAccounts, 0);
      // One whose authorization ended stands still and is counted; a disconnected one holds nobody back.
      await change(`status = 'reauth_required'`, [acme.accounts.instagram]);
      assert.deepEqual(await freshness(''), [iso(stale), 2]);
      await change(`status = 'disconnected'`, [acme.accounts.instagram]);
      assert.deepEqual(await freshness(''), [iso(fresh), 1]);
      await change(`status = 'connected'`, [acme.accounts.instagram]);
      // A window that begins after the last night still knows of the looks before it.
      const day = (daysAgo: number) => new Date(now - daysAgo * 86_400_000).toISOString().slice(0, 10);
      await write('account_figures_days', { ...look('facebook', 30), version: 2 });
      assert.equal((await freshness(`?from=${day(-1)}&to=${day(-1)}&platform=x,facebook`))[1], 0);
      assert.deepEqual(await freshness(`?from=${day(-1)}&to=${day(-1)}`), [null, 1]);
      // No network is asked about an archived client any more: its figures stand still for good and hold nobody back.
      const closing = await caller.post('/clients', { name: 'Closing', type: 'brand' });
      const moved = [closing.data.id, acme.accounts.instagram];
      await world.pool.query('update read.accounts set client_id = $1 where id = $2', moved);
      await world.settled();
      assert.deepEqual(await freshness(''), [iso(stale), 1]);
      await world.pool.query('update read.clients set archived_at = now() where id = $1', [closing.data.id]);
      assert.deepEqual(await freshness(''), [iso(look('facebook', 30)), 0]);
      await world.pool.query('update read.clients set archived_at = null, erased = true where id = $1', [
        closing.data.id,
      ]);
      assert.deepEqual(await freshness(''), [iso(look('facebook', 30)), 0]);
      await world.pool.query('update read.accounts set client_id = $1 where id = $2', [acme.clientId, moved[1]]);
    },
  );

  t('days: the last 30 up to today in the workspace’s zone by default; an invalid window is refused', async () => {
    // 23:30 in Berlin's summer is the next day there before it is in UTC.
    const shift = Date.parse('2026-07-31T22:30:00.000Z') - Date.now();
    world.clock.shiftMs = shift;
    try {
      const dates = async (query: string) => {
        const { data, text } = await caller.get(`/analytics/overview${query}`);
        return [data?.from, data?.to, (data?.series as unknown[] | undefined)?.length ?? text];
      };
      assert.deepEqual(await dates(''), ['2026-07-03', '2026-08-01', 30]);
      assert.deepEqual(await dates('?to=2026-03-01'), ['2026-01-31', '2026-03-01', 30]);
      assert.deepEqual(await dates('?from=2026-07-30'), ['2026-07-30', '2026-08-01', 3]);
      assert.deepEqual(await dates('?from=2026-08-01&to=2026-08-01'), ['2026-08-01', '2026-08-01', 1]);
      assert.deepEqual(await dates('?from=2025-06-28'), ['2025-06-28', '2026-08-01', 400]);
      const paths = [
        'overview',
        'posts',
        `posts/${randomUUID()}`,
        `clients/${acme.clientId}`,
        `accounts/${acme.accounts.x}`,
      ];
      for (const query of [
        ...['from=2025-06-27', 'from=2026-08-02', 'from=2026-05-02&to=2026-05-01', 'from=2026-02-30', 'to=2026-13-01'],
        ...['to=1999-12-31', 'to=2101-01-01', 'from=yesterday', 'from=2026-5-1', 'from=2026-05-01T00:00:00Z', 'from='],
        ...['platform=myspace', 'clientId=1', 'socialAccountId=x', 'accountId=x', 'from=2026-05-01&from=2026-05-02'],
      ]) {
        for (const path of paths) {
          const answer = await caller.get(`/analytics/${path}?${query}`);
          refused(answer, 400, 'invalid_parameter');
        }
      }
    } finally {
      world.clock.shiftMs = 0;
    }
  });

  t('best times: the slots of the week in the client’s zone, from the client’s published posts', async () => {
    const prior = await other.get('/best-times?platform=linkedin&limit=100');
    assert.equal(prior.status, 200, prior.text);
    assert.equal(prior.rows.length, 100);
    const { nextCursor } = prior.body.page ?? {};
    const rest = await other.get(`/best-times?platform=linkedin&limit=100&cursor=${nextCursor}`);
    assert.deepEqual([rest.rows.length, rest.body.page?.hasMore, rest.body.page?.nextCursor], [68, false, null]);
    const week = [...prior.rows, ...rest.rows];
    assert.equal(new Set(week.map(({ weekday, hour }) => `${weekday} ${hour}`)).size, 168);
    const lifts = week.map(({ lift }) => Number(lift));
    assert.deepEqual(
      lifts,
      [...lifts].sort((a, b) => b - a),
    );
    assert.equal((await other.get('/best-times?platform=linkedin')).rows.length, 25);
    refused(await other.get(`/best-times?platform=x&cursor=${nextCursor}`), 400, 'invalid_cursor');
    assert.ok(prior.rows.every(({ basis, sampleSize }) => basis === 'prior' && sampleSize === 0));
    assert.deepEqual([prior.rows[0]?.timezone, prior.body.page?.hasMore], ['Europe/Berlin', true]);
    /** Every slot of the week. */
    const all = async (query: string, by = caller) => {
      const first = await by.get(`/best-times?limit=100&${query}`);
      const more = await by.get(`/best-times?limit=100&${query}&cursor=${first.body.page?.nextCursor}`);
      return [...first.rows, ...more.rows];
    };
    const tokyo = await caller.post('/clients', { name: 'Tokyo', type: 'brand', timezone: 'Asia/Tokyo' });
    await world.settled();
    // 40 days ago, hour by hour; 11 o'clock in Tokyo is 2 in UTC.
    const start = Math.floor(Date.now() / 86_400_000 - 40) * 86_400_000;
    const row = (client: string, platform: 'x' | 'instagram', published: number, age: number, likes: number) => {
      const [at, seen] = [published, published + age * 86_400_000].map((ms) => new Date(ms).toISOString().slice(0, 23));
      return {
        ...{ workspace_id: workspaceId, post_id: randomUUID(), target_id: randomUUID(), client_id: client },
        ...{ account_id: acme.accounts[platform], platform, published_at: at?.replace('T', ' ') },
        ...{ day: seen?.slice(0, 10), observed_at: seen?.replace('T', ' '), version: 1, more: '{}' },
        ...{ fetched: allCounters, impressions: likes * 20, likes },
      };
    };
    const days = Array.from({ length: 30 }, (_, day) => start + day * 86_400_000);
    const rows = days.flatMap((day) =>
      [0, 2, 9].map((hour) => row(tokyo.data.id, 'x', day + hour * 3_600_000, 2, hour === 2 ? 90 : 20)),
    );
    await write('post_days', ...rows);
    // What they got after a week does not count, and neither does what younger ones got until now.
    const late = rows.slice(0, 30).map((one) => {
      const day = new Date(Date.parse(`${one.day}`) + 7 * 86_400_000).toISOString().slice(0, 10);
      return { ...one, day, observed_at: `${day} 23:00:00.000`, likes: one.likes === 20 ? 9_000 : 1 };
    });
    const young = row(tokyo.data.id, 'x', Date.now() - 6 * 86_400_000, 3, 9_000);
    await write('post_days', ...late, young);
    const found = await caller.get(`/best-times?limit=100&clientId=${tokyo.data.id}`);
    const [top] = found.rows;
    assert.deepEqual([top?.hour, top?.timezone, top?.basis, top?.object], [11, 'Asia/Tokyo', 'observed', 'best_time']);
    assert.ok(Number(top?.sampleSize) >= 4 && Number(top?.lift) > 1.5);
    assert.equal(
      (await all(`clientId=${tokyo.data.id}`)).reduce((sum, { sampleSize }) => sum + Number(sampleSize), 0),
      90,
    );
    // Stories get less than the feed, which says nothing of their hour: 10 o'clock in Tokyo is 1 in UTC.
    const kyoto = await caller.post('/clients', { name: 'Kyoto', type: 'brand', timezone: 'Asia/Tokyo' });
    await world.settled();
    const [feed, stories] = [9, 1].map((hour) =>
      days.map((day) => row(kyoto.data.id, 'instagram', day + hour * 3_600_000, hour === 1 ? 0.9 : 6, hour * 40)),
    );
    const variant = { platform: 'instagram', mediaIdsOverride: null, overrides: { contentType: 'story' } };
    await world.pool.query(
      `with story as (select post_id, target_id from unnest($2::uuid[], $3::uuid[]) as f (post_id, target_id)
       ), posts as (
         insert into ${view('posts')} (id, workspace_id, revision, created_at, updated_at, body)
         select post_id, $1, 0, now(), now(), $4::jsonb from story
       )
       insert into ${view('post_targets')} (id, workspace_id, revision, created_at, updated_at, post_id, platform)
       select target_id, $1, 0, now(), now(), post_id, 'instagram' from story`,
      [
        workspaceId,
        (stories ?? []).map(({ post_id }) => post_id),
        (stories ?? []).map(({ target_id }) => target_id),
        JSON.stringify({ content: '', mediaIds: [], variants: [variant], thread: null }),
      ],
    );
    await write('post_days', ...(feed ?? []), ...(stories ?? []));
    const apart = await all(`clientId=${kyoto.data.id}&platform=instagram`);
    const assumed = await all('platform=instagram', other);
    const liftAt = (rows: typeof apart) =>
      rows.flatMap(({ weekday, hour, lift }) => (weekday === 3 && hour === 10 ? [Number(lift)] : []))[0] ?? 0;
    assert.ok(Math.abs(Math.log(liftAt(apart) / liftAt(assumed))) < 0.05, `${liftAt(apart)}, ${liftAt(assumed)}`);
    assert.equal(
      apart.reduce((sum, { sampleSize }) => sum + Number(sampleSize), 0),
      60,
    );
    const foreign = await other.get(`/best-times?clientId=${tokyo.data.id}`);
    const unknown = await other.get(`/best-times?clientId=${randomUUID()}`);
    assert.deepEqual([foreign.status, foreign.rows, unknown.rows], [200, [], []]);
    refused(await caller.get('/best-times?platform=myspace'), 400, 'invalid_parameter');
    refused(await caller.get('/best-times?limit=101'), 400, 'invalid_parameter');
  });

  t('an unavailable store: 503 with Retry-After for existing resources; other operations work', async () => {
    const nowhere = openAnalytics({ url: 'http://127.0.0.1:9/postline' });
    for (const analytics of [null, nowhere]) {
      const away = await startWorld({ deps: { analytics } });
      try {
        const client = await away.owner.post('/clients', { name: 'Acme', type: 'brand' });
        // Of no posts there are no figures to ask for.
        const listed = analytics === null ? ['/analytics/posts'] : [];
        const paths = ['/analytics/overview', `/analytics/clients/${client.data.id}`, '/best-times', ...listed];
        for (const path of paths) {
          const answer = await away.owner.get(path);
          refused(answer, 503, 'unavailable');
          assert.ok(Number(answer.headers.get('retry-after')) > 0);
        }
        refused(await away.owner.get(`/analytics/clients/${randomUUID()}`), 404, 'not_found');
        refused(await away.owner.get('/analytics/overview?from=2026-02-30'), 400, 'invalid_parameter');
        assert.equal((await away.owner.get('/posts')).status, 200);
      } finally {
        await away.close();
      }
    }
    await nowhere.close();
  });

  t(
    'a window without an end ends today, and days are provisional, in the sandbox by its clock of this workspace',
    async () => {
      const end = async (by: Caller) => (await by.get('/analytics/overview')).data.to;
      const dayAhead = (days: number): string => {
        const at = new Date(Date.now() + days * 86_400_000);
        return new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(at);
      };
      assert.equal(await end(caller), dayAhead(0), 'no process has made the sandbox yet');
      const network = new SandboxNetwork({ database: world });
      const [client_id, account_id] = [acme.clientId, acme.accounts.x];
      const open_until = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 23).replace('T', ' ');
      const row = { workspace_id: workspaceId, client_id, account_id, platform: 'x', version: 9, targets: 1 };
      for (const table of ['workspace_days', 'client_days', 'account_days'] as const)
        await write(table, { ...row, day: '2026-06-02', observed_at: '2026-06-02 03:00:00.000', open_until });
      const provisional = async (): Promise<readonly boolean[]> => {
        const paths = ['overview', `clients/${client_id}`, `accounts/${account_id}`];
        const answers = paths.map((one) => caller.get(`/analytics/${one}?from=2026-06-02&to=2026-06-02`));
        return (await Promise.all(answers)).map(({ data }) => {
          const [day] = data.series as readonly { readonly provisional: boolean }[];
          return day?.provisional ?? assert.fail();
        });
      };
      assert.deepEqual(await provisional(), [true, true, true]);
      await network.advance(7 * 86_400_000, workspaceId);
      assert.deepEqual(await provisional(), [false, false, false], 'what it may wait for is over by that clock');
      assert.equal(await end(caller), dayAhead(7));
      for (const one of [other, world.owner]) assert.equal(await end(one), dayAhead(0));
      assert.equal((await caller.get('/analytics/overview?from=2026-05-01&to=2026-05-07')).data.to, '2026-05-07');
    },
  );
});

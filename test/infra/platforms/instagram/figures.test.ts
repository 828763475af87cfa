/** Figures of posts and accounts of Instagram: what is asked for, and what an answer that lacks some is worth. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import type { InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { ofFigures, problems } from '#test/support/networks/instagram/answer.ts';
import { scopesOf } from '#test/support/networks/instagram/index.ts';
import { type InstagramAccount, type InstagramWorld, instagramWorld } from '#test/support/networks/instagram/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
const hourMs = 3_600_000;
const insights = 'GET /:id/insights';

suite('figures of instagram', (t) => {
  let world: InstagramWorld;
  let account: InstagramAccount;
  t.before.each(async () => {
    world = await instagramWorld();
    account = await world.account();
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  const posted = async (by = account, over: Partial<PublishMedia> = {}) => {
    const media = [world.media(over)];
    const { outcome } = await world.publish(world.request(by, { content: randomUUID(), media }));
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt, permalink } = outcome;
    const use = over.use ?? 'feed';
    return { targetId: randomUUID(), externalId, publishedAt, permalink, use, hasVideo: over.kind === 'video' };
  };
  const reel = { kind: 'video', use: 'reel', contentType: 'video/mp4' } as const;
  const figuresOf = async (post: InsightsSubject, by = account): Promise<PostInsightsAnswer> => {
    for await (const one of world.adapter.fetchPostInsights('instagram', by, [post], within())) return one;
    throw new Error('no answer');
  };
  const read = (post: InsightsSubject, answer: PostInsightsAnswer) => {
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    const { fields = [] } = answer;
    const mapped = postFiguresOf('instagram', post.use, answer.raw, { hasVideo: post.hasVideo, fields });
    assert.ok(mapped.kind === 'figures');
    assert.deepEqual(mapped.odd, []);
    return mapped.figures;
  };
  const calls = () => world.http.calls.map(({ url }) => decodeURIComponent(url.replace(/^.*?\/v27\.0/, '')));

  t('a post costs three calls, and has all that the rules of Instagram read', async () => {
    const post = await posted();
    state().advance(2 * hourMs);
    const from = calls().length;
    const figures = read(post, await figuresOf(post));
    const { impressions, reach, likes, comments, shares, saves, totalInteractions, reposts } = figures;
    assert.deepEqual(
      [impressions, reach, likes, comments, shares, saves, totalInteractions, reposts],
      [100, 80, 6, 2, 1, 2, 10, 0],
    );
    const { follows, profileVisits, profileActivity, permalink } = figures;
    assert.deepEqual(
      [follows, profileVisits, profileActivity, permalink],
      [1, 4, { BIO_LINK_CLICKED: 2, EMAIL: 1 }, post.permalink],
    );
    const metrics = 'views,reach,shares,total_interactions,reposts,likes,comments,saved,follows,profile_visits';
    assert.deepEqual(calls().slice(from), [
      `/${post.externalId}?fields=id,permalink`,
      `/${post.externalId}/insights?metric=${metrics}`,
      `/${post.externalId}/insights?metric=profile_activity&breakdown=action_type`,
    ]);
  });

  t('a reel has its own metrics, and none of the profile', async () => {
    const post = await posted(account, reel);
    state().advance(2 * hourMs);
    const figures = read(post, await figuresOf(post));
    const { impressions, videoViews, watchTimeMinutes, avgViewDurationSeconds, skipRate, saves } = figures;
    assert.deepEqual(
      [impressions, videoViews, watchTimeMinutes, avgViewDurationSeconds, skipRate, saves],
      [100, 100, 4, 4, '0.3150', 2],
    );
    assert.deepEqual([figures.follows, figures.profileActivity], [null, null]);
    assert.ok(state().calls.every(({ status }) => status === 200));
  });

  t('a story is asked for until its 24 hours are over: taps on its link by the login of Facebook alone', async () => {
    for (const by of ['ig', 'fb'] as const) {
      const owner = await world.account({ by });
      const post = await posted(owner, { use: 'story' });
      const young = read(post, await figuresOf(post, owner));
      assert.ok(young.impressions === null, 'few have seen it');
      state().advance(3 * hourMs);
      const figures = read(post, await figuresOf(post, owner));
      const { impressions, comments, navigation, linkClicks, likes } = figures;
      assert.deepEqual([impressions, comments, likes], [150, 3, null]);
      assert.deepEqual(navigation, { forward: 31, tap_back: 3, exit: 9, next_story: 2 });
      assert.deepEqual(linkClicks, by === 'fb' ? 6 : null);
      state().advance(20 * hourMs + 59 * 60_000);
      assert.equal((await figuresOf(post, owner)).kind, 'reported');
      state().advance(60_000);
      assert.equal((await figuresOf(post, owner)).kind, 'removed', 'a story ends by itself, and its figures stay');
    }
  });

  t('13: a metric that Instagram has retired costs no other', async () => {
    const post = await posted();
    state().advance(hourMs);
    const retired = {
      status: 400,
      body: { error: { code: 100, message: '(#100) metric[4] must be one of the following values' } },
    };
    world.network.script({ route: insights, says: 'reposts', times: 2, then: { answer: retired } });
    const figures = read(post, await figuresOf(post));
    assert.deepEqual([figures.impressions, figures.likes, figures.reposts, figures.follows], [50, 3, null, 1]);
    assert.equal(calls().filter((url) => url.includes('/insights?')).length, 12);
    world.network.script({ route: insights, says: 'profile_activity', then: { answer: retired } });
    assert.deepEqual(read(post, await figuresOf(post)).profileActivity, null);
  });

  t('a post is removed where Instagram shows neither it nor a list with it; else it is only not found', async () => {
    const [gone, hidden, closed] = [await posted(), await posted(), await posted()];
    state().deleted.add(gone.externalId);
    assert.equal((await figuresOf(gone)).kind, 'removed');
    // Meta was seen not to find what is there.
    state().hiddenMedia.add(hidden.externalId);
    assert.equal((await figuresOf(hidden)).kind, 'unavailable');
    state().deleted.add(closed.externalId);
    world.network.script({ route: 'GET /:id/media', then: { answer: problems.unavailable } });
    assert.equal((await figuresOf(closed)).kind, 'unavailable');
    world.network.script({ route: 'GET /:id/media', then: { answer: problems.token_expired } });
    assert.equal((await figuresOf(closed)).kind, 'reauth_required');
  });

  t('without the permission a post has no figures, and stays; of old media Instagram has none', async () => {
    const other = await world.account({ scopes: scopesOf.ig.filter((one) => !one.endsWith('insights')) });
    assert.equal((await figuresOf(await posted(other), other)).kind, 'unavailable');
    assert.equal((await figuresOf(await posted(other, { use: 'story' }), other)).kind, 'unavailable');
    assert.equal((await world.adapter.fetchAccountInsights('instagram', other, within())).kind, 'unavailable');
    const post = await posted();
    world.network.script({ route: insights, times: 20, then: { answer: ofFigures.before_conversion } });
    assert.equal((await figuresOf(post)).kind, 'unavailable');
  });

  /** At 08:30 in Berlin it is the evening before in California. */
  const clock = () => Date.parse('2026-03-10T06:30:00.000Z');

  t(
    'an account is asked for by days of California, its views by kind, its followers now and what they are',
    async () => {
      const adapter = world.open({ clock });
      const from = calls().length;
      const answer = await adapter.fetchAccountInsights('instagram', account, within());
      assert.ok(answer.kind === 'reported', JSON.stringify(answer));
      assert.equal(answer.figuresOf, '2026-03-08');
      const days = ['07', '06', '05', '04', '03', '02'].map((day) => `2026-03-${day}`);
      assert.deepEqual(
        answer.earlier?.map(({ day }) => day),
        days,
      );
      const mapped = accountFiguresOf('instagram', answer.raw);
      assert.ok(mapped.kind === 'figures');
      const { followerCount, profileViews, accountsEngaged, profileLinkTaps, videoViews, contentPlays } =
        mapped.figures;
      assert.deepEqual([followerCount, profileViews, accountsEngaged, profileLinkTaps], [1_234, 11, 7, 3]);
      assert.deepEqual([videoViews, contentPlays], [90, 120]);
      assert.deepEqual(mapped.demographics, {
        ...{
          country: { DE: 1_234 },
          city: { 'Berlin, Germany': 1_234 },
          age: { '25-34': 1_234 },
          gender: { F: 1_234 },
        },
      });
      assert.equal(answer.profile?.username, account.username);
      const windows = calls().flatMap((url) => {
        const { searchParams } = new URL(url, 'http://instagram');
        const [since, until] = [searchParams.get('since'), searchParams.get('until')];
        return since === null ? [] : [[since, until].map((one) => new Date(Number(one) * 1_000).toISOString())];
      });
      // The clocks go forward on the eighth, which has 23 hours.
      assert.deepEqual(windows[0], ['2026-03-08T08:00:00.000Z', '2026-03-09T07:00:00.000Z']);
      assert.equal(calls().length - from, 19);
    },
  );

  t(
    'visits of the profile, which were announced as gone, cost no other figure; few followers are told less of',
    async () => {
      const small = await world.account({ person: world.network.person({ followers: 12 }) });
      const retired = { status: 400, body: { error: { code: 100, message: '(#100) metric[2] must be one of' } } };
      world.network.script({ route: insights, says: 'profile_views', times: 99, then: { answer: retired } });
      const answer = await world.adapter.fetchAccountInsights('instagram', small, within());
      assert.ok(answer.kind === 'reported');
      const mapped = accountFiguresOf('instagram', answer.raw);
      assert.ok(mapped.kind === 'figures');
      const { followerCount, profileViews = null, accountsEngaged } = mapped.figures;
      assert.deepEqual([followerCount, profileViews, accountsEngaged], [12, null, 7]);
      assert.equal(mapped.demographics ?? null, null);
    },
  );

  t('an app that has used much of its calls rests its figures, and posts go on', async () => {
    const post = await posted();
    const headers = { 'x-app-usage': '{"call_count":85,"total_time":2,"total_cputime":2}' };
    const route = 'GET /:id/content_publishing_limit';
    world.network.script({ route, then: { answer: { status: 200, body: { data: [] }, headers } } });
    await posted();
    assert.equal((await figuresOf(post)).kind, 'rate_limited');
    await posted();
  });
});

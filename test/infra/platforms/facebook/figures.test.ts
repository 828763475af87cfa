/** Figures of Facebook as our tables read them: all that the contract names, what is left out, and what is gone. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { accountDays, type InsightsSubject } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { allScopes, problems } from '#test/support/networks/facebook/index.ts';
import { type FacebookAccount, type FacebookWorld, facebookWorld } from '#test/support/networks/facebook/world.ts';
import { suite } from '#test/support/suite.ts';

const dayMs = 86_400_000;
const within = () => AbortSignal.timeout(5_000);

suite('figures of facebook', { timeoutMs: 60_000 }, (t) => {
  let world: FacebookWorld;
  let account: FacebookAccount;
  t.before.each(async () => {
    world = await facebookWorld();
    account = await world.account();
  });
  t.after.each(() => world.close());

  const published = async (over: Partial<PublishRequest> = {}, by = account): Promise<InsightsSubject> => {
    const asked = world.request(by, { content: randomUUID(), ...over });
    const { outcome } = await world.publish(asked);
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    const use =
      asked.overrides.contentType === 'reel' ? 'reel' : asked.overrides.contentType === 'story' ? 'story' : 'feed';
    const hasVideo = asked.media.some(({ kind }) => kind === 'video');
    return { targetId: randomUUID(), externalId, publishedAt, use, hasVideo };
  };
  const asked = async (post: InsightsSubject, by = account) => {
    const answers = [];
    for await (const one of world.source.fetchPostInsights('facebook', by, [post], within())) answers.push(one);
    return answers[0];
  };
  const read = async (post: InsightsSubject, by = account) => {
    const answer = await asked(post, by);
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    const mapped = postFiguresOf('facebook', post.use, answer.raw, { hasVideo: post.hasVideo });
    assert.ok(mapped.kind === 'figures' && mapped.odd.length === 0, JSON.stringify(mapped));
    return mapped.figures as unknown as Record<string, unknown>;
  };

  // Spec, "Reported by": what of Facebook's is here.
  const ofEach = ['impressions', 'reach', 'likes', 'comments', 'shares', 'clicks', 'permalink', 'reactionsByType'];
  const ofVideos = ['videoViews', 'watchTimeMinutes', 'audienceRetention', 'follows'];

  t('a text has everything that our contract says Facebook reports of it, reactions by type', async () => {
    const post = await published();
    world.network.state.advance(dayMs);
    const figures = await read(post);
    for (const name of [...ofEach, 'clicksByType']) {
      assert.ok(figures[name] !== null && figures[name] !== undefined, name);
    }
    assert.deepEqual(figures.reactionsByType, { like: 96, love: 24, sad: 24, angry: 24 });
    assert.deepEqual([figures.likes, figures.comments, figures.shares], [168, 24, 24]);
  });

  t('a video of the feed and a reel have theirs, each by its own metrics', async () => {
    for (const over of [{ media: [world.video()] }, { media: [world.reel()], overrides: { contentType: 'reel' } }]) {
      const post = await published(over);
      world.network.state.advance(dayMs);
      const figures = await read(post);
      for (const name of [...ofEach, ...ofVideos])
        assert.ok(figures[name] !== null && figures[name] !== undefined, name);
      assert.equal(figures.videoViews, post.use === 'reel' ? 720 : 480);
      assert.equal(figures.videoCompletions, post.use === 'reel' ? null : 120);
      assert.equal((figures.audienceRetention as readonly unknown[]).length, 40);
    }
  });

  t('13: a metric that Facebook has retired costs no other one', async () => {
    world.network.state.retired.add('post_clicks_by_type').add('total_video_complete_views');
    const post = await published({ media: [world.video()] });
    world.network.state.advance(dayMs);
    const figures = await read(post);
    assert.deepEqual([figures.clicks, figures.videoViews, figures.impressions], [96, 480, 2_160]);
    for (const name of ['clicksByType', 'videoCompletions'])
      assert.equal(typeof figures[name] === 'number', false, name);
    const of = await world.source.fetchAccountInsights('facebook', account, within());
    assert.ok(of.kind === 'reported', JSON.stringify(of));
    const mapped = accountFiguresOf('facebook', of.raw);
    assert.ok(mapped.kind === 'figures' && typeof mapped.figures.contentPlays === 'number');
  });

  t('permissions that the owner left out leave out what they are for', async () => {
    const without = (scope: string) =>
      world.account(
        {},
        allScopes.filter((one) => one !== scope),
      );
    const deaf = await without('pages_read_user_content');
    const post = await published({}, deaf);
    world.network.state.advance(dayMs);
    const figures = await read(post, deaf);
    assert.deepEqual([typeof figures.likes, figures.shares, figures.clicks], ['undefined', 24, 96]);
    const blind = await without('read_insights');
    const other = await published({}, blind);
    world.network.state.advance(dayMs);
    const few = await read(other, blind);
    assert.deepEqual([few.likes, typeof few.impressions], [168, 'undefined']);
  });

  t('a story has no figures, and none are asked for', async () => {
    const post = await published({ media: [world.photo()], overrides: { contentType: 'story' } });
    const from = world.network.state.calls.length;
    const answer = await asked(post);
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    assert.ok(world.network.state.calls.slice(from).every(({ path }) => !path.endsWith('insights')));
  });

  t('100/33 of a post that the page still lists is no removal; of one that it lists no more it is', async () => {
    const post = await published();
    world.network.script({ route: 'GET /:id', says: post.externalId, then: { answer: problems.object_missing } });
    assert.equal((await asked(post))?.kind, 'unavailable');
    world.network.state.deleted.add(post.externalId.split('_')[1] ?? '');
    assert.equal((await asked(post))?.kind, 'removed');
  });

  t('the page has its followers now, seven days of California, and where its followers are', async () => {
    const answer = await world.source.fetchAccountInsights('facebook', account, within());
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    const { earlier = [], figuresOf, profile } = answer;
    assert.equal(earlier.length, accountDays - 1);
    assert.equal(new Set([figuresOf, ...earlier.map(({ day }) => day)]).size, accountDays);
    assert.equal(profile?.displayName, 'Café Ada');
    const mapped = accountFiguresOf('facebook', answer.raw);
    assert.ok(mapped.kind === 'figures' && mapped.odd.length === 0, JSON.stringify(mapped));
    const { followerCount, profileViews, profileLinkTaps, contentPlays } = mapped.figures;
    for (const one of [followerCount, profileViews, profileLinkTaps, contentPlays]) assert.equal(typeof one, 'number');
    world.network.state.retired.clear();
    const former = await world.source.fetchAccountInsights('facebook', account, within());
    assert.ok(former.kind === 'reported');
    const all = accountFiguresOf('facebook', former.raw);
    assert.ok(all.kind === 'figures' && typeof all.figures.videoViews === 'number');
  });

  t('an app of which Facebook says that 80 % is used reads no figures for some minutes, and posts', async () => {
    const post = await published();
    const headers = { 'x-app-usage': '{"call_count":81,"total_time":2,"total_cputime":1}' };
    const body = { id: post.externalId };
    world.network.script({
      route: 'GET /:id',
      says: post.externalId,
      then: { answer: { status: 200, body, headers } },
    });
    assert.equal((await asked(post))?.kind, 'rate_limited');
    await published();
  });
});

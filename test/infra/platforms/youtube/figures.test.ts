/** Figures of YouTube as our tables read them: what is fresh, what is late, what is left out, and what is gone. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountDays, type InsightsSubject } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { allScopes, problems } from '#test/support/networks/youtube/index.ts';
import { type YouTubeAccount, type YouTubeWorld, youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';

const dayMs = 86_400_000;
const within = () => AbortSignal.timeout(5_000);
const rich = { quota: { inserts: 1_000, units: 100_000 } };

suite('figures of youtube', { timeoutMs: 90_000 }, (t) => {
  let world: YouTubeWorld;
  let account: YouTubeAccount;
  t.before.each(async () => {
    world = await youtubeWorld(rich);
    account = await world.account();
  });
  t.after.each(() => world.close());

  const published = async (): Promise<InsightsSubject> => {
    const { outcome } = await world.publish(world.request(account, { content: randomUUID() }));
    assert.ok(outcome.kind === 'published');
    const { externalId, publishedAt } = outcome;
    return { targetId: randomUUID(), externalId, publishedAt, use: 'feed', hasVideo: true };
  };
  const asked = async (posts: readonly InsightsSubject[], by = account) => {
    const answers = [];
    for await (const one of world.source.fetchPostInsights('youtube', by, posts, within())) answers.push(one);
    return answers;
  };
  const read = async (post: InsightsSubject, by = account) => {
    const [answer] = await asked([post], by);
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    const mapped = postFiguresOf('youtube', 'feed', answer.raw, { hasVideo: true });
    assert.ok(mapped.kind === 'figures' && mapped.odd.length === 0, JSON.stringify(mapped));
    return mapped.figures;
  };
  const paths = () => world.network.state.calls.map(({ path }) => path);

  t('a video of today has the counts that are fresh, and no report is asked for', async () => {
    const post = await published();
    world.network.state.advance(10_000);
    const figures = await read(post);
    assert.deepEqual([figures.videoViews, figures.likes, figures.comments], [10, 1, 0]);
    assert.notEqual(typeof figures.watchTimeMinutes, 'number');
    assert.ok(!paths().includes('/v2/reports'));
  });

  t('a video of last week has everything that our contract says YouTube reports', async () => {
    const post = await published();
    world.network.state.advance(7 * dayMs);
    const figures = await read(post);
    for (const name of [
      ...(['videoViews', 'likes', 'comments', 'shares', 'watchTimeMinutes', 'avgViewDurationSeconds'] as const),
      ...(['avgViewPercentage', 'subscribersGained', 'subscribersLost'] as const),
    ]) {
      assert.equal(typeof figures[name], 'number', name);
    }
    const { audienceRetention, trafficSources, audienceBreakdown } = figures as unknown as Record<string, never[]>;
    assert.equal(audienceRetention?.length, 100);
    assert.deepEqual(audienceRetention?.[0], { position: 0.01, ratio: 1.2 });
    assert.deepEqual(Object.keys(trafficSources ?? {}), ['YT_SEARCH', 'RELATED_VIDEO', 'SUBSCRIBER']);
    assert.deepEqual(Object.keys(audienceBreakdown ?? {}).toSorted(), ['ageGroup', 'country', 'deviceType', 'gender']);
  });

  t('fifty videos cost one call; of a year’s worth the counts come by the batch', async () => {
    const posts: InsightsSubject[] = [];
    for (let at = 0; at < 51; at += 1) posts.push(await published());
    const before = paths().length;
    assert.ok((await asked(posts)).every(({ kind }) => kind === 'reported'));
    assert.deepEqual(paths().slice(before), ['/youtube/v3/videos', '/youtube/v3/videos']);
  });

  t('a report that YouTube refuses is left out, and so are all where the owner did not allow them', async () => {
    const post = await published();
    world.network.state.advance(7 * dayMs);
    world.network.script({
      route: 'GET /v2/reports',
      says: 'audienceWatchRatio',
      then: { answer: problems.no_report },
    });
    const some = await read(post);
    assert.equal(typeof some.watchTimeMinutes, 'number');
    assert.ok(!Array.isArray(some.audienceRetention));
    const channel = world.network.state.channels.get(account.externalId);
    assert.ok(channel !== undefined);
    const few = await world.accountOf(
      channel,
      allScopes.filter((one) => !one.includes('analytics')),
    );
    const counts = await read(post, few);
    assert.equal(typeof counts.videoViews, 'number');
    assert.notEqual(typeof counts.watchTimeMinutes, 'number');
  });

  t('a limit of the reports is one of the answer, and is not hidden behind the counts', async () => {
    const post = await published();
    world.network.state.advance(7 * dayMs);
    world.network.script({ route: 'GET /v2/reports', then: { answer: problems.user_rate } });
    const [answer] = await asked([post]);
    assert.equal(answer?.kind, 'rate_limited');
  });

  t('a private video is not gone, a deleted one is', async () => {
    const [hidden, gone] = [await published(), await published()];
    Object.assign(world.network.state.video(hidden.externalId) ?? {}, { status: { privacyStatus: 'private' } });
    world.network.state.deleted.add(gone.externalId);
    assert.deepEqual(
      (await asked([hidden, gone])).map(({ kind }) => kind),
      ['reported', 'removed'],
    );
  });

  t('a channel has its subscribers now, and the days of California that YouTube has finished', async () => {
    const answer = await world.source.fetchAccountInsights('youtube', account, within());
    assert.ok(answer.kind === 'reported');
    assert.equal(answer.figuresOf, world.network.state.day(2));
    assert.equal(answer.earlier?.length, accountDays - 1);
    assert.deepEqual(
      answer.earlier?.map(({ day }) => day),
      Array.from({ length: accountDays - 1 }, (_, at) => world.network.state.day(at + 3)),
    );
    const mapped = accountFiguresOf('youtube', answer.raw);
    assert.ok(mapped.kind === 'figures' && mapped.odd.length === 0);
    assert.deepEqual([mapped.figures.followerCount, mapped.figures.videoViews], [15_300, 30_000]);
    assert.equal(answer.profile?.displayName, 'Café Ada');
  });
});

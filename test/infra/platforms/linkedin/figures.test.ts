/** Figures of members, of videos and of accounts, and what LinkedIn leaves out of them. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { problems } from '#test/support/networks/linkedin/index.ts';
import { type LinkedInAccount, type LinkedInWorld, linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(10_000);
const folder = mkdtempSync(path.join(tmpdir(), 'linkedin-figures-'));
const file = path.join(folder, 'video');

suite('figures of linkedin', (t) => {
  let world: LinkedInWorld;
  t.before(() => {
    writeFileSync(file, '');
    truncateSync(file, 90_000);
  });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  t.before.each(async () => {
    world = await linkedinWorld();
  });
  t.after.each(() => world.network.close());

  let texts = 0;
  const posted = async (account: LinkedInAccount, hasVideo = false): Promise<InsightsSubject> => {
    texts += 1;
    const media = hasVideo ? [mediaOf(file, { kind: 'video', contentType: 'video/mp4', bytes: 90_000 })] : [];
    const { outcome } = await world.publish(world.request(account, { content: `Post ${texts}`, media }));
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    return { targetId: account.id, externalId, publishedAt, use: 'feed', hasVideo };
  };
  const asked = async (account: LinkedInAccount, posts: readonly InsightsSubject[]) => {
    const answers: PostInsightsAnswer[] = [];
    for await (const one of world.source.fetchPostInsights('linkedin', account, posts, within())) answers.push(one);
    return answers;
  };
  const figuresOf = ({ hasVideo }: InsightsSubject, answer: PostInsightsAnswer | undefined) => {
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    const read = postFiguresOf('linkedin', 'feed', answer.raw, { hasVideo });
    assert.ok(read.kind === 'figures');
    return read.figures;
  };
  const calls = () => world.network.state.calls.length;

  t('a day that is none is left out of the figures of a page', async () => {
    const account = await world.organization();
    const elements = [1e300, -1e300, world.network.state.now()].map((start) => ({ timeRange: { start, end: start } }));
    world.network.script({
      route: 'GET /rest/organizationPageStatistics',
      then: { answer: { status: 200, body: { elements } } },
    });
    const answer = await world.source.fetchAccountInsights('linkedin', account, within());
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    assert.equal(answer.figuresOf, new Date(world.network.state.now()).toISOString().slice(0, 10));
    assert.equal(answer.earlier, undefined);
  });

  t('of a member’s posts each metric is asked for, and of a video two more', async () => {
    const account = await world.member();
    const [text, video] = [await posted(account), await posted(account, true)];
    world.network.state.advance(7 * 60_000);
    const before = calls();
    const [first, second] = await asked(account, [text, video]);
    assert.equal(calls() - before, 9 + 11);
    assert.deepEqual(figuresOf(text, first), {
      ...{ impressions: 7, reach: 7, likes: 7, comments: 7, shares: 7, saves: 7, clicks: null },
      ...{ clicksByType: { LINK_CLICKS: 7 }, follows: 7, profileVisits: 7, videoViews: null, watchTimeMinutes: null },
      ...Object.fromEntries(Object.entries(figuresOf(text, first)).filter(([, figure]) => figure === null)),
    });
    const ofVideo = figuresOf(video, second);
    assert.deepEqual([ofVideo.videoViews, ofVideo.watchTimeMinutes], [7, 7]);
  });

  t('13: one metric that a version does not know costs the others nothing', async () => {
    const account = await world.member();
    const post = await posted(account);
    world.network.state.unknownMetrics.add('POST_SAVE').add('LINK_CLICKS');
    const [answer] = await asked(account, [post]);
    const figures = figuresOf(post, answer);
    assert.equal(figures.impressions, 0);
    assert.ok(!('saves' in figures) && !('clicksByType' in figures));
  });

  t('a member who may not see figures, and a post that is gone, have none, and no post counts as removed', async () => {
    const person = world.network.person();
    const account = await world.member(person, ['openid', 'profile', 'w_member_social']);
    const post = await posted(account);
    const [refused] = await asked(account, [post]);
    assert.ok(refused?.kind === 'unavailable');
    assert.match(refused.reason, /Not enough permissions/);
    const full = await world.member(person);
    world.network.state.deleted.add(post.externalId);
    const [gone] = await asked(full, [post]);
    assert.equal(gone?.kind, 'unavailable');
    const followers = await world.source.fetchAccountInsights('linkedin', account, within());
    assert.equal(followers.kind, 'unavailable');
  });

  t('of a page’s posts ten are asked for at once, shares apart from others', async () => {
    const account = await world.organization();
    const posts: InsightsSubject[] = [];
    for (let at = 0; at < 12; at += 1) posts.push(await posted(account));
    posts.push(await posted(account, true));
    world.network.state.advance(60_000);
    const before = calls();
    const answers = await asked(account, posts);
    assert.equal(calls() - before, 3 + 3 + 5);
    for (const [at, answer] of answers.entries()) {
      const figures = figuresOf(posts[at] as InsightsSubject, answer);
      assert.deepEqual([figures.impressions, figures.reach, figures.likes], [10, 6, 1]);
      assert.deepEqual(figures.reactionsByType, { like: 1 });
    }
    const video = figuresOf(posts[12] as InsightsSubject, answers[12]);
    assert.deepEqual([video.videoViews, video.watchTimeMinutes], [1, 0]);
  });

  t('a post without any activity has zeros, though LinkedIn leaves it out', async () => {
    const account = await world.organization();
    const post = await posted(account);
    const figures = figuresOf(post, (await asked(account, [post]))[0]);
    assert.deepEqual([figures.impressions, figures.likes, figures.comments], [0, 0, 0]);
  });

  t('a post that one call does not find is asked for once more before it counts as removed', async () => {
    const account = await world.organization();
    const post = await posted(account);
    const results = { status: 200, body: { results: {}, errors: { [post.externalId]: { status: 404 } } } };
    world.network.script({ route: 'GET /rest/posts', then: { answer: results } });
    assert.equal((await asked(account, [post]))[0]?.kind, 'unavailable');
    world.network.state.deleted.add(post.externalId);
    assert.equal((await asked(account, [post]))[0]?.kind, 'removed');
  });

  t('a page shows its figures to admins alone, and reactions that are refused cost no other figure', async () => {
    const editor = await world.organization('CONTENT_ADMINISTRATOR');
    const post = await posted(editor);
    const [refused] = await asked(editor, [post]);
    assert.ok(refused?.kind === 'unavailable');
    const account = await world.organization();
    const own = await posted(account);
    world.network.script({ route: 'GET /rest/socialMetadata', then: { answer: problems.access_denied } });
    const figures = figuresOf(own, (await asked(account, [own]))[0]);
    assert.ok(figures.impressions === 0 && !('reactionsByType' in figures));
    world.network.script({ route: 'GET /rest/socialMetadata', then: { answer: problems.member_day } });
    const [limited] = await asked(account, [own]);
    assert.ok(limited?.kind === 'rate_limited');
    assert.match(limited.retryAt, /T00:00:00\.000Z$/);
  });

  t('an organization has followers, views of seven days and demographics; a member followers', async () => {
    const account = await world.organization();
    const answer = await world.source.fetchAccountInsights('linkedin', account, within());
    assert.ok(answer.kind === 'reported');
    const today = Math.floor(world.network.state.now() / 86_400_000) * 86_400_000;
    assert.equal(answer.figuresOf, new Date(today - 86_400_000).toISOString().slice(0, 10));
    const read = accountFiguresOf('linkedin', answer.raw);
    assert.ok(read.kind === 'figures');
    assert.deepEqual([read.figures.followerCount, read.figures.profileViews], [310, 46]);
    assert.deepEqual(read.demographics?.geo, { 'urn:li:geo:101282230': 205 });
    const days = answer.earlier?.map(({ raw }) => accountFiguresOf('linkedin', raw));
    assert.deepEqual(
      days?.map((one) => one.kind === 'figures' && one.figures.profileViews),
      [45, 44, 43, 42, 41, 40],
    );
    const member = await world.source.fetchAccountInsights('linkedin', await world.member(), within());
    assert.ok(member.kind === 'reported' && member.figuresOf === null && member.earlier === undefined);
    const own = accountFiguresOf('linkedin', member.raw);
    assert.equal(own.kind === 'figures' && own.figures.followerCount, 1_532);
  });

  t('one call that LinkedIn refuses costs an organization no other figure', async () => {
    const account = await world.organization();
    for (const route of ['GET /rest/organizationPageStatistics', 'GET /rest/networkSizes/:id']) {
      world.network.script({ route, then: { answer: problems.access_denied } });
      const answer = await world.source.fetchAccountInsights('linkedin', account, within());
      assert.ok(answer.kind === 'reported');
      const read = accountFiguresOf('linkedin', answer.raw);
      assert.ok(read.kind === 'figures' && read.odd.length === 0);
      const { followerCount, profileViews } = read.figures;
      assert.deepEqual([followerCount, profileViews].map((one) => typeof one === 'number').filter(Boolean).length, 1);
    }
  });

  t('figures leave half of what the app may call in a day to posts', async () => {
    const account = await world.organization();
    const { adapter, source } = world.again({ LINKEDIN_APP_BUDGET: '4' });
    const answer = await source.fetchAccountInsights('linkedin', account, within());
    assert.ok(answer.kind === 'rate_limited', answer.kind);
    assert.match(answer.retryAt, /T00:00:00\.000Z$/);
    assert.equal(world.network.state.calls.length, 2);
    for (const content of ['One', 'Two', 'Three']) {
      const { outcome } = await world.publish(world.request(account, { content }), adapter);
      assert.equal(outcome.kind, content === 'Three' ? 'rate_limited' : 'published');
    }
    assert.equal(world.network.state.calls.length, 4);
  });
});

/** Figures of posts and accounts of Threads: what is asked for, and what an answer that lacks some is worth. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { InsightsSubject, PostInsightsAnswer } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { allScopes, problems } from '#test/support/networks/threads/index.ts';
import { type ThreadsWorld, threadsWorld } from '#test/support/networks/threads/world.ts';
import { suite } from '#test/support/suite.ts';

const within = () => AbortSignal.timeout(5_000);
type Account = Awaited<ReturnType<ThreadsWorld['account']>>;

suite('figures of threads', (t) => {
  let world: ThreadsWorld;
  let account: Account;
  t.before.each(async () => {
    world = await threadsWorld();
    account = await world.account();
  });
  t.after.each(() => world.close());

  const state = () => world.network.state;
  const posted = async (by = account) => {
    const { outcome } = await world.publish(world.request(by, { content: randomUUID() }));
    assert.ok(outcome.kind === 'published');
    const { externalId, publishedAt, permalink } = outcome;
    return { targetId: randomUUID(), externalId, publishedAt, permalink, use: 'feed' as const, hasVideo: false };
  };
  const figuresOf = async (post: InsightsSubject, by = account): Promise<PostInsightsAnswer> => {
    for await (const one of world.adapter.fetchPostInsights('threads', by, [post], within())) return one;
    throw new Error('no answer');
  };
  const read = (answer: PostInsightsAnswer) => {
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    const mapped = postFiguresOf('threads', 'feed', answer.raw, { hasVideo: false });
    assert.ok(mapped.kind === 'figures');
    return mapped.figures;
  };
  const calls = () => world.http.calls.map(({ url }) => decodeURIComponent(url.replace(world.network.origin, '')));

  t('a post costs two calls, and has all that the rules of Threads read', async () => {
    const post = await posted();
    state().advance(2 * 3_600_000);
    const from = calls().length;
    const figures = read(await figuresOf(post));
    const { impressions, likes, comments, shares, reposts, quotes, totalInteractions, permalink } = figures;
    assert.deepEqual([impressions, likes, comments, shares, reposts, quotes], [100, 6, 2, 1, 2, 0]);
    assert.deepEqual([totalInteractions, permalink], [11, post.permalink]);
    assert.deepEqual(calls().slice(from), [
      `/v1.0/${post.externalId}?fields=id,permalink`,
      `/v1.0/${post.externalId}/insights?metric=views,likes,replies,reposts,quotes,shares`,
    ]);
  });

  t('13: a metric that Threads has retired costs no other', async () => {
    const post = await posted();
    world.network.script({
      route: 'GET /:id/insights',
      says: 'shares',
      times: 2,
      then: { answer: problems.feature_missing },
    });
    const figures = read(await figuresOf(post));
    assert.deepEqual([figures.impressions, figures.shares ?? null], [0, null]);
    assert.equal(calls().filter((url) => url.includes('/insights?')).length, 7);
  });

  t('a post is removed where Threads shows neither it nor a list with it; else it is only not shown', async () => {
    const [gone, hidden, closed] = [await posted(), await posted(), await posted()];
    state().deleted.add(gone.externalId);
    assert.equal((await figuresOf(gone)).kind, 'removed');
    world.network.script({ route: 'GET /:id', says: hidden.externalId, then: { answer: problems.object_missing } });
    assert.equal((await figuresOf(hidden)).kind, 'unavailable');
    state().deleted.add(closed.externalId);
    world.network.script({ route: 'GET /:id/threads', then: { answer: problems.unavailable } });
    assert.equal((await figuresOf(closed)).kind, 'unavailable');
    world.network.script({ route: 'GET /:id/threads', then: { answer: problems.token_expired } });
    assert.equal((await figuresOf(closed)).kind, 'reauth_required');
    const [asked] = calls().filter((url) => url.includes('/threads?fields=id&'));
    const { since, until } = Object.fromEntries(new URL(asked ?? '', 'http://threads').searchParams);
    const at = Math.floor(Date.parse(gone.publishedAt) / 1_000);
    assert.deepEqual([Number(since), Number(until)], [at - 120, at + 120]);
  });

  t('without the permission a post has no figures, and stays', async () => {
    const other = await world.account(
      undefined,
      allScopes.filter((one) => one !== 'threads_manage_insights'),
    );
    assert.equal((await figuresOf(await posted(other), other)).kind, 'unavailable');
    assert.equal((await world.adapter.fetchAccountInsights('threads', other, within())).kind, 'unavailable');
  });

  /** At 08:30 in Berlin it is the evening before in California. */
  const clock = () => Date.parse('2026-03-10T06:30:00.000Z');

  t('an account is asked for by days of California, its followers now, its visitors and taps of each day', async () => {
    const adapter = world.open({ clock });
    const answer = await adapter.fetchAccountInsights('threads', account, within());
    assert.ok(answer.kind === 'reported', JSON.stringify(answer));
    assert.equal(answer.figuresOf, '2026-03-08');
    const days = ['07', '06', '05', '04', '03', '02'].map((day) => `2026-03-${day}`);
    assert.deepEqual(
      answer.earlier?.map(({ day }) => day),
      days,
    );
    const mapped = accountFiguresOf('threads', answer.raw);
    assert.ok(mapped.kind === 'figures');
    const { followerCount, profileViews, profileLinkTaps } = mapped.figures;
    assert.deepEqual([followerCount, profileViews, profileLinkTaps], [1_234, 10, 7]);
    assert.deepEqual(mapped.demographics, {
      ...{ country: { US: 1_234 }, city: { 'Berlin, Germany': 1_234 }, age: { '25-34': 1_234 }, gender: { F: 1_234 } },
    });
    assert.equal(answer.profile?.username, account.username);
    const windows = calls().flatMap((url) => {
      const { searchParams } = new URL(url, 'http://threads');
      const [since, until] = [searchParams.get('since'), searchParams.get('until')];
      return since === null ? [] : [[since, until].map((one) => new Date(Number(one) * 1_000).toISOString())];
    });
    // The clocks go forward on the eighth, which has 23 hours.
    assert.deepEqual(windows.slice(0, 2), [
      ['2026-03-08T08:00:00.000Z', '2026-03-09T07:00:00.000Z'],
      ['2026-03-07T08:00:00.000Z', '2026-03-08T08:00:00.000Z'],
    ]);
    assert.equal(calls().length, 13);
  });

  t('of an account without a linked one, and with few followers, Threads tells less, which is no failure', async () => {
    const small = await world.account(world.network.person({ isLinked: false, followers: 12 }));
    const answer = await world.adapter.fetchAccountInsights('threads', small, within());
    assert.ok(answer.kind === 'reported');
    const mapped = accountFiguresOf('threads', answer.raw);
    assert.ok(mapped.kind === 'figures');
    assert.equal(mapped.figures.followerCount ?? null, null);
    assert.equal(mapped.figures.profileViews, 10);
    assert.ok(answer.fields?.includes('followerCount'));
    assert.equal(calls().filter((url) => url.includes('follower_demographics')).length, 1);
  });

  t('a day that Threads does not answer about is left out, and the newest one is asked for again', async () => {
    const route = 'GET /:id/threads_insights';
    const second = '1772784000';
    const adapter = world.open({ clock });
    world.network.script({ route, says: `since=${second}`, then: { answer: problems.unavailable } });
    const answer = await adapter.fetchAccountInsights('threads', account, within());
    assert.ok(answer.kind === 'reported');
    assert.equal(answer.earlier?.length, 5);
    world.network.script({ route, then: { answer: problems.user_limited } });
    assert.equal((await adapter.fetchAccountInsights('threads', account, within())).kind, 'rate_limited');
  });
});

/** Figures of TikTok: of public posts, also of those that were not public yet when they went out. */
import assert from 'node:assert/strict';
import type { InsightsAccount, InsightsSubject } from '#contracts/ports/platform-insights.ts';
import { accountFiguresOf, postFiguresOf } from '#domain/platforms/read-figures.ts';
import { allScopes, problems } from '#test/support/networks/tiktok/index.ts';
import { type TikTokWorld, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';

const never = new AbortController().signal;

suite('figures of tiktok', (t) => {
  let world: TikTokWorld;
  let account: InsightsAccount & { readonly scopes: readonly string[] };
  t.before.each(async () => {
    world = await tiktokWorld();
    account = await world.account();
  });
  t.after.each(() => world.close());

  const posted = async (privacyLevel: string): Promise<InsightsSubject> => {
    const { outcome } = await world.publish(world.request(account, { overrides: { privacyLevel } }));
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { externalId, publishedAt } = outcome;
    return { targetId: externalId, externalId, publishedAt, use: 'feed', hasVideo: true };
  };
  const asked = async (...posts: readonly InsightsSubject[]) => {
    const all = [];
    for await (const one of world.source.fetchPostInsights('tiktok', account, posts, never)) all.push(one);
    return all;
  };
  const queries = () => world.network.state.calls.filter(({ path }) => path === '/v2/video/query/').length;

  t('reads four counters and the address, by the table of the rules', async () => {
    const [answer] = await asked(await posted('PUBLIC_TO_EVERYONE'));
    assert.ok(answer?.kind === 'reported');
    const read = postFiguresOf('tiktok', 'feed', answer.raw, { hasVideo: true });
    assert.ok(read.kind === 'figures' && read.odd.length === 0);
    const { videoViews, likes, comments, shares, permalink, reach } = read.figures;
    assert.deepEqual([videoViews, likes, comments, shares, reach], [5_300, 410, 22, 17, null]);
    assert.match(String(permalink), /^https:\/\/www\.tiktok\.com\/@user_\d+\/video\/\d+$/);
  });

  t('of a post that the public sees later it asks by the id that TikTok gave since', async () => {
    world.network.state.publicMs = 3_600_000;
    const post = await posted('PUBLIC_TO_EVERYONE');
    assert.match(post.externalId, /^v_pub_file~/);
    const [early] = await asked(post);
    assert.ok(early?.kind === 'reported');
    assert.deepEqual([early.raw, early.fields, queries()], [{}, [], 0]);
    world.network.state.advance(3_600_000);
    const [later] = await asked(post);
    assert.ok(later?.kind === 'reported');
    const id = (later.raw as { readonly id?: string }).id;
    assert.equal(id, world.network.state.posts[0]?.postId);
    assert.ok(!Number.isSafeInteger(Number(id)), 'an id beyond 2^53');
  });

  t('a private post has no figures, and is not gone', async () => {
    const [answer] = await asked(await posted('SELF_ONLY'));
    assert.ok(answer?.kind === 'reported');
    const read = postFiguresOf('tiktok', 'feed', answer.raw, { hasVideo: true, fields: answer.fields ?? [] });
    assert.ok(read.kind === 'figures', JSON.stringify(read));
    assert.equal(
      Object.values(read.figures).some((one) => typeof one === 'number'),
      false,
    );
  });

  t('a post that TikTok no longer knows by its publish_id is not gone for that', async () => {
    const post = await posted('SELF_ONLY');
    world.network.script({
      route: 'POST /v2/post/publish/status/fetch/',
      then: { answer: problems.invalid_publish_id },
    });
    const [answer] = await asked(post);
    assert.ok(answer?.kind === 'reported', JSON.stringify(answer));
    assert.deepEqual([answer.raw, answer.fields], [{}, []]);
  });

  t('twenty posts cost one call, and a limit holds for those behind it', async () => {
    const posts: InsightsSubject[] = [];
    for (let at = 0; at < 21; at += 1) posts.push(await posted('PUBLIC_TO_EVERYONE'));
    assert.deepEqual(new Set((await asked(...posts)).map(({ kind }) => kind)), new Set(['reported']));
    assert.equal(queries(), 2);
    world.network.script({ route: 'POST /v2/video/query/', then: { answer: problems.rate_limit_exceeded } });
    const limited = await asked(...posts);
    assert.deepEqual([limited.length, new Set(limited.map(({ kind }) => kind))], [21, new Set(['rate_limited'])]);
    assert.equal(queries(), 3);
  });

  t('of the account it tells the followers, and the nickname that TikTok wants to be shown', async () => {
    const answer = await world.source.fetchAccountInsights('tiktok', account, never);
    assert.ok(answer.kind === 'reported');
    const read = accountFiguresOf('tiktok', answer.raw);
    assert.ok(read.kind === 'figures');
    assert.equal(read.figures.followerCount, 12_045);
    const person = world.network.state.people.get(account.externalId);
    assert.deepEqual([answer.profile?.displayName, answer.profile?.username], [person?.nickname, person?.username]);
    const without = allScopes.filter((one) => one !== 'user.info.stats');
    const blind = await world.account(person, without);
    const refused = await world.source.fetchAccountInsights('tiktok', { ...account, id: blind.id }, never);
    assert.equal(refused.kind, 'unavailable');
  });
});

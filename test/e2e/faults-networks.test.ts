import assert from 'node:assert/strict';
import { check, untilQuiet } from '#test/faults/check.ts';
import { type Moment, moments } from '#test/faults/live-moments.ts';
import type { LivePost } from '#test/faults/live-networks.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Live accounts of X, YouTube, TikTok, Facebook and Telegram, whose publishers die at calls to the network. `make chaos` comes to every such call. */

/** One before a network takes the call, and one after, of uploads and of creates. */
const some: readonly Moment[] = [
  'X POST /2/media/upload/:id/append, after it is taken, not the first',
  'X POST /2/tweets, after it is taken',
  'YouTube PUT last, after it is taken',
  'TikTok PUT /video/, after it is taken',
  'Facebook POST /:id/video_reels finish, after it is taken',
  'Facebook POST /:id/feed, after it is taken',
  'Telegram sendVideo, after it is taken',
].flatMap((name) => moments.filter((one) => one.name === name));

/** For 4 s: each look at X is an event, so that nothing is quiet before the last one. */
const reconcileDelaysMs = [0, ...Array.from({ length: 8 }, () => 500)];

suite('faults of live networks', { drawn: true, costs: 26, timeoutMs: 240_000 }, (t) => {
  let world: FaultWorld;
  const random = seeded('faults of live networks');

  t.before(async () => {
    const [{ url: databaseUrl }, { url: analyticsUrl }] = await Promise.all([preparedDatabase(), testClickHouse()]);
    world = await FaultWorld.open({
      databaseUrl,
      analyticsUrl,
      random,
      live: true,
      times: { reconcileDelaysMs },
    });
    await world.begin(['api', 'projections', 'outcomes', 'publisher-1', 'publisher-2']);
  });
  t.after(() => world?.close());

  t('publishers that die at a call to a network publish nothing twice, and say what they do not know', async () => {
    const { live, checked } = world;
    assert.ok(live !== null);
    const done = new AbortController();
    const consenting = live.keepConsenting(done.signal);
    assert.equal(some.length, 7);
    await Promise.all([
      world.dieAtMoments(some),
      live.load.run('thread'),
      live.load.run('commented'),
      live.load.run('storm'),
    ]);
    const open = await untilQuiet(checked, 60_000 * patience);
    done.abort();
    await consenting;
    await live.load.repeat(100);
    const verdict = await check(checked);
    process.stdout.write(`  ${world.kills} deaths, ${verdict.targets} targets ${JSON.stringify(verdict.statuses)}\n`);
    assert.deepEqual([...open, ...world.violations, ...verdict.violations], []);
    assert.ok((verdict.statuses.published ?? 0) > 0);
  });

  t('the checks see a post that is there twice, is lost, has another parent, or that nobody wanted', async () => {
    const { checked } = world;
    const { live } = checked;
    assert.ok(live !== null);
    const saying = async (change: (posts: readonly LivePost[]) => readonly LivePost[]): Promise<string> =>
      (await check({ ...checked, live: { ...live, posts: () => change(live.posts()) } })).violations.join('\n');
    const last = live.posts().findLast(({ platform, replyTo }) => platform === 'x' && replyTo === null);
    assert.ok(last !== undefined);
    assert.match(await saying((posts) => [...posts, { ...last, externalId: '1' }]), /was created 2 times in part/);
    const without = (posts: readonly LivePost[]) => posts.filter(({ externalId }) => externalId !== last.externalId);
    assert.match(await saying(without), /and the network has undefined/);
    assert.match(await saying((posts) => [...without(posts), { ...last, replyTo: '1' }]), /in reply to 1, not/);
    assert.match(await saying((posts) => [...posts, { ...last, text: 'Buy now' }]), /nobody wanted .* Buy now/);
  });
});

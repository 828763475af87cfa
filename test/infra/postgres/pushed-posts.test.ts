import assert from 'node:assert/strict';
import type { Pool } from 'pg';
import { type Pushed, pushedLimits } from '#contracts/ports/pushed-posts.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('posts that a network told of, in Postgres', (t) => {
  let pool: Pool;
  let posts: PostgresPushedPosts;
  let places = 0;
  t.before(async () => {
    pool = openPool({ url: (await preparedDatabase()).url });
    posts = new PostgresPushedPosts({ pool });
  });
  t.after(() => pool?.end());

  const place = () => {
    places += 1;
    return String(-1_001_234_000_000 - places);
  };
  const keep = (pushed: Partial<Pushed>) => posts.keep({ reactions: [], discussions: [], comments: [], ...pushed });
  const reacted = (where: string, post: number, at: number, total: number) => ({
    ...{ place: where, post, at, said: { reactions: [{ total_count: total }] } },
  });
  const counted = async (where: string, post: number) => (await posts.of(where, [post])).get(post);

  t('the newest reactions of a post stay, whatever the order in which they come', async () => {
    const [mine, other] = [place(), place()];
    await keep({ reactions: [reacted(mine, 5, 100, 1), reacted(mine, 5, 101, 2), reacted(mine, 6, 100, 7)] });
    await keep({ reactions: [reacted(mine, 5, 99, 9)] });
    assert.deepEqual(await counted(mine, 5), { reactions: { reactions: [{ total_count: 2 }] }, comments: null });
    await keep({ reactions: [reacted(mine, 5, 101, 3)] });
    assert.deepEqual((await counted(mine, 5))?.reactions, { reactions: [{ total_count: 3 }] });
    assert.deepEqual([...(await posts.of(mine, [5, 6, 7])).keys()].toSorted(), [5, 6]);
    assert.deepEqual(await posts.of(other, [5]), new Map());
    assert.deepEqual(await posts.of(mine, []), new Map());
  });

  t('comments count once each, also when they are told again, and none before the first', async () => {
    const [mine, group] = [place(), place()];
    const comment = (message: number, root = 900) => ({ group, root, message });
    await keep({ comments: [comment(899)] });
    await keep({ discussions: [{ place: mine, post: 5, group, root: 900 }] });
    assert.deepEqual(await counted(mine, 5), { reactions: null, comments: null }, 'none pushed is not zero');
    await keep({ comments: [comment(901), comment(902), comment(902), comment(903, 1)] });
    await keep({ comments: [comment(902), comment(904)] });
    await keep({ discussions: [{ place: mine, post: 5, group, root: 900 }] });
    assert.equal((await counted(mine, 5))?.comments, 3);
    await keep({ reactions: [reacted(mine, 5, 1, 4)] });
    assert.deepEqual(await counted(mine, 5), { reactions: { reactions: [{ total_count: 4 }] }, comments: 3 });
  });

  t('two listeners that overlap count each comment once', async () => {
    const [mine, group] = [place(), place()];
    await keep({ discussions: [{ place: mine, post: 5, group, root: 900 }] });
    const comments = Array.from({ length: 50 }, (_, at) => ({ group, root: 900, message: 901 + at }));
    await Promise.all([keep({ comments }), keep({ comments }), keep({ comments })]);
    assert.equal((await counted(mine, 5))?.comments, 50);
  });

  t('a place keeps its newest posts', async () => {
    const [mine, other] = [place(), place()];
    await keep({ reactions: [reacted(other, 1, 1, 1)] });
    const all = Array.from({ length: pushedLimits.postsPerPlace + 5 }, (_, at) => reacted(mine, at + 1, 1, 1));
    await keep({ reactions: all });
    const kept = await posts.of(mine, [1, 5, 6, all.length]);
    assert.deepEqual([...kept.keys()].toSorted(), [all.length, 6].toSorted());
    assert.ok((await counted(other, 1)) !== undefined);
  });

  t('posts end with their place, and after 90 days', async () => {
    const [mine, old, other] = [place(), place(), place()];
    for (const one of [mine, old, other]) await keep({ reactions: [reacted(one, 1, 1, 1)] });
    await posts.forget([mine]);
    const aged = 'update ops.pushed_posts set pushed_at = now() - $2 * interval $$1 day$$ where place = $1';
    await pool.query(aged, [old, pushedLimits.days + 1]);
    await pool.query(aged, [other, pushedLimits.days - 1]);
    await posts.sweep();
    assert.deepEqual([await counted(mine, 1), await counted(old, 1)], [undefined, undefined]);
    assert.ok((await counted(other, 1)) !== undefined);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { renderPost } from '#projections/models/posts.ts';
import { getPost } from '#projections/queries/one-post.ts';
import { ShownPosts } from '#services/api/posts/shown.ts';
import { composedWorld } from '#test/support/composing.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed } = await composedWorld(['x', 'bluesky']);
const twin = testTwinIdOf(world.workspaceId);

interface Made {
  readonly id: string;
  readonly targets: readonly { readonly id: string }[];
}

suite('a post that was shown before', (t) => {
  const { pool } = world.deps;
  const make = async (): Promise<Made> => {
    const answer = await tester.post('/posts', composed.body());
    assert.equal(answer.status, 200, answer.text);
    await world.settled();
    return answer.data as unknown as Made;
  };
  /** As its rows are, rendered anew. */
  const rendered = async (id: string): Promise<string> => {
    const found = await getPost(pool, twin, id);
    assert.ok(found !== null);
    return JSON.stringify(renderPost(found.post, found.targets));
  };

  t('is not read again while nothing changes, and is after each change of it or a target', async () => {
    const { id, targets } = await make();
    const posts = new ShownPosts(pool);
    const first = await posts.get(twin, id);
    assert.equal(first?.json, await rendered(id));
    assert.equal(await posts.get(twin, id), first, 'the same object: neither read nor rendered');
    let last = first;
    const changes = [
      () => tester.post(`/post-targets/${targets[0]?.id}/reschedule`, { scheduledAt: '2027-03-01T10:00:00.000Z' }),
      () => tester.post(`/post-targets/${targets[0]?.id}/cancel`),
      () => tester.post(`/posts/${id}/revise`, { content: 'Revised.' }),
      // Counted columns change between two revisions of the post.
      () => pool.query(`update read.posts_v1 set counts = counts || '{"published": 1}' where id = $1`, [id]),
    ];
    for (const change of changes) {
      await change();
      await world.settled();
      const next = await posts.get(twin, id);
      assert.notEqual(next?.json, last?.json, String(change));
      assert.equal(next?.json, await rendered(id));
      last = next;
    }
  });

  t('is read again once the projection is rebuilt, also where no revision changed', async () => {
    const { id } = await make();
    const posts = new ShownPosts(pool);
    const first = await posts.get(twin, id);
    await pool.query(`update ops.projections set live = live + 1 where name = 'posts'`);
    try {
      const again = await posts.get(twin, id);
      assert.notEqual(again, first);
      assert.equal(again?.json, first?.json);
    } finally {
      await pool.query(`update ops.projections set live = live - 1 where name = 'posts'`);
    }
  });

  t('is no other workspace’s, and nothing is known of a post that does not exist', async () => {
    const { id } = await make();
    const posts = new ShownPosts(pool);
    assert.ok((await posts.get(twin, id)) !== null);
    assert.equal(await posts.get(randomUUID(), id), null);
    assert.equal(await posts.get(twin, randomUUID()), null);
  });

  t('keeps the latest used within its bound', async () => {
    const ids = [(await make()).id, (await make()).id, (await make()).id];
    const [a = '', b = '', c = ''] = ids;
    const { length } = await rendered(a);
    const posts = new ShownPosts(pool, Math.ceil(length * 2.5));
    const [firstA, firstB] = [await posts.get(twin, a), await posts.get(twin, b)];
    assert.equal(await posts.get(twin, a), firstA);
    await posts.get(twin, c);
    assert.ok(posts.characters <= length * 2.5);
    assert.equal(await posts.get(twin, a), firstA, 'used after b');
    assert.notEqual(await posts.get(twin, b), firstB, 'dropped');
  });
});

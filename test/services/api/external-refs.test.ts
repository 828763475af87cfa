import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { externalRefIdOf, testTwinIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: mine } = await composedWorld(['x', 'bluesky']);

suite('externalRef over HTTP', (t) => {
  let count = 0;
  const someRef = (): string => {
    count += 1;
    return `CMS/${count} ä 100%`;
  };
  const create = (more: Record<string, unknown>, key: string = randomUUID()) =>
    tester.post('/posts', mine.body(more), { key });
  const taken = (answer: Answered, postId: string): void => {
    refused(answer, 409, 'already_exists');
    assert.equal((answer.body as { postId?: unknown }).postId, postId);
  };
  const claimsOf = async (ref: string): Promise<readonly string[]> => {
    const id = externalRefIdOf(testTwinIdOf(world.workspaceId), mine.clientId, ref);
    return (await world.store.readStream(`externalref-${id}`)).map(({ type }) => type);
  };

  t('is unique in its client, exact, shown, and kept by a repeat of the call', async () => {
    const externalRef = someRef();
    const key = randomUUID();
    const body = mine.body({ externalRef });
    const made = await tester.post('/posts', body, { key });
    assert.equal(made.status, 200, made.text);
    assert.equal(made.data.externalRef, externalRef);
    assert.deepEqual((await tester.post('/posts', body, { key })).data, made.data);
    assert.deepEqual((await tester.get(`/posts/${made.data.id}`)).data, made.data);
    for (const saveDraft of [true, false]) taken(await create({ externalRef, saveDraft }), made.data.id);
    assert.deepEqual(await claimsOf(externalRef), ['ExternalRefClaimed']);
    // In other letters, or of another client, it is another reference.
    assert.equal((await create({ externalRef: externalRef.toLowerCase() })).status, 200);
    const other = await composer(world, ['x']);
    assert.equal((await tester.post('/posts', other.body({ externalRef }))).status, 200);
    // A refused call leaves its key free.
    const corrected = randomUUID();
    taken(await create({ externalRef }, corrected), made.data.id);
    assert.equal((await create({ externalRef: someRef() }, corrected)).status, 200);
  });

  t('of twenty callers with one reference and keys of their own one makes a post', async () => {
    const externalRef = someRef();
    const all = await Promise.all(Array.from({ length: 20 }, () => create({ externalRef })));
    const [made, ...more] = all.filter(({ status }) => status === 200);
    assert.ok(made !== undefined && more.length === 0, `${all.map(({ status }) => status)}`);
    for (const one of all.filter(({ status }) => status !== 200)) taken(one, made.data.id);
  });

  t('a draft takes, changes and leaves one; what it left is free', async () => {
    const [first, second] = [someRef(), someRef()];
    const { clientId: _client, ...draft } = mine.body();
    const made = await create({ saveDraft: true });
    assert.equal(made.data.externalRef, null);
    const patch = (more: object) => tester.patch(`/posts/${made.data.id}`, { ...draft, ...more });
    assert.equal((await patch({ externalRef: first })).data.externalRef, first);
    assert.equal((await patch({ externalRef: first })).data.revision, 1);
    assert.deepEqual(await claimsOf(first), ['ExternalRefClaimed']);
    taken(await create({ externalRef: first }), made.data.id);
    assert.equal((await patch({ externalRef: second })).status, 200);
    assert.deepEqual(await claimsOf(first), ['ExternalRefClaimed', 'ExternalRefReleased']);
    const next = await create({ externalRef: first });
    assert.equal(next.status, 200, next.text);
    taken(await patch({ externalRef: first }), next.data.id);
    // A member that is not sent returns to its default.
    assert.equal((await patch({})).data.externalRef, null);
    assert.deepEqual(await claimsOf(second), ['ExternalRefClaimed', 'ExternalRefReleased']);
    assert.equal((await patch({ externalRef: second })).status, 200);
    const published = await tester.post(`/posts/${made.data.id}/publish`, {});
    assert.equal(published.data.externalRef, second);
    taken(await create({ externalRef: second }), made.data.id);
  });

  t('a discarded draft leaves it free, and so does the repeat of its deletion', async () => {
    const externalRef = someRef();
    const made = await create({ externalRef, saveDraft: true });
    for (const _ of [1, 2]) assert.equal((await tester.delete(`/posts/${made.data.id}`)).status, 200);
    assert.deepEqual(await claimsOf(externalRef), ['ExternalRefClaimed', 'ExternalRefReleased']);
    const next = await create({ externalRef });
    assert.equal(next.status, 200, next.text);
    // Nor does it take the reference from the post that has it now.
    assert.equal((await tester.delete(`/posts/${made.data.id}`)).status, 200);
    taken(await create({ externalRef }), next.data.id);
    // A canceled post keeps its reference.
    assert.equal((await tester.delete(`/posts/${next.data.id}`)).status, 200);
    taken(await create({ externalRef }), next.data.id);
  });

  t(
    'a death between the discard of a draft and the release: the repeat of the deletion releases it, once',
    async () => {
      const externalRef = someRef();
      const made = await create({ externalRef, saveDraft: true });
      // What such a death leaves behind.
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      await execute(world.store, post, made.data.id, { type: 'Delete', unsettled: [] }, context);
      assert.deepEqual(await claimsOf(externalRef), ['ExternalRefClaimed']);
      for (const _ of [1, 2]) assert.equal((await tester.delete(`/posts/${made.data.id}`)).status, 200);
      assert.deepEqual(await claimsOf(externalRef), ['ExternalRefClaimed', 'ExternalRefReleased']);
      assert.equal((await create({ externalRef })).status, 200);
    },
  );

  t('a key that is limited to clients is not told which post has one, where it may not see that post', async () => {
    const other = await composer(world, ['x']);
    const limits = { mode: 'test', clientIds: [mine.clientId] } as const;
    const { caller: limited } = await world.keyOf(world.workspaceId, world.memberId, limits);
    const { clientId: _client, ...draft } = mine.body();
    const { data: own } = await create({ saveDraft: true });
    /** What the key is told by each operation that takes a reference. */
    const reported = async (externalRef: string): Promise<readonly Answered[]> => [
      await limited.post('/posts', mine.body({ externalRef })),
      await limited.post('/posts/preview', mine.body({ externalRef })),
      await limited.post('/posts/bulk', { posts: [mine.body({ externalRef })] }),
      await limited.patch(`/posts/${own.id}`, { ...draft, externalRef }),
    ];
    const targets = { mode: 'accounts', accountIds: [other.accounts.x] };
    for (const more of [{ targets }, { targets, saveDraft: true }]) {
      const externalRef = someRef();
      const hidden = await create({ externalRef, ...more });
      await world.settled();
      refused(await limited.get(`/posts/${hidden.data.id}`), 404, 'not_found');
      for (const one of await reported(externalRef)) {
        assert.match(one.text, /"already_exists"/);
        assert.ok(!one.text.includes(hidden.data.id), one.text);
      }
      taken(await create({ externalRef }), hidden.data.id);
    }
    const externalRef = someRef();
    const shown = await create({ externalRef });
    for (const one of await reported(externalRef)) assert.ok(one.text.includes(shown.data.id), one.text);
  });

  t('a preview tells of one that a post has', async () => {
    const externalRef = someRef();
    const preview = async (more: object) =>
      (await tester.post('/posts/preview', mine.body({ externalRef, ...more }))).data;
    assert.equal((await preview({})).valid, true);
    const made = await create({ externalRef });
    for (const saveDraft of [true, false]) {
      const { valid, problems } = await preview({ saveDraft });
      assert.equal(valid, false);
      assert.deepEqual(
        (problems as { at: string; code: string; detail: string }[]).map(({ at, code }) => [at, code]),
        [['create', 'already_exists']],
      );
      assert.ok(JSON.stringify(problems).includes(made.data.id));
    }
  });

  t('a post without one costs no append and no claim', async () => {
    const before = await world.head();
    await create({ saveDraft: true });
    assert.deepEqual(
      (await world.eventsAfter(before)).map(({ type }) => type),
      ['PostDrafted'],
    );
  });

  t('posts and targets are found by it', async () => {
    const externalRef = someRef();
    const made = await create({ externalRef });
    const other = await composer(world, ['x']);
    const others = await tester.post('/posts', other.body({ externalRef }));
    await world.settled();
    const ids = async (path: string) => (await tester.get(path)).rows.map(({ id }) => id);
    const query = `externalRef=${encodeURIComponent(externalRef)}`;
    assert.deepEqual(await ids(`/posts?${query}`), [others.data.id, made.data.id]);
    assert.deepEqual(await ids(`/posts?${query}&clientId=${mine.clientId}`), [made.data.id]);
    assert.deepEqual(await ids(`/posts?externalRef=${randomUUID()}`), []);
    const targets = (await tester.get(`/post-targets?${query}`)).rows;
    assert.deepEqual(
      targets.map(({ postId }) => postId).toSorted(),
      [made.data.id, made.data.id, others.data.id].toSorted(),
    );
    const [row] = (await tester.get(`/posts?${query}`)).rows;
    assert.equal(row?.externalRef, externalRef);
  });

  t('is 1 to 100 characters without control characters', async () => {
    for (const externalRef of ['', 'x'.repeat(101), 'a\nb', 'a\u0000', 7, {}])
      refused(await create({ externalRef }), 422, 'validation_failed', ['/externalRef']);
    assert.equal((await create({ externalRef: 'x'.repeat(100) })).status, 200);
    assert.equal((await create({ externalRef: null })).data.externalRef, null);
    refused(await tester.get('/posts?externalRef='), 400, 'invalid_parameter');
  });
});

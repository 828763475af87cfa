import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { notShown } from '#domain/publish-failures.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recyclePost } from '#services/outcomes/recycles.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, tomorrow } from '#test/support/composing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed } = await composedWorld(['facebook']);

suite('targets that their network processes, over HTTP', (t) => {
  const workspaceId = testTwinIdOf(world.workspaceId);
  const made = async (more: Record<string, unknown> = {}, by = composed) => {
    const post = await tester.post('/posts', by.body({ schedule: { type: 'at', scheduledAt: tomorrow() }, ...more }));
    assert.equal(post.status, 200, post.text);
    const [first] = post.data.targets as { id: string }[];
    return { postId: post.data.id, id: first?.id ?? '' };
  };
  /** What a publisher would tell the target. */
  const tell = async ({ postId, id }: { postId: string; id: string }, ...commands: readonly TargetCommand[]) => {
    const options = { partitionKey: postId };
    for (const command of commands) {
      await execute(world.store, target, id, command, contextOf(world.operator, workspaceId), options);
    }
    await world.settled();
  };
  const claim = { attempt: 1, takeover: 0 };
  const [late, until] = ['2099-01-01T00:00:00.000Z', '2099-01-01T06:00:00.000Z'];
  const accept: readonly TargetCommand[] = [
    { type: 'Start', now: late },
    { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: late },
    { type: 'RecordAccepted', ...claim, handle: { id: 'of the network' }, askAt: late, until },
  ];
  const settle = (outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome']): TargetCommand => ({
    ...{ type: 'Settle', by: 'reconcile', now: late, outcome },
  });
  const processing = async (more: Record<string, unknown> = {}, by = composed) => {
    const one = await made(more, by);
    await tell(one, ...accept);
    return one;
  };

  t('shows the state and its limit wherever a target is shown, and nothing of what the network said', async () => {
    const one = await processing();
    const { data, text } = await tester.get(`/post-targets/${one.id}`);
    assert.deepEqual(
      [data.status, data.processingUntil, data.failure, data.retryAt, data.unknownSince, data.attempts],
      ['processing', until, null, null, null, 1],
    );
    assert.doesNotMatch(text, /of the network/);
    assert.deepEqual((await tester.get(`/post-targets?postId=${one.postId}&status=processing`)).rows, [data]);
    assert.deepEqual((await tester.get(`/post-targets?postId=${one.postId}&status=publishing`)).rows, []);
    const post = await tester.get(`/posts/${one.postId}`);
    assert.deepEqual([post.data.status, post.data.counts], ['publishing', { total: 1, processing: 1 }]);
    const listed = await tester.get(`/posts?status=publishing&clientId=${composed.clientId}`);
    assert.ok(listed.rows.some(({ id }) => id === one.postId));
    await tell(one, settle({ kind: 'published', externalId: '17', permalink: null, publishedAt: late }));
    const after = (await tester.get(`/post-targets/${one.id}`)).data;
    assert.deepEqual([after.status, after.processingUntil, after.externalId], ['published', null, '17']);
  });

  t('nothing that changes targets reaches it, and each answer says why', async () => {
    const one = await processing();
    const act = (action: string, body?: unknown) => tester.post(`/post-targets/${one.id}/${action}`, body);
    for (const [action, body, code] of [
      ['cancel', undefined, 'target_not_pending'],
      ['reschedule', { shiftMinutes: 5 }, 'target_not_pending'],
      ['retry', undefined, 'target_not_retryable'],
    ] as const) {
      const refused = await act(action, body);
      assert.deepEqual([refused.status, refused.body.code], [409, code], action);
    }
    const deleted = await tester.request('DELETE', `/posts/${one.postId}`);
    assert.equal(deleted.status, 409, deleted.text);
    const selected = await tester.post('/post-targets/bulk', { action: 'cancel', select: { postId: one.postId } });
    assert.equal(selected.status, 200, selected.text);
    assert.equal((await tester.get(`/post-targets/${one.id}`)).data.status, 'processing');
  });

  t('a revise and a shift pass over it, and move the others', async () => {
    const two = await composer(world, ['facebook', 'x']);
    const campaign = await tester.post('/campaigns', { name: 'Films' });
    const { postId } = await made({ campaignId: campaign.data.id }, two);
    const targets = (await tester.get(`/posts/${postId}`)).data.targets as unknown as {
      id: string;
      platform: string;
    }[];
    const [film, text] = ['facebook', 'x'].map(
      (platform) => targets.find((one) => one.platform === platform)?.id ?? '',
    );
    await tell({ postId, id: film ?? '' }, ...accept);
    const revised = await tester.post(`/posts/${postId}/revise`, { content: 'Better.' });
    assert.deepEqual((revised.data.revise as { skipped: unknown }).skipped, [{ targetId: film, reason: 'processing' }]);
    const shifted = await tester.post(`/campaigns/${campaign.data.id}/shift`, { minutes: 30 });
    assert.equal(shifted.status, 200, shifted.text);
    assert.deepEqual(shifted.data.skipped, [{ targetId: film, reason: 'processing' }]);
    assert.deepEqual((await tester.get(`/post-targets/${text}`)).data.status, 'pending');
  });

  t('is refused by its network: it may be retried; never shown: its outcome is unknown', async () => {
    const refused = await processing();
    await tell(refused, settle({ kind: 'failed', failure }));
    const retried = await tester.post(`/post-targets/${refused.id}/retry`);
    assert.deepEqual([retried.status, retried.data.status], [200, 'pending'], retried.text);
    const lost = await processing();
    await tell(lost, { type: 'RecordNotShown', now: until, failure: notShown, reconcileAt: until });
    const { data } = await tester.get(`/post-targets/${lost.id}`);
    assert.deepEqual(
      [data.status, (data.failure as { code: string }).code, data.processingUntil],
      ['outcome_unknown', 'post_not_shown', null],
    );
    const explained = await tester.get('/errors/post_not_shown');
    assert.notEqual(explained.status, 404, explained.text);
    assert.notEqual(data.unknownSince, null);
  });

  t('accepted × recycle: the first copy is planned once the network shows it, and not before', async () => {
    const one = await processing();
    const planned = async () => {
      await recordOutcomes(world.store, await world.store.readStream(`target-${one.id}`));
      assert.equal(await recyclePost({ store: world.store, now: Date.now, pool: world.pool }, one.postId), false);
      await world.settled();
      const { data } = await tester.get(`/posts/${one.postId}/recycle`);
      return [data.enabled, data.nextAt !== null, data.posted];
    };
    const set = await tester.request('PUT', `/posts/${one.postId}/recycle`, { body: { everyDays: 7, times: 1 } });
    assert.equal(set.status, 200, set.text);
    assert.deepEqual(await planned(), [true, false, 0]);
    await tell(one, settle({ kind: 'published', externalId: '18', permalink: null, publishedAt: late }));
    assert.deepEqual(await planned(), [true, true, 0]);
  });

  t('is out for the quota and for the cadence, as one that is being published', async () => {
    const quota = async () => {
      const { used, scheduled } = (await tester.get('/quota')).data;
      return [Number(used), Number(scheduled)] as const;
    };
    const two = await composer(world, ['facebook']);
    const rule = { platform: null, minIntervalMinutes: 30, perDay: null };
    const context = contextOf(world.operator, workspaceId);
    await execute(world.store, workspace, workspaceId, { type: 'SetCadence', rule }, context);
    await world.settled();
    const [used, scheduled] = await quota();
    const { id } = await processing({ schedule: { type: 'now' } }, two);
    assert.deepEqual(await quota(), [used + 1, scheduled]);
    const dueAt = Date.parse(String((await tester.get(`/post-targets/${id}`)).data.scheduledAt));
    const { nextFreeAt } = (await tester.get(`/accounts/${two.accounts.facebook}/cadence`)).data;
    assert.ok(Date.parse(String(nextFreeAt)) >= dueAt + 30 * 60_000, `free at ${nextFreeAt}`);
  });
});

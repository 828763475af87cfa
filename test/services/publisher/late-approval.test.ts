import assert from 'node:assert/strict';
import { approval } from '#domain/approval.ts';
import { approvalIdOf } from '#domain/ids.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('approvals that come late', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let accounts: readonly Account[] = [];
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    accounts = [await world.connect(clientId, 'x'), await world.connect(clientId, 'bluesky')];
  });
  t.after(() => world.close());

  const approve = async (postId: string): Promise<void> => {
    const decidedBy = world.context().actor;
    const command = { type: 'Decide', decision: 'approve', decidedBy, comment: null } as const;
    const id = approvalIdOf(postId, 1);
    await execute(world.store, approval, id, command, world.context(), { partitionKey: postId });
    await tendApprovals(world.store, postId);
  };

  t('with the rule fail a held target fails at its due time, and a later approval does not bring it back', async () => {
    const running = world.publisher();
    const soon = Date.now() + 700;
    const far = Date.now() + 3_600_000;
    const dueAt = (at: number) => (at === 0 ? soon : far);
    const { postId, targetIds } = await world.schedule(accounts, { dueAt, held: 'fail' });
    const [late = '', other = ''] = targetIds;
    const [state] = await world.all([late], 'failed');
    assert.equal(state?.status === 'failed' && state.failure.code, 'approval_too_late');
    assert.deepEqual(await world.story(`target-${late}`), ['TargetScheduled', 'TargetHeld', 'TargetApprovalLapsed']);
    const lapsed = (await world.store.readStream(`target-${late}`)).at(-1);
    assert.ok(Date.parse(lapsed?.metadata.occurredAt ?? '') >= soon, 'it lapsed before its time');
    await approve(postId);
    assert.deepEqual([(await world.target(late)).status, (await world.target(other)).status], ['failed', 'pending']);
    assert.equal(await world.created(late), 0);
    await running.stop();
  });

  t('the post has its failure, and no publisher is needed for the rule to hold', async () => {
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: Date.now() - 1_000, held: 'fail' });
    await approve(postId);
    for (const id of targetIds) assert.equal((await world.target(id)).status, 'failed');
    const running = world.outcomes();
    await until('the post has failed', async () => (await world.story(`post-${postId}`)).includes('PostFailed'));
    await running.stop();
  });

  t('with the rule publish a held target waits, and goes out at once when it is approved', async () => {
    const running = world.publisher();
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: Date.now() - 1_000, held: 'publish' });
    // A target that is due after it has gone out, so the publisher has passed the held ones over.
    const beside = await world.schedule(accounts);
    await world.all(beside.targetIds, 'published');
    for (const id of targetIds) assert.equal((await world.target(id)).status, 'awaiting_approval');
    await approve(postId);
    await world.all(targetIds, 'published');
    await running.stop();
  });
});

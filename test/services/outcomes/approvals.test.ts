import assert from 'node:assert/strict';
import { approval, type Decision } from '#domain/approval.ts';
import { approvalIdOf } from '#domain/ids.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { sweep } from '#services/outcomes/sweeper.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('approvals that a process left half done', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let accounts: readonly Account[] = [];
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    accounts = [await world.connect(clientId, 'x'), await world.connect(clientId, 'bluesky')];
  });
  t.after(() => world.close());

  const dueAt = Date.now() + 3_600_000;
  /** A process died right after the append that submits the post. */
  const submitted = () => world.schedule(accounts, { dueAt, held: 'publish', fan: false });
  /** A process died right after the append of the decision. */
  const decide = (postId: string, decision: Decision) =>
    execute(
      world.store,
      approval,
      approvalIdOf(postId, 1),
      { type: 'Decide', decision, decidedBy: world.context().actor, comment: 'Because.' },
      world.context(),
      { partitionKey: postId },
    );
  const requested = (postId: string) =>
    until('the request is made', async () => (await world.story(`approval-${approvalIdOf(postId, 1)}`)).length === 1);
  const expected = { approve: 'pending', reject: 'canceled', request_changes: 'canceled' } as const;

  for (const [decision, status] of Object.entries(expected) as [Decision, 'pending' | 'canceled'][]) {
    t(`the outcomes consumer makes the request, and carries ${decision} out`, async () => {
      // Too seldom to help.
      const running = world.outcomes(3_600_000);
      const { postId, targetIds } = await submitted();
      await requested(postId);
      await decide(postId, decision);
      await world.all(targetIds, status);
      await running.stop();
    });
  }

  t('the sweeper does both, where no consumer came to it', async () => {
    const deps = { store: world.store, pool: world.pool, logger: createLogger('test', 'silent') };
    const { signal } = new AbortController();
    const { postId, targetIds } = await submitted();
    const row = async (sql: string, id: string): Promise<string | null> =>
      (await world.pool.query<{ status: string }>(sql, [id])).rows[0]?.status ?? null;
    await until('the post has a row', async () => {
      return (await row(`select status from ${view('posts')} where id = $1`, postId)) === 'pending_approval';
    });
    await sweep(deps, signal);
    assert.deepEqual(await world.story(`approval-${approvalIdOf(postId, 1)}`), ['ApprovalRequested']);
    await decide(postId, 'approve');
    await until('the decision has a row', async () => {
      return (await row('select status from read.approvals where id = $1', approvalIdOf(postId, 1))) === 'approved';
    });
    await sweep(deps, signal);
    await world.all(targetIds, 'pending');
  });
});

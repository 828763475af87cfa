import assert from 'node:assert/strict';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { target } from '#domain/post-target/target.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('publisher and accounts that lapse', (t) => {
  let world: PublishingWorld;
  let clientId: string;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
  });
  t.after(() => world.close());

  const lapse = (id: string) =>
    execute(world.store, account, id, { type: 'RequireReauth', reason: 'test' }, world.context());
  const failureOf = async (id: string) => {
    const state = await world.target(id);
    return state.status === 'failed' ? [state.failure.category, state.failure.code] : state.status;
  };
  const lapsed = ['reauth_required', 'account_reauth_required'];

  t('targets of one account that fail at the same moment report one lapse', async () => {
    const one = await world.connect(clientId, 'threads', 'fails-at-once');
    const posts = await Promise.all([1, 2, 3].map(() => world.schedule([one])));
    const targetIds = posts.flatMap((each) => each.targetIds);
    let calls = 0;
    const dead: PlatformAdapter = {
      boundaryDeadlineMs: 400,
      settleWindowMs: () => 60_000,
      absenceIsProof: () => false,
      listsOwnPosts: () => false,
      reconcile: async () => ({ kind: 'absent' }),
      comment: async () => ({ kind: 'unknown', failure }),
      publish: async () => {
        calls += 1;
        await until('all of them were called', () => calls === targetIds.length);
        return { kind: 'failed', failure: { ...failure, category: 'reauth_required', code: 'token_dead' } };
      },
    };
    const publishers = [1, 2].map(() => world.publisher({}, { adapterOf: () => dead }));
    await world.all(targetIds, 'failed');
    for (const publisher of publishers) await publisher.stop();
    assert.equal(calls, targetIds.length);
    for (const id of targetIds) assert.deepEqual(await failureOf(id), ['reauth_required', 'token_dead']);
    assert.deepEqual(await world.story(`account-${one.id}`), ['AccountConnected', 'AccountReauthRequired']);
  });

  t(
    'a pending target of a lapsed account waits until it is due, and then fails; a renewal does not retry it',
    async () => {
      const publisher = world.publisher();
      const one = await world.connect(clientId, 'bluesky', 'lapses');
      await lapse(one.id);
      const dueAt = Date.now() + 1_200;
      const { postId, targetIds } = await world.schedule([one], { dueAt });
      const [id = ''] = targetIds;
      await world.all([id], 'failed');
      assert.deepEqual(await failureOf(id), lapsed);
      const story = await world.store.readStream(`target-${id}`);
      assert.deepEqual(
        story.map(({ type }) => type),
        ['TargetScheduled', 'TargetFailed'],
      );
      assert.ok(Date.parse(story.at(-1)?.metadata.occurredAt ?? '') >= dueAt, 'it failed before it was due');
      assert.deepEqual(await world.sandbox.creates(id), []);

      await world.connect(clientId, 'bluesky', 'lapses');
      const next = await world.schedule([one]);
      await world.all(next.targetIds, 'published');
      assert.deepEqual(await failureOf(id), lapsed);
      const retry = { type: 'Retry', commandId: uuidv7(), now: new Date().toISOString() } as const;
      await execute(world.store, target, id, retry, world.context(), { partitionKey: postId });
      await world.all([id], 'published');
      await publisher.stop();
    },
  );

  t('an account that is renewed before its target is due: the target is published', async () => {
    const publisher = world.publisher();
    const one = await world.connect(clientId, 'bluesky', 'is-renewed');
    const { targetIds } = await world.schedule([one], { dueAt: Date.now() + 1_200 });
    await lapse(one.id);
    await world.connect(clientId, 'bluesky', 'is-renewed');
    await world.all(targetIds, 'published');
    assert.deepEqual(await world.story(`account-${one.id}`), [
      'AccountConnected',
      'AccountReauthRequired',
      'AccountReauthorized',
    ]);
    await publisher.stop();
  });
});

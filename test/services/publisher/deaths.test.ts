import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { rulesOf } from '#domain/platforms/index.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));

suite('publisher deaths', { drawn: true, costs: 8, timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let provable: Account;
  let unprovable: Account;
  const mortals = new Mortals(script, () => [world.url]);
  const child = mortals.child.bind(mortals);
  const died = mortals.died.bind(mortals);
  const schedule = async (account: Account, text = 'hello'): Promise<string> =>
    (await world.schedule([account], { text })).targetIds[0] ?? '';

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    provable = await world.connect(clientId, 'instagram');
    unprovable = await world.connect(clientId, 'x');
    assert.ok(rulesOf('instagram').publish.absenceIsProof && !rulesOf('x').publish.absenceIsProof);
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.stopAll();
  });
  t.after(() => world.close());

  for (const point of ['after-claim', 'before-boundary', 'after-boundary', 'after-call', 'after-outcome']) {
    t(`killed ${point}: published once by the next worker, or recorded as unknown`, async () => {
      const dying = await child(`publisher:${point}`);
      const id = await schedule(provable);
      await died(dying);
      const publisher = world.publisher();
      await world.all([id], 'published');
      assert.equal(await world.created(id), 1);

      const again = await child(`publisher:${point}`);
      await publisher.stop();
      const other = await schedule(unprovable);
      await died(again);
      const next = world.publisher();
      if (point === 'after-boundary') {
        await world.all([other], 'outcome_unknown');
        assert.equal(await world.created(other), 0);
      } else {
        await world.all([other], 'published');
        assert.equal(await world.created(other), 1);
      }
      await next.stop();
    });
  }

  t('killed after a requeue: published once', async () => {
    const dying = await child('publisher:after-requeue');
    const id = await schedule(provable, 'again [[sandbox:rate_limit once 200ms]]');
    await died(dying);
    const publisher = world.publisher();
    await world.all([id], 'published');
    assert.equal((await world.story(`target-${id}`)).filter((type) => type === 'TargetRequeued').length, 1);
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('killed after a takeover: the next one takes over in the same attempt', async () => {
    const { targetIds, postId } = await world.schedule([provable]);
    const [id = ''] = targetIds;
    const start = { type: 'Start', now: new Date().toISOString() } as const;
    await execute(world.store, target, id, start, world.context(), { partitionKey: postId });
    await died(await child('publisher:after-takeover'));
    const publisher = world.publisher();
    const [state] = await world.all([id], 'published');
    assert.equal(state?.status === 'published' && state.common.attempts, 1);
    assert.equal((await world.story(`target-${id}`)).filter((type) => type === 'TargetPublishTakenOver').length, 2);
    assert.equal(await world.created(id), 1);
    await publisher.stop();
  });

  t('killed between a failure and the report of its token: the next target reports it', async () => {
    const account = await world.connect(await world.client(), 'linkedin', 'token-death-later');
    const dying = await child('publisher:after-outcome');
    const id = await schedule(account);
    await died(dying);
    const publisher = world.publisher();
    await world.all([id], 'failed');
    assert.deepEqual(await world.story(`account-${account.id}`), ['AccountConnected']);
    await world.all([await schedule(account)], 'failed');
    const said = ['AccountConnected', 'AccountReauthRequired'];
    await until('reauth', async () => (await world.story(`account-${account.id}`)).length === 2);
    assert.deepEqual(await world.story(`account-${account.id}`), said);
    await publisher.stop();
  });

  for (const point of ['after-claim', 'before-boundary', 'after-boundary', 'after-call']) {
    t(`asleep ${point} past its lease: its writes after waking are refused`, async () => {
      const sleeper = await child(`publisher:${point}`, 'SIGSTOP');
      const id = await schedule(provable);
      await mortals.asleep(sleeper);
      const publisher = world.publisher();
      await world.all([id], 'published');
      const story = await world.story(`target-${id}`);
      assert.ok(story.includes('TargetPublishTakenOver'), 'taken over');
      await mortals.wakeToEnd(sleeper);
      assert.deepEqual(await world.story(`target-${id}`), story, 'the sleeper wrote');
      assert.equal(await world.created(id), 1);
      await publisher.stop();
    });
  }

  t('no post was created twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});

/** What a network says of an account's limits holds its next posts. */
import assert from 'node:assert/strict';
import { account as accountDecider } from '#domain/account.ts';
import { AccountLimits } from '#services/publisher/account-limits.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('limits of accounts', (t) => {
  let world: PublishingWorld;
  let account: Account;
  let now = Date.now();
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  t.after(() => world.close());

  const limits = (store: Partial<typeof world.store> = world.store) =>
    new AccountLimits({ store: store as typeof world.store, now: () => now, logger: world.logger });
  const full = (ms: number) => [
    { name: '15 minutes', seconds: 900, limit: 3, used: 3, resetsAt: new Date(Date.now() + ms).toISOString() },
  ];
  const events = async (id = account.id) =>
    (await world.store.readStream(`account-${id}`)).filter(({ type }) => type === 'AccountLimitsObserved');

  t('are in the account’s stream after an answer, and its next post waits until the network begins anew', async () => {
    const said = full(60_000);
    const observing = limits();
    observing.observe(account.id, said);
    await observing.close();
    const { state } = await world.store.load(accountDecider, account.id);
    assert.deepEqual(state.status === 'none' ? null : state.observed, said);
    const [event] = await events();
    assert.equal(event?.metadata.workspaceId, world.workspaceId);
    assert.deepEqual(event?.metadata.actor, { type: 'service', id: 'publisher' });
    const publisher = world.publisher();
    const [targetId = ''] = (await world.schedule([account])).targetIds;
    const deferred = await until('the post waits', async () => {
      const stream = await world.store.readStream(`target-${targetId}`);
      return stream.find(({ type }) => type === 'TargetPublishDeferred') ?? null;
    });
    assert.equal(deferred.data.retryAt, said[0]?.resetsAt);
    await publisher.stop();
  });

  t('are looked at twice a minute at most, and written only where they matter', async () => {
    const other = await world.connect(account.clientId, 'x');
    const observing = limits();
    const report = async (used: number) => {
      observing.observe(other.id, [{ ...full(60_000)[0], limit: 100, used } as never]);
      await observing.close();
    };
    await report(1);
    await report(90);
    assert.equal((await events(other.id)).length, 1, 'too soon');
    now += 30_000;
    await report(90);
    assert.equal((await events(other.id)).length, 2);
    now += 30_000;
    await report(91);
    assert.equal((await events(other.id)).length, 2, 'one post more');
  });

  t('of a store that does not answer are left out, and nobody waits', async () => {
    const observing = limits({ load: () => Promise.reject(new Error('gone')) });
    observing.observe(account.id, full(1_000));
    await observing.close();
    const silent = limits({ load: () => new Promise(() => undefined) });
    for (let n = 0; n < 10; n += 1) silent.observe(`account ${n}`, full(1_000));
  });

  t('of an account that does not exist are of nobody', async () => {
    const observing = limits();
    const id = '00000000-0000-4000-8000-000000000000';
    observing.observe(id, full(1_000));
    await observing.close();
    assert.deepEqual(await events(id), []);
  });
});

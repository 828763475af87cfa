import { deepEqual, equal } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountDays } from '#contracts/ports/platform-insights.ts';
import { account } from '#domain/account.ts';
import { refresh } from '#domain/refresh.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { SourceOf } from '#services/insights/deps.ts';
import { suite } from '#test/support/suite.ts';
import { MetricsWorld } from './world.ts';

suite('a refresh of figures', { timeoutMs: 120_000 }, (t) => {
  let world: MetricsWorld;

  t.before(async () => {
    world = await MetricsWorld.open();
    world.start();
  });
  t.after(() => world.close());

  t('fetches accounts and posts, and is complete after their events', async () => {
    const [one, two] = [await world.account('x'), await world.account('facebook')];
    const ids = [
      ...(await world.published([one])),
      ...(await world.published([one])),
      ...(await world.published([two])),
    ];
    await world.received([...ids, one.id, two.id]);
    const refreshId = await world.refresh([one.id, two.id]);
    const [said, ...more] = await world.refreshed(refreshId);
    equal(more.length, 0);
    deepEqual(said?.data, { accountIds: [one.id, two.id].sort(), failedAccountIds: [] });
    for (const id of ids) {
      const [event] = await world.posts.store.readStream(`targetmetrics-${id}`);
      equal(
        (event?.position ?? 0n) < (said?.position ?? 0n) && event !== undefined,
        true,
        'what was fetched is in the log before',
      );
    }
    equal((await world.observedOf(one.id)).length, 1);
    // Facebook tells its last days, each of which is an observation.
    equal((await world.observedOf(two.id)).length, accountDays);
    await world.forgotten(refreshId);
  });

  t('accounts that cannot be polled fail at once and are named', async () => {
    const [gone, dead, well] = [
      await world.account('x'),
      await world.account('x', `metrics-token-death-${Date.now()}`),
      await world.account('x'),
    ];
    const { store } = world.posts;
    await execute(store, account, gone.id, { type: 'Disconnect', reason: 'left' }, world.posts.context());
    const refreshId = await world.refresh([gone.id, dead.id, well.id]);
    const [said] = await world.refreshed(refreshId);
    deepEqual(said?.data, { accountIds: [well.id], failedAccountIds: [gone.id, dead.id].sort() });
  });

  t('tries each account once: no answer, a refusal or an invalid answer counts as failed', async () => {
    const names = ['metrics-down', 'metrics-rate-limit', 'metrics-nonsense'];
    const accounts = await Promise.all(names.map((name) => world.account('x', `${name}-${Date.now()}`)));
    const ids = accounts.map(({ id }) => id).sort();
    const refreshId = await world.refresh(ids);
    const [said] = await world.refreshed(refreshId);
    deepEqual(said?.data, { accountIds: [], failedAccountIds: ids });
  });

  t('finds a new account in its stream, and no account of another workspace', async () => {
    const mine = await world.account('x');
    const theirs = await world.account('x');
    const workspaceId = randomUUID();
    const context = { ...world.posts.context(), workspaceId };
    const create = { type: 'CreateTwin', name: 'Other', timezone: 'UTC', twinOf: randomUUID() } as const;
    await execute(world.posts.store, workspace, workspaceId, create, context);
    const refreshId = randomUUID();
    const command = { type: 'Request', accountIds: [theirs.id] } as const;
    await execute(world.posts.store, refresh, refreshId, command, context);
    const own = await world.refresh([mine.id]);
    await world.refreshed(own);
    equal((await world.observedOf(mine.id)).length, 1);
    const [said] = await world.refreshed(refreshId);
    deepEqual(said?.data, { accountIds: [], failedAccountIds: [theirs.id] });
    equal(said?.metadata.workspaceId, workspaceId);
    equal((await world.observedOf(theirs.id)).length, 0);
  });

  t('counts an account that was observed a moment ago as done', async () => {
    const other = await MetricsWorld.open();
    const { sandbox } = other.posts;
    const patient: SourceOf = () => ({
      insightsVersion: sandbox.insightsVersion,
      minIntervalMs: 60_000,
      maxAheadMs: null,
      fetchPostInsights: (...asked) => sandbox.fetchPostInsights(...asked),
      fetchAccountInsights: (...asked) => sandbox.fetchAccountInsights(...asked),
    });
    other.start({ sourceOf: patient });
    try {
      const one = await other.account('x');
      const [id = ''] = await other.published([one]);
      await other.received([id, one.id]);
      for (let time = 0; time < 2; time += 1) {
        const [said] = await other.refreshed(await other.refresh([one.id]));
        deepEqual(said?.data.failedAccountIds, []);
      }
      equal((await other.observed(id)).length, 1);
      equal((await other.observedOf(one.id)).length, 1);
    } finally {
      await other.close();
    }
  });
});

import { deepEqual, equal, ok } from 'node:assert/strict';
import { account } from '#domain/account.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { dayOf, minuteOf, nextNight } from '#services/insights/schedule.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { counted, MetricsWorld, type Started } from './world.ts';

const hour = 3_600_000;

suite('observations of posts and accounts', { timeoutMs: 180_000 }, (t) => {
  let world: MetricsWorld;
  let observer: Started;

  t.before(async () => {
    world = await MetricsWorld.open();
    observer = world.start();
  });
  t.after(() => world.close());

  t('a published post is first observed after an hour, its account in the next night of its zone', async () => {
    const one = await world.account();
    const [id = ''] = await world.published([one]);
    await world.received([id, one.id]);
    const state = await world.posts.target(id);
    const publishedAt = state.status === 'published' ? Date.parse(state.publishedAt) : 0;
    equal((await world.job(id))?.dueAt.getTime(), publishedAt + hour);
    equal((await world.job(one.id))?.dueAt.getTime(), nextNight(Date.now(), 'Europe/Berlin', one.id));
    ok(minuteOf(one.id) >= 120);
  });

  t('each look is one event with the network’s answer, our figures and the day of the workspace', async () => {
    const [facebook, x] = [await world.account('facebook'), await world.account('x')];
    const ids = [...(await world.published([facebook])), ...(await world.published([x]))];
    await world.received([...ids, facebook.id, x.id]);
    await world.due(...ids, facebook.id, x.id);
    await world.tried(...ids, facebook.id, x.id);
    const [first = ''] = ids;
    const [seen, ...more] = await world.observed(first);
    equal(more.length, 0);
    equal(seen?.accountId, facebook.id);
    equal(seen?.source, 'sandbox/1');
    equal(seen?.platformRemovedAt, null);
    equal(seen?.day, dayOf(seen?.observedAt ?? '', 'Europe/Berlin'));
    equal(typeof seen?.figures.impressions, 'number');
    equal(seen?.figures.saves, null, 'facebook tells no saves');
    ok(typeof seen?.raw === 'object' && seen.raw !== null);
    const [ofAccount] = await world.observedOf(facebook.id);
    equal(typeof ofAccount?.figures.followerCount, 'number');
    // Once more: another look, another event.
    await world.posts.sandbox.advance(5 * hour);
    await world.due(first);
    await world.tried(first);
    equal((await world.observed(first)).length, 2);
    const events = await world.posts.store.readStream(`targetmetrics-${first}`);
    equal(events[0]?.metadata.partitionKey, ((await world.posts.target(first)) as ScheduledTarget).common.postId);
    deepEqual(events[0]?.metadata.actor, { type: 'service', id: 'metrics' });
    ok((await counted(observer.registry, 'insights_fetched_total')) >= 5);
  });

  t('sixty posts of an account are requested in calls of fifty, each post once', async () => {
    const one = await world.account('bluesky');
    const ids = (await Promise.all(Array.from({ length: 60 }, () => world.published([one])))).flat();
    await world.received(ids);
    await world.due(...ids);
    await world.tried(...ids);
    for (const id of ids) equal((await world.observed(id)).length, 1);
  });

  t('a rate limit delays the account until the time that the network names, and loses no look', async () => {
    const one = await world.account('x', `metrics-rate-limit-once-${Date.now()}`);
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    const before = await counted(observer.registry, 'insights_failures_total', { failure: 'rate_limited' });
    const begun = Date.now();
    await world.due(id);
    await world.tried(id);
    ok(Date.now() - begun >= 1_500, 'it was asked again before its time');
    equal(await counted(observer.registry, 'insights_failures_total', { failure: 'rate_limited' }), before + 1);
    equal((await world.observed(id)).length, 1);
  });

  t('an expired token is recorded once for the account, which is not polled until it is reconnected', async () => {
    const name = `metrics-token-death-once-${Date.now()}`;
    const one = await world.account('linkedin', name);
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    await world.due(id);
    const connected = async () => {
      const sql = 'select connected from ops.insights_accounts where account_id = $1';
      return (await world.posts.pool.query(sql, [one.id])).rows[0]?.connected;
    };
    await until('it is held', async () => (await connected()) === false);
    deepEqual(await world.posts.story(`account-${one.id}`), ['AccountConnected', 'AccountReauthRequired']);
    equal((await world.observed(id)).length, 0);
    ok(((await world.job(id))?.dueAt.getTime() ?? 0) <= Date.now(), 'it is still due');
    await world.posts.connect(one.clientId, 'linkedin', name);
    await world.tried(id);
    equal((await world.observed(id)).length, 1);
  });

  t('an unavailable network is asked again after a minute', async () => {
    const one = await world.account('x', `metrics-down-${Date.now()}`);
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    await world.due(id);
    await world.tried(id);
    const job = await world.job(id);
    equal(job?.failures, 1);
    ok(Math.abs((job?.dueAt.getTime() ?? 0) - Date.now() - 60_000) < 10_000);
    equal((await world.observed(id)).length, 0);
  });

  t('an invalid answer is parked with its reason, and no event is appended', async () => {
    const one = await world.account('x', `metrics-nonsense-${Date.now()}`);
    const [id = ''] = await world.published([one]);
    await world.received([id, one.id]);
    await world.due(id, one.id);
    await world.tried(id, one.id);
    equal((await world.observed(id)).length, 0);
    equal((await world.observedOf(one.id)).length, 0);
    const parked = await world.parked(one.id);
    equal(parked.length, 2);
    deepEqual(parked.map(({ target_id }) => target_id).sort(), [id, null].sort());
    for (const { reason, raw } of parked) ok(reason.length > 0 && raw.length > 2 && raw.length <= 16_384);
    ok((await counted(observer.registry, 'insights_parked_total', { platform: 'x' })) >= 2);
  });

  t('a missing post is recorded as removed on the second look, an hour later by the network’s clock', async () => {
    const one = await world.account('instagram');
    const [id = ''] = await world.published([one], '[[sandbox:removed 2h]]');
    await world.received([id]);
    await world.due(id);
    await world.tried(id);
    await world.posts.sandbox.advance(3 * hour);
    await world.due(id);
    await world.tried(id);
    const { goneAt = null } = (await world.job(id)) ?? {};
    ok(goneAt !== null);
    equal((await world.observed(id)).length, 1);
    // At once is too early.
    await world.due(id);
    await world.tried(id);
    equal((await world.observed(id)).length, 1);
    await world.posts.sandbox.advance(hour);
    await world.due(id);
    await until('it is over', async () => (await world.job(id)) === null);
    const [last, final] = await world.observed(id);
    equal(final?.platformRemovedAt, goneAt.toISOString());
    deepEqual(final?.figures, last?.figures);
    deepEqual((await world.posts.story(`target-${id}`)).at(-1), 'TargetRemovedOnPlatform');
    const state = await world.posts.target(id);
    equal(state.status === 'published' && state.removedAt, goneAt.toISOString());
  });

  t('the day follows the workspace’s zone at the time of the look', async () => {
    const { store, workspaceId } = world.posts;
    const change = { type: 'ChangeProfile', name: 'North', timezone: 'Pacific/Kiritimati' } as const;
    await execute(store, workspace, workspaceId, change, world.posts.context());
    const zone = async () =>
      (await world.posts.pool.query('select timezone from ops.insights_zones where id = $1', [workspaceId])).rows[0];
    await until('the zone', async () => (await zone())?.timezone === 'Pacific/Kiritimati');
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    await world.due(id);
    await world.tried(id);
    const [seen] = await world.observed(id);
    equal(seen?.day, dayOf(seen?.observedAt ?? '', 'Pacific/Kiritimati'));
  });

  t('a disconnected account and its posts are not polled', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    await world.received([id]);
    const { store } = world.posts;
    await execute(store, account, one.id, { type: 'Disconnect', reason: 'left' }, world.posts.context());
    const sql = 'select connected from ops.insights_accounts where account_id = $1';
    await until('held', async () => (await world.posts.pool.query(sql, [one.id])).rows[0]?.connected === false);
    await world.due(id);
    // Somebody else's turn comes and goes.
    const [other = ''] = await world.published([await world.account('x')]);
    await world.received([other]);
    await world.due(other);
    await world.tried(other);
    equal((await world.observed(id)).length, 0);
  });

  t('the process is ready while it looks for work', async () => {
    for (const check of await observer.readiness.ask()) ok(check.ok, JSON.stringify(check));
    equal(await counted(observer.registry, 'insights_in_work'), 0);
  });
});

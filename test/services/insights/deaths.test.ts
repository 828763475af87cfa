import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { accountDays } from '#contracts/ports/platform-insights.ts';
import { account } from '#domain/account.ts';
import { Mortals } from '#test/support/mortals.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { MetricsWorld } from './world.ts';

const script = fileURLToPath(new URL('./insights-process.ts', import.meta.url));
const hour = 3_600_000;
/** In the order in which what a person wants fresh meets them. */
const points = [
  ...['consume:before-commit', 'consume:after-commit', 'insights:leased', 'insights:after-fetch'],
  ...['insights:after-observed', 'insights:after-tried', 'insights:after-refreshed'],
];

suite('metrics deaths', { drawn: true, costs: 7, timeoutMs: 180_000 }, (t) => {
  let world: MetricsWorld;
  const mortals = new Mortals(script, () => [world.posts.url]);

  t.before(async () => {
    world = await MetricsWorld.open();
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.stopWorkers();
  });
  t.after(() => world.close());

  t('a refresh whose worker dies at every fault point: one event for each look, and it is completed once', async () => {
    const one = await world.account('facebook');
    const ids = [...(await world.published([one])), ...(await world.published([one]))];
    const first = world.start();
    await world.received([...ids, one.id]);
    await first.stop();
    const refreshId = await world.refresh([one.id]);
    for (const point of points) await mortals.died(await mortals.child(point));
    const last = world.start();
    assert.equal((await world.refreshed(refreshId)).length, 1);
    await world.tried(...ids, one.id);
    for (const id of ids) assert.equal((await world.observed(id)).length, 1);
    // One look, which tells each of its network's last days once.
    const days = (await world.observedOf(one.id)).map(({ figuresDay }) => figuresDay);
    assert.deepEqual([days.length, new Set(days).size], [accountDays, accountDays]);
    await world.forgotten(refreshId);
    await last.stop();
  });

  t(
    'an account that its network shows under another name, with a crash on each side of its event: recorded once',
    async () => {
      const one = await world.account('bluesky', 'renamed-acme');
      const first = world.start();
      await world.received([one.id]);
      await first.stop();
      await world.due(one.id);
      const story = () => world.posts.story(`account-${one.id}`);
      await mortals.died(await mortals.child('insights:after-observed'));
      assert.deepEqual(await story(), ['AccountConnected']);
      await mortals.died(await mortals.child('insights:after-profile'));
      const last = world.start();
      await world.tried(one.id);
      assert.deepEqual(await story(), ['AccountConnected', 'AccountProfileChanged']);
      const { state } = await world.posts.store.load(account, one.id);
      assert.ok(state.status === 'connected');
      assert.deepEqual(
        [state.username, state.displayName, state.avatarUrl],
        ['renamed-acme', 'Renamed Acme (new)', null],
      );
      // The next look shows the same name.
      await world.due(one.id);
      await world.tried(one.id);
      assert.equal((await story()).length, 2);
      await last.stop();
    },
  );

  t('a removed post, with a crash on each side of its event: recorded once in both streams', async () => {
    const one = await world.account('instagram');
    const [id = ''] = await world.published([one], '[[sandbox:removed]]');
    const first = world.start();
    await world.received([id]);
    await world.due(id);
    await until('it seems gone', async () => (await world.job(id))?.goneAt instanceof Date);
    await first.stop();
    await world.posts.sandbox.advance(2 * hour);
    await world.due(id);
    for (const point of ['insights:after-gone-observed', 'insights:after-gone']) {
      await mortals.died(await mortals.child(point));
    }
    const last = world.start();
    await until('it is over', async () => (await world.job(id)) === null);
    const observed = await world.observed(id);
    assert.equal(observed.length, 1);
    assert.deepEqual(observed[0]?.figures, {}, 'nobody had seen any');
    const story = await world.posts.story(`target-${id}`);
    assert.equal(story.filter((type) => type === 'TargetRemovedOnPlatform').length, 1);
    await last.stop();
  });

  t('a refresh is completed although the worker that found its post removed dies', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one], '[[sandbox:removed]]');
    const first = world.start();
    await world.received([id, one.id]);
    // It is the post alone that is waited for.
    await world.due(id);
    await until('it seems gone', async () => (await world.job(id))?.goneAt instanceof Date);
    await first.stop();
    await world.posts.sandbox.advance(2 * hour);
    const refreshId = await world.refresh([one.id]);
    await mortals.died(await mortals.child('insights:after-gone'));
    // No worker asks the network before the insights process has read the events.
    const last = world.start({ pollMs: 400 });
    const [said] = await world.refreshed(refreshId);
    assert.deepEqual(said?.data, { accountIds: [one.id], failedAccountIds: [] });
    await last.stop();
  });

  t('a worker that slept past its lease with an answer changes nothing when it wakes', async () => {
    const one = await world.account('x');
    const [id = ''] = await world.published([one]);
    const first = world.start();
    await world.received([id]);
    await first.stop();
    await world.due(id);
    const sleeper = await mortals.child('insights:after-fetch', 'SIGSTOP');
    await mortals.asleep(sleeper);
    const next = world.start();
    await world.tried(id);
    const before = await world.job(id);
    assert.equal((await world.observed(id)).length, 1);
    await mortals.wakeToEnd(sleeper);
    assert.equal((await world.observed(id)).length, 1);
    assert.deepEqual(await world.job(id), before);
    await next.stop();
  });

  t('of two workers one polls an account at a time, and each look is one event', async () => {
    const accounts = [await world.account('x'), await world.account('x'), await world.account('bluesky')];
    const ids = (await Promise.all(accounts.map((one) => world.published([one])))).flat();
    const both = [world.start(), world.start()];
    await world.received([...ids, ...accounts.map(({ id }) => id)]);
    const refreshId = await world.refresh(accounts.map(({ id }) => id));
    assert.equal((await world.refreshed(refreshId)).length, 1);
    await world.tried(...ids);
    for (const id of ids) assert.equal((await world.observed(id)).length, 1);
    for (const one of both) await one.stop();
  });
});

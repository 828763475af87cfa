import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { check, untilQuiet } from '#test/faults/check.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { patience } from '#test/support/patience.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** All of it in one process, which dies as a whole; its database lives on, as the embedded one does. */
suite('faults of standalone', { drawn: true, costs: 20, timeoutMs: 180_000 }, (t) => {
  const random = seeded('faults of standalone');
  let world: FaultWorld;

  t.before(async () => {
    const { dataDir } = dataFolder();
    world = await FaultWorld.open({ databaseUrl: (await testDatabase()).url, random, standalone: { dataDir } });
    await world.begin();
  });
  t.after(() => world?.close());

  t('killed three times under load, it neither loses a post nor publishes one twice', async () => {
    const standalone = world.role('standalone');
    const stop = new AbortController();
    const going = world.load.keepGoing(4, stop.signal);
    for (let kill = 0; kill < 3; kill += 1) {
      await delay(random.int(500, 2_500));
      await standalone.kill();
      await until('it serves again', async () => standalone.up !== null, { withinMs: 60_000 });
    }
    stop.abort();
    await going;
    // Of many actions the load may have drawn too few that leave figures.
    await world.load.run('refresh');
    const { checked } = world;
    assert.deepEqual(await untilQuiet(checked, 90_000 * patience), []);
    await world.load.repeat(500);
    const { violations, observations } = await check(checked);
    assert.deepEqual([...world.violations, ...violations], []);
    assert.ok(observations > 0, 'there was nothing to recount');
    assert.equal(world.kills, 3);
  });
});

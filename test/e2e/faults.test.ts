import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { check, untilQuiet } from '#test/faults/check.ts';
import { mortals, pointsOfRun } from '#test/faults/points.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Through whose hands figures go: each of them is killed in any case. */
const counting = ['projections', 'insights', 'reports'] as const;

suite('faults', { drawn: true, costs: 78, timeoutMs: 600_000 }, (t) => {
  let world: FaultWorld;
  const random = seeded('faults');

  t.before(async () => {
    world = await FaultWorld.open({ databaseUrl: (await preparedDatabase()).url, random });
    // The others begin where they die: a start before that would be one more.
    await world.begin(['api', 'projections', 'webhooks-1']);
  });
  t.after(() => world?.close());

  t(
    'each process is killed once at each fault point where no other test kills it, and at some of the others',
    async () => {
      const points = pointsOfRun(random);
      const began = world.kills;
      await Promise.all(
        mortals.map((names) =>
          world.dieAtEach(
            names.map((name) => world.role(name)),
            points.filter((one) => names.includes(one.role)),
          ),
        ),
      );
      assert.ok(world.kills - began >= points.length, `${world.kills - began} deaths`);
      assert.deepEqual(world.violations, []);
    },
  );

  t('a second sender joins', () => world.role('webhooks-2').begin());

  t(
    'processes and the analytics engine are killed at random; a publisher and a sender sleep past their leases',
    async () => {
      const stop = new AbortController();
      const going = Promise.all([
        world.load.keepGoing(4, stop.signal),
        world.hooks.keepChanging(world.load, stop.signal),
      ]);
      const frozen = Promise.all([
        world.freeze(world.role('publisher-1')),
        world.freeze(world.role('webhooks-2'), 4_000),
      ]);
      const any = ['api', 'outcomes', 'publisher-2', 'webhooks-1', 'media', 'relay', ...counting];
      const killed = random.shuffle([...counting, 'engine', ...Array.from({ length: 5 }, () => random.pick(any))]);
      for (const name of killed) {
        await delay(random.int(100, 900));
        await (name === 'engine' ? world.killEngine() : world.role(name).kill());
      }
      await frozen;
      stop.abort();
      await going;
      assert.deepEqual(world.violations, []);
    },
  );

  t('no accepted post is lost, published twice or early, and the read models agree with the streams', async () => {
    const { checked } = world;
    assert.deepEqual(await untilQuiet(checked, 90_000 * patience), []);
    await world.load.repeat(1_000);
    const verdict = await check(checked);
    process.stdout.write(
      `  ${world.kills} deaths, ${world.load.reported.length} keyed calls, ${verdict.posts} posts, ${verdict.targets} targets ${JSON.stringify(verdict.statuses)}, ${verdict.events} events, ${verdict.rows} rows, ${verdict.observations} observations, ${verdict.runs} reports, ${JSON.stringify(verdict.hooks)}\n`,
    );
    assert.deepEqual([...world.violations, ...verdict.violations], []);
    assert.ok(verdict.observations > 0 && verdict.runs > 0, 'there was nothing to recount, or no report');
  });
});

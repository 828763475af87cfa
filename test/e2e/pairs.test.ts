import assert from 'node:assert/strict';
import { begin, goOn, minuteMs, pairs } from '#test/faults/pairs.ts';
import { PairsWorld } from '#test/faults/pairs-world.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Calls under way at once. */
const width = 12;

suite('every pair of features on one post', { timeoutMs: 180_000 }, (t) => {
  t('holds the invariants of the checker', async () => {
    const random = seededPairs();
    const world = await PairsWorld.open();
    try {
      const scenes = await world.scenes(random);
      const each = async (what: (at: number) => Promise<void>) => {
        const next = scenes.keys();
        const work = async () => {
          for (const at of next) await what(at);
        };
        await Promise.all(Array.from({ length: width }, work));
      };
      const of = (at: number) => [scenes[at], random[at]] as [(typeof scenes)[number], (typeof random)[number]];
      await each((at) => begin(...of(at)));
      const unready = scenes.filter(({ name }) => name.includes('media not ready'));
      world.waiting = unready.map(({ workspaceId }) => workspaceId);
      await world.quiet();
      await world.passTo((scenes[0]?.dueAt ?? 0) + 2 * minuteMs);
      await each((at) => goOn(...of(at), 'after'));
      world.waiting = [];
      await world.quiet();
      // Ranges, waits of cadence, and what was moved.
      for (let n = 0; n < 3; n += 1) await world.pass(20 * minuteMs);
      for (let day = 1; day <= 5; day += 1) {
        if (day === 3) await each((at) => goOn(...of(at), 'daysLater'));
        await world.pass(12 * 60 * minuteMs);
        await world.pass(12 * 60 * minuteMs);
      }
      const violations = await world.check();
      const found = [...scenes.flatMap((one) => one.violations.map((what) => `${one.name}: ${what}`)), ...violations];
      assert.deepEqual(found, []);
    } finally {
      await world.close();
    }
  });
});

const seededPairs = () => {
  const random = seeded('pairs');
  const only = process.env.PAIRS;
  return random.shuffle(pairs.filter(({ first, second }) => only === undefined || `${first} ${second}`.includes(only)));
};

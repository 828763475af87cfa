import assert from 'node:assert/strict';
import {
  begin,
  beginRestored,
  goOn,
  minuteMs,
  type Pair,
  pairs,
  restorePairs,
  type Scene,
} from '#test/faults/pairs.ts';
import { PairsWorld, weekMs } from '#test/faults/pairs-world.ts';
import { type Random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** Calls under way at once. */
const width = 12;
const halfDayMs = 12 * 60 * minuteMs;

suite('every pair of features on one post', { drawn: true, costs: 27, timeoutMs: 600_000 }, (t) => {
  const random = seeded('pairs');
  const start = (): number => random.int(0, weekMs / minuteMs - 1) * minuteMs;
  // First of all choices: the others depend on PAIRS.
  const starts = [start(), start()] as const;

  t('holds the invariants of the checker', async () => {
    const some = chosen(random, pairs);
    const world = await PairsWorld.open(starts[0]);
    try {
      const { scenes, each, time } = await begun(world, some);
      await world.passTo(time + 2 * minuteMs);
      await each((scene, pair) => goOn(scene, pair, 'after'));
      world.waiting = [];
      await world.quiet();
      await live(world, each);
      assert.deepEqual([...saidOf(scenes), ...(await world.check())], []);
    } finally {
      await world.stop();
    }
  });

  t('holds them over a restore from a copy that is older than what the network has', async () => {
    const some = chosen(random, restorePairs);
    let world = await PairsWorld.open(starts[1]);
    try {
      const { scenes, each, time } = await begun(world, some);
      // Behind some of the times of a range or a shift, or behind the first copies of recycled posts as well.
      const lostMs = random.pick([12 * minuteMs, 25 * 60 * minuteMs]);
      const { world: after, lost } = await world.restored(async (original) => {
        await original.passTo(time + 2 * minuteMs);
        await original.passTo(time + lostMs);
      });
      world = after;
      await each(beginRestored);
      await world.quiet();
      await each((scene, pair) => goOn(scene, pair, 'after'));
      world.waiting = [];
      await world.quiet();
      await live(world, each);
      assert.deepEqual([...saidOf(scenes), ...(await world.check(lost))], []);
    } finally {
      await world.stop();
    }
  });
});

const chosen = (random: Random, all: readonly Pair[]): readonly Pair[] => {
  const only = process.env.PAIRS;
  return random.shuffle(all.filter(({ first, second }) => only === undefined || `${first} ${second}`.includes(only)));
};

type Each = (what: (scene: Scene, pair: Pair) => Promise<void>) => Promise<void>;

/** Brings all posts to where they wait. @returns the scenes of the pairs, the time of their posts, and what does something with each */
const begun = async (world: PairsWorld, some: readonly Pair[]) => {
  const scenes = await world.scenes(some);
  const each: Each = async (what) => {
    const next = some.entries();
    const work = async (): Promise<void> => {
      for (const [at, pair] of next) await what(scenes[at] as Scene, pair);
    };
    await Promise.all(Array.from({ length: width }, work));
  };
  await each(begin);
  const unready = scenes.filter(({ name }) => name.includes('media not ready'));
  world.waiting = unready.map(({ workspaceId }) => workspaceId);
  await world.quiet();
  return { scenes, each, time: scenes[0]?.dueAt ?? 0 };
};

/** Ranges, waits of a cadence, what was moved, and days with the copies of recycled posts. */
const live = async (world: PairsWorld, each: Each): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await world.pass(20 * minuteMs);
  for (let half = 0; half < 10; half += 1) {
    if (half === 4) await each((scene, pair) => goOn(scene, pair, 'daysLater'));
    await world.pass(halfDayMs);
  }
};

const saidOf = (scenes: readonly Scene[]): readonly string[] =>
  scenes.flatMap((one) => one.violations.map((what) => `${one.name}: ${what}`));

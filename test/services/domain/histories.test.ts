/**
 * Any history of a post and its targets, over the real deciders: callers, workers, the fan-out and the outcomes act in
 * any order, late and twice, and die in between. `HISTORIES=<n>` sets the number of histories.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { postArrows, targetArrows } from './histories/arrows.ts';
import { checkBodies, checkCounts, checkQuiet, checkRecycle, checkReplay, checkWholes } from './histories/checks.ts';
import { accounts, finish, moves, play, playedUntil } from './histories/moves.ts';
import { World } from './histories/world.ts';

const numRuns = Number(process.env.HISTORIES ?? 800);
const { seed } = seeded('histories');

suite('histories of a post and its targets', { drawn: true, costs: 3 }, (t) => {
  t('only the drawn arrows, only released content, counts that add up, and the same state after a replay', async () => {
    const walked = new Set<string>();
    const drawn = Object.entries({ ...targetArrows, ...postArrows }).flatMap(([type, arrows]) =>
      arrows.map((arrow) => `${type}: ${arrow}`),
    );
    const notWalked = (): readonly string[] => drawn.filter((arrow) => !walked.has(arrow));
    const property = fc.asyncProperty(accounts, moves, async (to, all) => {
      const world = new World(to, walked);
      for (const one of all) {
        play(world, one);
        checkCounts(world);
        checkBodies(world);
        checkRecycle(world);
      }
      world.fanOut();
      world.recordOutcomes();
      checkQuiet(world);
      finish(world);
      checkQuiet(world);
      checkWholes(world);
      await checkReplay(world);
    });
    await playedUntil(property, { seed, numRuns }, notWalked);
    assert.deepEqual(notWalked(), [], 'no history took these arrows');
  });
});

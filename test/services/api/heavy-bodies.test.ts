import { deepEqual, equal, ok } from 'node:assert/strict';
import { HeavyBodies, type Piece } from '#services/api/call/bodies.ts';
import { suite } from '#test/support/suite.ts';

const heavy = { bytes: 500_000, values: 10 };

suite('heavy bodies', (t) => {
  /** Runs that many bodies of three pieces each; tells who did a piece, turn of the event loop by turn. */
  const turnsOf = async (bodies: HeavyBodies, owners: readonly string[], weight = heavy) => {
    const turns: string[][] = [[]];
    let watching = true;
    const next = (): void => {
      if ((turns.at(-1) ?? []).length > 0) turns.push([]);
      if (watching) setImmediate(next);
    };
    setImmediate(next);
    const work = (owner: string) => async (piece: Piece) => {
      for (const _ of [1, 2, 3]) await piece(() => turns.at(-1)?.push(owner));
    };
    await Promise.all(owners.map((owner) => bodies.run(owner, weight, work(owner))));
    watching = false;
    return turns.filter((turn) => turn.length > 0);
  };

  t('are processed one piece a turn, however many arrive at once, and workspaces take turns', async () => {
    const turns = await turnsOf(new HeavyBodies(), ['a', 'a', 'a', 'a', 'b']);
    ok(turns.every((turn) => turn.length === 1));
    // The second of a has begun to wait before b.
    deepEqual(turns.flat().join(''), 'aaaaaabbbaaaaaa');
  });

  t('pause after each piece for as long as it took', async () => {
    const busyMs = 20;
    let rested = 0;
    await new HeavyBodies().run('a', heavy, async (piece) => {
      await piece(() => {
        for (const until = performance.now() + busyMs; performance.now() < until; );
        rested = performance.now();
      });
      rested = performance.now() - rested;
    });
    ok(rested >= busyMs - 2, String(rested));
  });

  t('that fail rest as well, and release their turn', async () => {
    const bodies = new HeavyBodies();
    const failing = bodies.run('a', heavy, (piece) =>
      piece(() => {
        throw new Error('no JSON');
      }),
    );
    const [failed, turns] = await Promise.all([failing.catch((error: Error) => error.message), turnsOf(bodies, ['a'])]);
    equal(failed, 'no JSON');
    equal(turns.length, 3);
  });

  t('many small values are heavy too; light bodies do not wait', async () => {
    const many = await turnsOf(new HeavyBodies(), ['a', 'a'], { bytes: 20_000, values: 9_000 });
    equal(many.length, 6);
    const light = await turnsOf(new HeavyBodies(), ['a', 'a'], { bytes: 2_000, values: 50 });
    equal(light.length, 1);
  });
});

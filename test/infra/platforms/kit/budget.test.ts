/** Budgets of an app that count calls in units: what each takes, what is kept for posts, and what a refusal says. */
import { deepEqual, equal } from 'node:assert/strict';
import { counted, exhaust } from '#infra/platforms/kit/budget.ts';
import type { NetworkRequest } from '#infra/platforms/kit/tables.ts';
import { suite } from '#test/support/suite.ts';
import { kitWorld } from './world.ts';

/** The rules of YouTube name both budgets; what a call takes is the test's. */
const prices: Readonly<Record<string, number | 'budget'>> = {
  '/videos': 'budget',
  '/list': 1,
  '/comment': 50,
  '/free': 0,
};
const call = (path: string): NetworkRequest => ({ method: 'GET', path });

const open = async (app: { readonly budget?: number; readonly units?: number }) => {
  const world = await kitWorld({ platform: 'youtube', units: ({ path }) => prices[path] ?? 0 });
  const kit = { ...world.bound, app: { ...world.bound.app, ...app } };
  /** How many of these calls the budget lets through. */
  const passed = async (path: string, most: number, isOptional = false): Promise<number> => {
    let count = 0;
    while (count < most && (await counted(kit, isOptional, call(path))) === null) count += 1;
    return count;
  };
  return { world, kit, passed };
};

suite('budgets of the kit in units', (t) => {
  t('a call takes its price of the units, or one of the other budget, and neither takes of the other', async () => {
    const { world, passed } = await open({ budget: 2, units: 120 });
    deepEqual([await passed('/comment', 9), await passed('/list', 99)], [2, 20]);
    deepEqual([await passed('/videos', 9), await passed('/free', 9)], [2, 9]);
    world.close();
  });

  t('what is optional takes half, and leaves the rest to what is not', async () => {
    const { world, passed } = await open({ budget: 9, units: 101 });
    equal(await passed('/list', 999, true), 50);
    equal(await passed('/list', 999), 51);
    world.close();
  });

  t('the day is that of the network, and its refusal says until when', async () => {
    const { world, kit, passed } = await open({ budget: 9, units: 3 });
    equal(await passed('/list', 9), 3);
    const spent = await counted(kit, false, call('/list'));
    // It is five in the morning in California.
    deepEqual([spent?.kind, spent?.kind === 'spent' && spent.until], ['spent', '2026-11-02T08:00:00.000Z']);
    world.pass(20 * 3_600_000 - 1);
    equal(await passed('/list', 9), 0);
    world.pass(1);
    equal(await passed('/list', 9), 3);
    world.close();
  });

  t('where the network says that the day is used up, only that budget has nothing left', async () => {
    const { world, kit, passed } = await open({ budget: 9, units: 1_000 });
    await exhaust(kit, call('/list'));
    deepEqual([await passed('/list', 9), await passed('/comment', 9), await passed('/videos', 99)], [0, 0, 9]);
    await exhaust(kit, call('/free'));
    world.close();
  });

  t('a limit that is not set counts nothing', async () => {
    const { world, passed } = await open({});
    deepEqual([await passed('/list', 50), await passed('/videos', 50)], [50, 50]);
    world.close();
  });
});

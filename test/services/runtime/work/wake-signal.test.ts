import { deepEqual, ok } from 'node:assert/strict';
import { Rest, WakeSignal } from '#runtime/work/wake-signal.ts';
import { suite } from '#test/support/suite.ts';

const never = (): boolean => false;
const long = 600_000;

suite('wake signal', (t) => {
  t('ends a wait that has begun', async () => {
    const signal = new WakeSignal();
    const waiting = signal.wait(long, never);
    signal.wake();
    await waiting;
  });

  t('a signal without a waiting caller ends the next wait, and only that one', async () => {
    const signal = new WakeSignal();
    signal.wake();
    await signal.wait(long, never);
    let over = false;
    const next = signal.wait(long, never).then(() => {
      over = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    ok(!over);
    signal.wake();
    await next;
  });

  t('a wait ends at once where its condition holds, and else at its time limit', async () => {
    const signal = new WakeSignal();
    await signal.wait(long, () => true);
    await signal.wait(1, never);
  });

  t('makes a wait check its condition again, and ends it only when the condition holds', async () => {
    const signal = new WakeSignal();
    let asked = 0;
    const waiting = signal.waitUntil(long, () => {
      asked += 1;
      return asked > 3;
    });
    while (asked <= 3) {
      signal.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waiting;
    await signal.waitUntil(1, never);
  });
});

suite('rest between looks', (t) => {
  t('grows up to four polls while looks find no work, and starts again when one finds some', () => {
    const rest = new Rest(100);
    deepEqual(
      [false, false, false, false, true, false].map((busy) => rest.after(busy)),
      [100, 200, 400, 400, 100, 200],
    );
  });
});

import { deepEqual, equal } from 'node:assert/strict';
import { backOff } from '#contracts/base/back-off.ts';
import { suite } from '#test/support/suite.ts';

suite('back-off', (t) => {
  t('doubles with each failure in a row, up to its longest wait', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6].map((failures) => backOff(failures, { firstMs: 100, maxMs: 3_000 }));
    deepEqual(waits, [100, 200, 400, 800, 1_600, 3_000, 3_000]);
  });

  t('stays a number however often something failed', () => {
    equal(backOff(100_000, { firstMs: 1_000, maxMs: 600_000 }), 600_000);
    equal(backOff(100_000, { firstMs: 0, maxMs: 600_000 }), 0);
  });

  t('never exceeds its longest wait, not even at first', () => {
    equal(backOff(0, { firstMs: 5_000, maxMs: 1_000 }), 1_000);
  });
});

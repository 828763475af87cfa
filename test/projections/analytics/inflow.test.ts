import assert from 'node:assert/strict';
import { Inflow } from '#projections/analytics/run.ts';
import { suite } from '#test/support/suite.ts';

suite('inflow of observations', (t) => {
  /** Batches of so many, one every so many milliseconds; whether it was behind after each, and how long after the last. */
  const given = (batch: number, everyMs: number, batches: number) => {
    const inflow = new Inflow();
    const behind: boolean[] = [];
    let at = 5_000;
    for (let n = 0; n < batches; n += 1, at += everyMs) {
      inflow.observed(batch, at);
      behind.push(inflow.isBehind(at));
    }
    const last = at - everyMs;
    let after = 0;
    while (inflow.isBehind(last + after)) after += 100;
    return { behind, after };
  };

  t('full batches of 500 without a pause count as behind from the second on', () => {
    const { behind, after } = given(500, 60, 100);
    assert.deepEqual(behind, [false, ...Array.from({ length: 99 }, () => true)]);
    assert.equal(after, 5_000);
  });

  t('a batch of 5,000 counts as behind from the first on', () => {
    assert.deepEqual(given(5_000, 1_000, 4).behind, [true, true, true, true]);
  });

  t('between batches that take seconds it still counts as behind', () => {
    const inflow = new Inflow();
    for (let at = 0; at < 30_000; at += 2_500) {
      if (at > 0) assert.equal(inflow.isBehind(at - 1), true, `${at}`);
      inflow.observed(5_000, at);
    }
  });

  t('a live rate of 400 events a second does not count as behind, whatever the size of batches', () => {
    for (const [batch, everyMs] of [
      [1, 3],
      [80, 200],
      [400, 1_000],
      [999, 5_000],
    ] as const) {
      const { behind, after } = given(batch, everyMs, 2_000);
      assert.equal(behind.includes(true), false, `${batch} every ${everyMs} ms`);
      assert.equal(after, 0);
    }
  });
});

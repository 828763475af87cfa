import assert from 'node:assert/strict';
import { HourlyPace } from '#services/outcomes/credentials.ts';
import { suite } from '#test/support/suite.ts';

const hourMs = 3_600_000;

suite('hourly pace', (t) => {
  t('ten thousand starts of a night stay within the budget of every hour', () => {
    let now = 0;
    const perHour = 1_250;
    const pace = new HourlyPace(perHour, () => now);
    const starts: number[] = [];
    for (let i = 0; i < 10_000; i += 1) {
      now += pace.take();
      starts.push(now);
    }
    assert.ok(now <= 8 * hourMs, 'the night lasts eight hours');
    for (const [at, start] of starts.entries()) {
      const next = starts[at + perHour];
      if (next !== undefined) assert.ok(next - start >= hourMs - 1, `more than ${perHour} in the hour after ${start}`);
    }
  });

  t('starts that nobody took are not made up for', () => {
    let now = 0;
    const pace = new HourlyPace(3_600, () => now);
    assert.equal(pace.take(), 0);
    now = hourMs;
    assert.deepEqual([pace.take(), pace.take(), pace.take()], [0, 1_000, 2_000]);
  });

  t('a pace of nothing is a mistake', () => {
    for (const perHour of [0, -1, Number.NaN]) assert.throws(() => new HourlyPace(perHour), RangeError);
  });
});

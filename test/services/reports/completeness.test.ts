import { deepEqual, equal } from 'node:assert/strict';
import { noTotals } from '#projections/analytics/totals.ts';
import { restOf, settledSeries } from '#services/reports/completeness.ts';
import { suite } from '#test/support/suite.ts';

suite('completeness of reports', (t) => {
  t("a run waits longer as it ages, never past its end, also when the caller's clock is ahead", () => {
    const [minuteMs, hourMs] = [60_000, 3_600_000];
    const asked = Date.parse('2026-03-01T05:00:00.000Z');
    const rest = (age: number) =>
      restOf({
        ...{ requestedAt: new Date(asked).toISOString(), now: asked + age },
        ...{ maxMs: 6 * hourMs, minRestMs: 1_000 },
      });
    deepEqual([-hourMs, 0, 4_000, 10 * minuteMs, 2 * hourMs].map(rest), [1_000, 1_000, 2_000, 300_000, 600_000]);
    deepEqual([6 * hourMs - 7, 6 * hourMs, 900 * hourMs].map(rest), [7, 0, 0]);
    let looks = 0;
    for (let age = 0; rest(age) > 0; age += rest(age)) looks += 1;
    equal(looks < 60, true, `${looks} looks`);
  });

  t('a day is final when it is over in the zone, is counted, and no look is due', () => {
    const days = (...open: readonly string[]) =>
      ['2026-03-01', '2026-03-02', '2026-03-03'].map((day) => ({ day, ...noTotals, provisional: open.includes(day) }));
    const now = Date.parse('2026-03-04T03:00:00.000Z');
    const open = (series: ReturnType<typeof days>, uncounted: string | null, timezone: string) => {
      const settled = settledSeries(series, { uncounted, now, timezone });
      const its = settled.series.filter(({ provisional }) => provisional).map(({ day }) => day);
      deepEqual(settled.completeness, { complete: its.length === 0, provisionalDays: its });
      return its;
    };
    deepEqual(open(days(), null, 'Europe/Berlin'), []);
    deepEqual(open(days('2026-03-03'), null, 'Europe/Berlin'), ['2026-03-03']);
    deepEqual(open(days(), '2026-03-02', 'Europe/Berlin'), ['2026-03-02', '2026-03-03']);
    // There it is still the third.
    deepEqual(open(days(), null, 'America/New_York'), ['2026-03-03']);
  });
});

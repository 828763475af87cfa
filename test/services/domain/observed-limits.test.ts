import { deepEqual, equal } from 'node:assert/strict';
import { afterReport, maxObservedWindows } from '#domain/observed-limits.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import { suite } from '#test/support/suite.ts';

const now = Date.parse('2026-01-31T08:00:00.000Z');
const at = (ms: number): string => new Date(now + ms).toISOString();
const window = (over: Partial<ObservedWindow> = {}): ObservedWindow => ({
  ...{ name: '15 minutes', seconds: 900, limit: 100, used: 10, resetsAt: at(600_000), ...over },
});

suite('observed limits', (t) => {
  t('the first report counts, and one of a few posts more does not', () => {
    deepEqual(afterReport([], [window()], now), [window()]);
    equal(afterReport([window()], [window({ used: 19 })], now), null);
    equal(afterReport([window()], [window({ used: 1 })], now), null);
    deepEqual(afterReport([window()], [window({ used: 20 })], now), [window({ used: 20 })]);
    equal(afterReport([], [], now), null);
    for (const least of [{ used: 0 }, { limit: 1 }, { seconds: 1 }, { seconds: 31 * 86_400 }]) {
      deepEqual(afterReport([], [window(least)], now), [window(least)]);
    }
  });

  t('another limit counts, and the last free post being gone', () => {
    deepEqual(afterReport([window()], [window({ limit: 99 })], now), [window({ limit: 99 })]);
    deepEqual(afterReport([window()], [window({ seconds: 800 })], now), [window({ seconds: 800 })]);
    const full = window({ used: 100 });
    deepEqual(afterReport([window({ used: 95 })], [full], now), [full]);
    equal(afterReport([full], [full], now), null);
    deepEqual(afterReport([full], [window({ used: 99 })], now), [window({ used: 99 })]);
  });

  t('what was used counts only until the network begins anew', () => {
    const over = window({ used: 100, resetsAt: at(-1) });
    for (const resetsAt of [at(-1), at(0)]) {
      equal(afterReport([{ ...over, resetsAt }], [window({ used: 1 })], now), null, 'both are as good as unused');
    }
    deepEqual(afterReport([over], [window({ used: 100 })], now), [window({ used: 100 })]);
    equal(afterReport([over], [window({ used: 100, resetsAt: null })], now), null, 'nobody knows until when');
  });

  t('windows that an answer does not name stay', () => {
    const day = window({ name: '24 hours', seconds: 86_400 });
    deepEqual(afterReport([window(), day], [window({ used: 50 })], now), [window({ used: 50 }), day]);
    const both = [window({ used: 50 }), { ...day, used: 50 }];
    deepEqual(afterReport([window(), day], both, now), both);
  });

  t('an answer that cannot be meant so does no harm', () => {
    const odd = [{ limit: 0 }, { limit: 1.5 }, { used: -1 }, { used: Number.NaN }, { seconds: 0 }, { name: '' }];
    for (const over of [...odd, { seconds: 32 * 86_400 }]) equal(afterReport([], [window(over)], now), null);
    deepEqual(afterReport([], [window({ resetsAt: 'soon' })], now), [window({ resetsAt: null })]);
    deepEqual(afterReport([], [window({ resetsAt: '2200-01-01T00:00:00.000Z' })], now), [
      window({ resetsAt: at(86_400_000) }),
    ]);
    const week = { seconds: 7 * 86_400, resetsAt: at(30 * 86_400_000) };
    deepEqual(afterReport([], [window(week)], now), [window({ ...week, resetsAt: at(7 * 86_400_000) })]);
    const many = Array.from({ length: 30 }, (_, n) => window({ name: `window ${n}` }));
    equal(afterReport(many.slice(25), many, now)?.length, maxObservedWindows);
    equal(afterReport(many.slice(0, maxObservedWindows), many, now), null, 'what is beyond the bound is not looked at');
  });
});

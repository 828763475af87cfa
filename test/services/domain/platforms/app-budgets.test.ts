import assert from 'node:assert/strict';
import { windowAt } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';

const shown = (at: number): string => new Date(at).toISOString().slice(0, 16);

suite('windows in which networks count', (t) => {
  t('a day is that of the zone, with the 23 or 25 hours that a change of its clocks leaves', () => {
    const table = [
      ['America/Los_Angeles', '2026-11-29T07:59:59.999Z', '2026-11-28T08:00', '2026-11-29T08:00'],
      ['America/Los_Angeles', '2026-11-29T08:00:00.000Z', '2026-11-29T08:00', '2026-11-30T08:00'],
      ['America/Los_Angeles', '2026-03-08T12:00:00.000Z', '2026-03-08T08:00', '2026-03-09T07:00'],
      ['America/Los_Angeles', '2026-11-01T12:00:00.000Z', '2026-11-01T07:00', '2026-11-02T08:00'],
      // The second of two hours that the clocks show alike.
      ['America/Los_Angeles', '2026-11-01T09:30:00.000Z', '2026-11-01T07:00', '2026-11-02T08:00'],
      // These clocks skip midnight itself: the day begins at one.
      ['America/Santiago', '2026-09-06T12:00:00.000Z', '2026-09-06T04:00', '2026-09-07T03:00'],
      ['Asia/Kathmandu', '2026-06-01T00:00:00.000Z', '2026-05-31T18:15', '2026-06-01T18:15'],
      ['Asia/Kolkata', '2026-02-28T18:29:00.000Z', '2026-02-27T18:30', '2026-02-28T18:30'],
      ['UTC', '2024-02-29T23:59:59.999Z', '2024-02-29T00:00', '2024-03-01T00:00'],
    ] as const;
    for (const [zone, at, begins, ends] of table) {
      const window = windowAt({ zone, every: 'day' }, Date.parse(at));
      assert.deepEqual([shown(window.begins), shown(window.ends)], [begins, ends], `${zone} ${at}`);
    }
  });

  t('a month has its days, and each window ends where the next begins', () => {
    for (const zone of ['UTC', 'America/Los_Angeles', 'America/Santiago', 'Pacific/Apia', 'Europe/Berlin']) {
      for (const every of ['day', 'month'] as const) {
        let { begins, ends } = windowAt({ zone, every }, Date.parse('2026-01-01T12:00:00.000Z'));
        for (let n = 0; n < (every === 'day' ? 400 : 14); n += 1) {
          for (const inside of [begins, ends - 1]) {
            assert.deepEqual(windowAt({ zone, every }, inside), { begins, ends }, `${zone} ${shown(inside)}`);
          }
          const next = windowAt({ zone, every }, ends);
          assert.equal(next.begins, ends);
          ({ begins, ends } = next);
        }
      }
    }
    const february = windowAt({ zone: 'UTC', every: 'month' }, Date.parse('2028-02-29T12:00:00.000Z'));
    assert.equal((february.ends - february.begins) / 86_400_000, 29);
  });
});

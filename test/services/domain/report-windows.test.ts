import { deepEqual, equal, ok } from 'node:assert/strict';
import fc from 'fast-check';
import { dayOf, lastInstant, nextInstant, windowOf } from '#domain/report-windows.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const daily = (hour: number) => ({ every: 'day', weekday: null, dayOfMonth: null, hour }) as const;
const weekly = (weekday: number, hour: number) => ({ every: 'week', weekday, dayOfMonth: null, hour }) as const;
const monthly = (dayOfMonth: number, hour: number) => ({ every: 'month', weekday: null, dayOfMonth, hour }) as const;
const berlin = 'Europe/Berlin';

const following = (schedule: Parameters<typeof nextInstant>[0], zone: string, after: string, count: number) => {
  const found: string[] = [];
  for (let from = after; found.length < count; ) {
    from = nextInstant(schedule, zone, from);
    found.push(from);
  }
  return found;
};

suite('windows of reports', (t) => {
  t('the last instant is the one before the next, from the first on', () => {
    for (const schedule of [daily(2), weekly(7, 23), monthly(31, 0)]) {
      const begin = '2025-12-31T22:30:00.000Z';
      const all = following(schedule, berlin, begin, 20);
      for (const [at, instant] of all.entries()) {
        const before = new Date(Date.parse(instant) - 1).toISOString();
        equal(lastInstant(schedule, berlin, begin, instant), instant);
        equal(lastInstant(schedule, berlin, begin, before), all[at - 1] ?? null);
        equal(lastInstant(schedule, berlin, instant, instant), null);
      }
    }
  });

  t('end with the day before the run, or with the week or month before it', () => {
    const day = '2026-03-03';
    deepEqual(windowOf('last_7_days', day), { from: '2026-02-24', to: '2026-03-02' });
    deepEqual(windowOf('last_30_days', day), { from: '2026-02-01', to: '2026-03-02' });
    deepEqual(windowOf('last_90_days', day), { from: '2025-12-03', to: '2026-03-02' });
    deepEqual(windowOf('last_week', day), { from: '2026-02-23', to: '2026-03-01' });
    deepEqual(windowOf('last_month', day), { from: '2026-02-01', to: '2026-02-28' });
  });

  t('of a Monday, of a first, of a leap year', () => {
    deepEqual(windowOf('last_week', '2026-03-02'), { from: '2026-02-23', to: '2026-03-01' });
    deepEqual(windowOf('last_week', '2026-03-01'), { from: '2026-02-16', to: '2026-02-22' });
    deepEqual(windowOf('last_month', '2026-01-01'), { from: '2025-12-01', to: '2025-12-31' });
    deepEqual(windowOf('last_month', '2028-03-31'), { from: '2028-02-01', to: '2028-02-29' });
  });

  t('the day of a run is that of the zone', () => {
    equal(dayOf('2026-03-02T23:30:00Z', berlin), '2026-03-03');
    equal(dayOf('2026-03-02T23:30:00Z', 'America/Los_Angeles'), '2026-03-02');
    equal(dayOf('2026-03-02T23:30:00Z', 'Pacific/Kiritimati'), '2026-03-03');
  });
});

suite('schedules of reports', (t) => {
  t('run at their hour, after the instant and never at it', () => {
    equal(nextInstant(daily(6), berlin, '2026-01-10T04:59:59.999Z'), '2026-01-10T05:00:00.000Z');
    equal(nextInstant(daily(6), berlin, '2026-01-10T05:00:00Z'), '2026-01-11T05:00:00.000Z');
    equal(nextInstant(weekly(1, 6), berlin, '2026-01-05T05:00:00Z'), '2026-01-12T05:00:00.000Z');
    equal(nextInstant(weekly(7, 6), berlin, '2026-01-05T05:00:00Z'), '2026-01-11T05:00:00.000Z');
    equal(nextInstant(daily(0), 'Pacific/Kiritimati', '2026-01-10T09:59:00Z'), '2026-01-10T10:00:00.000Z');
  });

  t('a month that is shorter runs on its last day', () => {
    deepEqual(following(monthly(31, 12), 'UTC', '2028-01-31T11:00:00Z', 5), [
      ...['2028-01-31T12:00:00.000Z', '2028-02-29T12:00:00.000Z', '2028-03-31T12:00:00.000Z'],
      ...['2028-04-30T12:00:00.000Z', '2028-05-31T12:00:00.000Z'],
    ]);
    equal(nextInstant(monthly(30, 12), 'UTC', '2026-01-30T12:00:00Z'), '2026-02-28T12:00:00.000Z');
    equal(nextInstant(monthly(1, 0), 'UTC', '2026-12-31T23:59:59Z'), '2027-01-01T00:00:00.000Z');
  });

  t('an hour that is skipped runs as much later, one that comes twice runs the first time', () => {
    // 29 March 2026: 02:00 → 03:00. 25 October 2026: 03:00 → 02:00.
    deepEqual(following(daily(2), berlin, '2026-03-28T00:00:00Z', 3), [
      ...['2026-03-28T01:00:00.000Z', '2026-03-29T01:00:00.000Z', '2026-03-30T00:00:00.000Z'],
    ]);
    deepEqual(following(daily(2), berlin, '2026-10-24T00:00:00Z', 2), [
      ...['2026-10-25T00:00:00.000Z', '2026-10-26T01:00:00.000Z'],
    ]);
  });

  t('once each day whatever the zone does, and always later', () => {
    const zones = [berlin, 'America/St_Johns', 'Australia/Lord_Howe', 'Africa/Casablanca', 'UTC', 'Asia/Tokyo'];
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 730 }),
        (zone, hour, days) => {
          const after = new Date(Date.UTC(2026, 0, 1) + days * 86_400_000).toISOString();
          const found = following(daily(hour), zone, after, 4);
          ok(found.every((one, at) => one > (found[at - 1] ?? after)));
          equal(new Set(found.map((one) => dayOf(one, zone))).size, 4);
        },
      ),
      { seed: seeded('report schedules').seed },
    );
  });
});

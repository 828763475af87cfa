/**
 * Wall-clock times at the edges of zones. The expected instants come from a reading of the zone database that shares
 * nothing with the code: every minute around a change is shown by Intl, and the instant is looked up in what it shows.
 */
import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { type Destination, type PlanInput, scheduleIssues } from '#domain/post/scheduling.ts';
import { clockChangeAt, monthsAfter } from '#domain/zones.ts';
import { planOf } from '#test/support/planning.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const { seed } = seeded('scheduling zones');

/** Zones with half hours and quarters, changes of half an hour and of two, both hemispheres, both sides of the date line. */
const zones = [
  'Europe/Berlin',
  'Europe/Dublin',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'Australia/Lord_Howe',
  'Australia/Adelaide',
  'Africa/Cairo',
  'Pacific/Chatham',
  'Africa/Casablanca',
  'Antarctica/Troll',
  'Asia/Jerusalem',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Pacific/Kiritimati',
  'Pacific/Pago_Pago',
] as const;

const shower = new Map<string, Intl.DateTimeFormat>();
/** `2027-03-28T02:30`, as a clock on a wall of the zone shows the instant. */
const shown = (instant: number, zone: string): string => {
  const format =
    shower.get(zone) ??
    new Intl.DateTimeFormat('en-CA', {
      ...{ timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit' },
    });
  shower.set(zone, format);
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, value]));
  return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}T${parts.get('hour')}:${parts.get('minute')}`;
};
/** Minutes that the zone is ahead of UTC. */
const offset = (instant: number, zone: string): number =>
  (Date.parse(`${shown(instant, zone)}Z`) - Math.floor(instant / minuteMs) * minuteMs) / minuteMs;

/** The instants at which the clocks of a zone change, in the 17 months that may be planned. */
const changesOf = (zone: string, from: number): number[] => {
  const changes: number[] = [];
  for (let at = from; at < from + 17 * 30 * 24 * hourMs; at += 12 * hourMs) {
    if (offset(at, zone) === offset(at + 12 * hourMs, zone)) continue;
    let [low, high] = [at, at + 12 * hourMs];
    while (high - low > minuteMs) {
      const middle = Math.floor((low + high) / 2 / minuteMs) * minuteMs;
      if (offset(middle, zone) === offset(low, zone)) low = middle;
      else high = middle;
    }
    changes.push(high);
  }
  return changes;
};

const now = '2026-11-21T10:00:00.000Z';
const account = (n: number, zones: Partial<Destination> = {}): Destination => ({
  accountId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  clientId: '10000000-0000-4000-8000-000000000000',
  platform: 'x',
  accountTimezone: null,
  clientTimezone: null,
  scopes: [],
  ...zones,
});
const none = { scheduledAt: null, scheduledLocal: null, from: null, to: null, spreadMinutes: null };
const input = (schedule: Partial<PlanInput['schedule']>, more: Partial<PlanInput> = {}): PlanInput => ({
  postId: '20000000-0000-4000-8000-000000000000',
  number: 1,
  destinations: [account(1)],
  schedule: { type: 'at', ...none, ...schedule },
  timezone: 'UTC',
  scheduleMode: 'managed',
  variants: [],
  now,
  ...more,
});
const dueAt = (scheduledLocal: string, timezone: string): number =>
  Date.parse(planOf(input({ scheduledLocal }, { timezone })).targets[0]?.dueAt ?? '');

suite('wall-clock times of zones', (t) => {
  t('known instants', () => {
    const table: readonly [string, string, string][] = [
      ['Europe/Berlin', '2027-03-28T02:30', '2027-03-28T01:30:00.000Z'],
      ['Europe/Berlin', '2027-10-31T02:30', '2027-10-31T00:30:00.000Z'],
      ['America/New_York', '2027-03-14T02:30', '2027-03-14T07:30:00.000Z'],
      ['America/New_York', '2027-11-07T01:30', '2027-11-07T05:30:00.000Z'],
      ['Asia/Kolkata', '2027-01-01T00:00', '2026-12-31T18:30:00.000Z'],
      ['Asia/Kathmandu', '2027-01-01T00:00', '2026-12-31T18:15:00.000Z'],
      ['Pacific/Kiritimati', '2027-01-01T00:00', '2026-12-31T10:00:00.000Z'],
      ['Pacific/Pago_Pago', '2027-01-01T00:00', '2027-01-01T11:00:00.000Z'],
    ];
    for (const [zone, local, instant] of table) {
      assert.equal(new Date(dueAt(local, zone)).toISOString(), instant, `${zone} ${local}`);
    }
  });

  t('every quarter of an hour within a day of each change is due when the wall shows it', () => {
    let checked = 0;
    /** Zones with a time that is skipped, and with one that comes twice. */
    const [missing, doubled] = [new Set<string>(), new Set<string>()];
    for (const zone of zones) {
      for (const change of changesOf(zone, Date.parse(now))) {
        const gained = offset(change, zone) - offset(change - minuteMs, zone);
        const first = new Map<string, number>();
        const times = new Map<string, number>();
        for (let at = change - 30 * hourMs; at < change + 30 * hourMs; at += minuteMs) {
          const local = shown(at, zone);
          if (!first.has(local)) first.set(local, at);
          times.set(local, (times.get(local) ?? 0) + 1);
        }
        const start = Date.parse(`${shown(change - 24 * hourMs, zone)}Z`);
        for (let wall = start; wall < start + 48 * hourMs; wall += 15 * minuteMs) {
          const local = new Date(wall).toISOString().slice(0, 16);
          // A time that the clocks skip moves on by what they skip; of one that comes twice the first counts.
          const moved = new Date(wall + gained * minuteMs).toISOString().slice(0, 16);
          const expected = first.get(local) ?? first.get(moved);
          assert.equal(dueAt(local, zone), expected, `${zone} ${local}`);
          const odd = ['local_time_skipped', undefined, 'local_time_repeated'][times.get(local) ?? 0];
          const reported = clockChangeAt(local, zone);
          assert.equal(reported?.code, odd, `${zone} ${local}`);
          if (reported !== null)
            assert.ok(reported.message.includes(new Date(expected ?? 0).toISOString()), reported.message);
          if (!first.has(local)) missing.add(zone);
          else if (gained < 0 && shown((expected ?? 0) - gained * minuteMs, zone) === local) doubled.add(zone);
          checked += 1;
        }
      }
    }
    assert.ok(checked > 2_000, `only ${checked} times were near a change`);
    assert.ok(missing.size >= 10 && doubled.size >= 10, `${[...missing]} skip a time, ${[...doubled]} repeat one`);
  });

  t('the same wall-clock time on both sides of the date line is a day and more apart', () => {
    const local = '2027-02-01T09:00';
    const apart = dueAt(local, 'Pacific/Pago_Pago') - dueAt(local, 'Pacific/Kiritimati');
    assert.equal(apart, 25 * hourMs);
  });

  t('29 February is a time of leap years only, and 18 months ahead end on a day that exists', () => {
    const issues = (scheduledLocal: string) => scheduleIssues({ type: 'at', ...none, scheduledLocal }, 'UTC');
    assert.deepEqual(issues('2028-02-29T10:00'), []);
    assert.equal(issues('2027-02-29T10:00')[0]?.code, 'no_such_time');
    assert.equal(issues('2100-02-29T10:00')[0]?.code, 'no_such_time');
    const leap = input(
      { scheduledLocal: '2028-02-29T10:00' },
      { timezone: 'Asia/Kolkata', now: '2026-12-01T00:00:00.000Z' },
    );
    assert.equal(planOf(leap).targets[0]?.dueAt, '2028-02-29T04:30:00.000Z');
    assert.equal(monthsAfter('2026-08-31T12:00:00.000Z', 18), '2028-02-29T12:00:00.000Z');
    assert.equal(monthsAfter('2025-08-31T12:00:00.000Z', 18), '2027-02-28T12:00:00.000Z');
  });

  t('so many months ahead is the same day, or the last one of a month that has fewer days', () => {
    const days = fc.date({
      min: new Date('2024-01-01T00:00:00Z'),
      max: new Date('2105-01-01T00:00:00Z'),
      noInvalidDate: true,
    });
    const months = fc.integer({ min: 0, max: 48 });
    fc.assert(
      fc.property(days, months, (at, count) => {
        const added = Temporal.Instant.from(at.toISOString()).toZonedDateTimeISO('UTC').add({ months: count });
        assert.equal(Date.parse(monthsAfter(at.toISOString(), count)), added.epochMilliseconds);
      }),
      { seed, numRuns: 1_000 },
    );
  });

  t('in any zone the target is due when a wall of its account shows the time', () => {
    const wall = fc.date({
      min: new Date('2026-11-23T00:00:00Z'),
      max: new Date('2028-05-19T00:00:00Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(wall, fc.constantFrom(...zones), fc.constantFrom(...zones), (date, zone, other) => {
        const local = date.toISOString().slice(0, 16);
        const destinations = [account(1, { accountTimezone: zone, clientTimezone: other })];
        const [target] = planOf(input({ scheduledLocal: local }, { destinations, timezone: other })).targets;
        const due = Date.parse(target?.dueAt ?? '');
        const skipped = offset(due, zone) - offset(due - 3 * hourMs, zone);
        const moved = new Date(Date.parse(`${local}Z`) + skipped * minuteMs).toISOString().slice(0, 16);
        assert.ok([local, moved].includes(shown(due, zone)), `${zone} ${local} is due at ${target?.dueAt}`);
        assert.equal(target?.timezone, zone);
        assert.equal(target?.scheduledLocal, local);
      }),
      { seed, numRuns: 2_000 },
    );
  });
});

suite('spread and range', (t) => {
  const accounts = (count: number) => Array.from({ length: count }, (_, n) => account(n));

  t(
    'jitter stays inside its window, whole seconds, the same at each plan of the post and another for another post',
    () => {
      fc.assert(
        fc.property(fc.uuid(), fc.uuid(), fc.integer({ min: 1, max: 720 }), (postId, otherId, spreadMinutes) => {
          const scheduledAt = '2027-01-01T00:00:00.000Z';
          const jitters = (id: string, number: number) =>
            planOf(
              input({ scheduledAt, spreadMinutes }, { postId: id, number, destinations: accounts(20) }),
            ).targets.map(({ dueAt: at, jitterSeconds }) => {
              assert.equal(Date.parse(at) - Date.parse(scheduledAt), jitterSeconds * 1_000);
              assert.ok(Number.isInteger(jitterSeconds) && jitterSeconds >= 0 && jitterSeconds <= spreadMinutes * 60);
              return jitterSeconds;
            });
          assert.deepEqual(jitters(postId, 1), jitters(postId, 2));
          if (postId !== otherId) assert.notDeepEqual(jitters(postId, 1), jitters(otherId, 1));
        }),
        { seed, numRuns: 200 },
      );
    },
  );

  t('a range begins at from, ends at to, and its steps differ by no more than a millisecond', () => {
    const lengths = fc.integer({ min: 1, max: 30 * 24 * 60 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 2, max: 100 }), (minutes, count) => {
        const from = '2027-03-27T00:00:00.000Z';
        const to = new Date(Date.parse(from) + minutes * minuteMs).toISOString();
        const plan = planOf(input({ type: 'range', from, to }, { destinations: accounts(count) }));
        const dues = plan.targets.map((one) => Date.parse(one.dueAt));
        assert.equal(dues[0], Date.parse(from));
        assert.equal(dues.at(-1), Date.parse(to));
        const even = (minutes * minuteMs) / (count - 1);
        for (const [index, due] of dues.entries()) {
          if (index > 0) assert.ok(Math.abs(due - (dues[index - 1] ?? 0) - even) <= 1, `step ${index} of ${count}`);
        }
      }),
      { seed, numRuns: 500 },
    );
  });
});

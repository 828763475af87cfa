import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import {
  type Cadence,
  cadence,
  dayOf,
  minuteOf,
  nextMidnight,
  nextNight,
  nextObservation,
  nextTry,
  type Observed,
} from '#services/insights/schedule.ts';
import { XAdapter, type XOptions } from '#test/support/networks/x/adapter.ts';
import { suite } from '#test/support/suite.ts';

const hour = 3_600_000;
const day = 24 * hour;
const at = (text: string): number => Date.parse(text);
const iso = (instant: number | null): string | null => (instant === null ? null : new Date(instant).toISOString());
const local = (instant: number, timezone: string) =>
  Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
/** An account whose minute lies between these, of many. */
const accountAt = (from: number, to: number): string => {
  for (;;) {
    const id = randomUUID();
    if (minuteOf(id) >= from && minuteOf(id) < to) return id;
  }
};
/** One whose posts are looked at within so many minutes of midnight. */
const accountBefore = (minutes: number): string => {
  const midnight = at('2026-03-11T00:00:00Z');
  for (;;) {
    const id = randomUUID();
    if (nextMidnight(midnight - 1, 'UTC', id) < midnight + minutes * 60_000) return id;
  }
};
const published = at('2026-03-10T12:00:00Z');
const post = (over: Partial<Observed> = {}): Observed => ({
  publishedAt: published,
  use: 'feed',
  accountId: '7d2f7f0e-6f43-5e0e-8d3c-2b6a4c1f0002',
  timezone: 'Europe/Berlin',
  ...over,
});
/** Every look at a post that is asked in time. */
const looks = (one: Observed, by: Cadence = cadence): readonly number[] => {
  const found: number[] = [];
  for (let next = nextObservation(one, one.publishedAt, by); next !== null; next = nextObservation(one, next, by)) {
    found.push(next);
  }
  return found;
};

suite('times of looks', (t) => {
  t('a post whose reads are billed is observed at fewer midnights, each after its age', () => {
    const { accountId, timezone } = post();
    const ages = [day, 3 * day, 28 * day, 89 * day, 95 * day];
    const found = looks(post(), { ...cadence, nightAgesMs: ages });
    const young = cadence.youngMs.map((ms) => published + ms);
    const nights = ages.slice(0, 4).map((ms) => nextMidnight(published + ms, timezone, accountId));
    deepEqual(
      found,
      [...young, ...nights].toSorted((a, b) => a - b),
    );
    deepEqual(looks(post(), { ...cadence, nightAgesMs: [] }), young, 'no midnight at all');
    // The adapter asks nothing before it is asked itself.
    const { nightAgesMs } = new XAdapter({} as XOptions);
    ok(looks(post(), { ...cadence, nightAgesMs }).length <= 15, 'of some 93');
    const owned = looks(post(), { ...cadence, nightAgesMs }).filter((one) => one < published + 30 * day - hour);
    ok((owned.at(-1) ?? 0) > published + 28 * day, 'a last look at the figures that only the owner has');
  });

  t('an account is observed between 02:00 and 05:00 of its zone, once a day, through changes of the clock', () => {
    for (const timezone of ['Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia', 'UTC']) {
      const account = randomUUID();
      let now = at('2026-01-01T00:00:00Z');
      const days = new Set<string>();
      for (let night = 0; night < 400; night += 1) {
        const next = nextNight(now, timezone, account);
        ok(next > now, `${iso(next)} is after ${iso(now)}`);
        const { hour: of } = local(next, timezone);
        ok(of >= 2 && of < 5, `${iso(next)} in ${timezone}`);
        days.add(local(next, timezone).toPlainDate().toString());
        now = next;
      }
      equal(days.size, 400);
    }
  });

  t('a time that the clock skips moves an hour later; of a repeated time the first counts', () => {
    const early = accountAt(120, 180);
    const minute = minuteOf(early) - 120;
    const spring = nextNight(at('2026-03-28T20:00:00Z'), 'Europe/Berlin', early);
    equal(iso(spring), `2026-03-29T01:${String(minute).padStart(2, '0')}:00.000Z`);
    const autumn = nextNight(at('2026-10-24T20:00:00Z'), 'Europe/Berlin', early);
    equal(iso(autumn), `2026-10-25T00:${String(minute).padStart(2, '0')}:00.000Z`);
    const after = nextNight(autumn, 'Europe/Berlin', early);
    equal(local(after, 'Europe/Berlin').toPlainDate().toString(), '2026-10-26');
  });

  t('accounts are spread over the three hours, each at a fixed minute', () => {
    const tens = new Map<number, number>();
    for (let one = 0; one < 3_600; one += 1) {
      const minute = minuteOf(randomUUID());
      const ten = Math.floor(minute / 10);
      tens.set(ten, (tens.get(ten) ?? 0) + 1);
    }
    equal(tens.size, 18);
    for (const [ten, count] of tens) ok(count > 100 && count < 320, `${count} in the ten minutes from ${ten}0`);
    equal(minuteOf('a'), minuteOf('a'));
  });

  t('a post is observed after 1, 6 and 24 hours, and after each midnight of its workspace for 90 days', () => {
    for (const timezone of ['Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia', 'Africa/Cairo']) {
      const one = post({ timezone, accountId: randomUUID() });
      const all = looks(one);
      for (const step of [hour, 6 * hour, 24 * hour])
        ok(all.includes(published + step), `${timezone} ${step / hour} h`);
      const nights = all.filter((look) => ![hour, 6 * hour, 24 * hour].includes(look - published));
      ok(nights.length === 90 || nights.length === 89, `${nights.length} nights`);
      ok((nights.at(-1) ?? 0) <= published + 90 * day);
      for (const night of nights) {
        const there = local(night, timezone);
        const since = night - there.startOfDay().epochMilliseconds;
        ok(since >= 0 && since < 2 * hour, `${there} is within two hours of midnight`);
      }
      equal(new Set(nights.map((night) => local(night, timezone).toPlainDate().toString())).size, nights.length);
    }
  });

  t('a midnight look is within two hours of midnight, also where the clock repeats or skips it', () => {
    for (const [timezone, before] of [
      ['America/Havana', '2026-10-31T12:00:00Z'],
      ['America/Havana', '2026-03-07T12:00:00Z'],
      ['Asia/Beirut', '2026-03-28T12:00:00Z'],
    ] as const) {
      for (let one = 0; one < 100; one += 1) {
        const look = nextMidnight(at(before), timezone, randomUUID());
        const begins = local(look, timezone).startOfDay().epochMilliseconds;
        ok(look >= begins && look < begins + 2 * hour, `${local(look, timezone)}`);
      }
    }
  });

  t('a midnight within a post’s first hour has no look: the look after an hour covers it', () => {
    const account = accountBefore(30);
    const late = post({ publishedAt: at('2026-03-10T22:30:00Z'), accountId: account });
    const midnight = nextMidnight(at('2026-03-11T12:00:00Z'), 'Europe/Berlin', account);
    const young = [1, 6, 24].map((hours) => late.publishedAt + hours * hour);
    deepEqual(looks(late).slice(0, 4), [...young, midnight]);
  });

  t('midnight looks are spread over their two hours', () => {
    const tens = new Set<number>();
    for (let one = 0; one < 600; one += 1) {
      const look = nextMidnight(published, 'UTC', randomUUID());
      tens.add(Math.floor((look - at('2026-03-11T00:00:00Z')) / 600_000));
    }
    deepEqual(
      [...tens].sort((a, b) => a - b),
      Array.from({ length: 12 }, (_, ten) => ten),
    );
  });

  t('a story is observed within its first day alone', () => {
    deepEqual(
      looks(post({ use: 'story' })).map((one) => (one - published) / hour),
      [1, 3, 6, 12, 20, 23],
    );
  });

  t('a post that may be a story has the looks of both', () => {
    const ages = looks(post({ use: null })).map((one) => (one - published) / hour);
    for (const age of [1, 3, 6, 12, 20, 23, 24]) ok(ages.includes(age), `${age} h of ${ages.slice(0, 9)}`);
  });

  t('missed looks are not repeated: the next look is the next time from now', () => {
    equal(nextObservation(post(), published + 2 * hour, cadence), published + 6 * hour);
    equal(nextObservation(post(), published + 90 * day, cadence), null);
    equal(nextObservation(post({ use: 'story' }), published + 23 * hour, cadence), null);
  });

  t('a failed look is tried after 1, 5 and 30 minutes, then at the next regular time', () => {
    const now = published;
    const night = now + 10 * hour;
    deepEqual(
      [1, 2, 3, 4].map((failures) => nextTry(failures, now, night, cadence)),
      [now + 60_000, now + 300_000, now + 1_800_000, night],
    );
    equal(nextTry(3, now, now + 60_000, cadence), now + 60_000, 'never later than the regular time');
    equal(nextTry(1, now, null, cadence), now + 60_000, 'a last look is tried again too');
    equal(nextTry(4, now, null, cadence), null);
  });

  t('the day follows the zone', () => {
    equal(dayOf('2026-03-10T23:30:00.000Z', 'Europe/Berlin'), '2026-03-11');
    equal(dayOf('2026-03-10T03:30:00.000Z', 'America/New_York'), '2026-03-09');
    equal(dayOf('2026-03-10T23:30:00.000Z', 'UTC'), '2026-03-10');
  });
});

import { deepEqual, equal } from 'node:assert/strict';
import {
  clockChangeAt,
  daysLater,
  instantOf,
  isLocalDateTime,
  isTimezone,
  localDaysLater,
  monthAfter,
  monthBegin,
  monthOf,
  monthsAfter,
} from '#domain/zones.ts';
import { suite } from '#test/support/suite.ts';

suite('zones', (t) => {
  t('a zone is a name of the IANA database, however often it is asked for', () => {
    for (const name of ['Europe/Berlin', 'America/Argentina/Buenos_Aires', 'UTC', 'Europe/Berlin']) {
      equal(isTimezone(name), true, name);
    }
    for (const name of ['Mars/Olympus', '', 'Europe/Berlin ', `Europe/${'B'.repeat(200)}`, 'Mars/Olympus']) {
      equal(isTimezone(name), false, name);
    }
  });

  // A target that keeps an offset or a text with one would be due at another time once the clocks change.
  t('an offset is no zone, and neither is a time that names a zone', () => {
    for (const text of ['+02:00', '-08', '2026-01-01T00:00[Europe/Berlin]', '2026-01-01T00:00:00Z']) {
      equal(isTimezone(text), false, text);
    }
  });

  t('a wall-clock time is a date that exists', () => {
    for (const local of ['2028-02-29T10:00', '2026-12-31T23:59:59', '0001-01-02T00:00', '9999-12-30T23:59'])
      equal(isLocalDateTime(local), true, local);
    // Of these, some zone makes an instant outside of the years that every store holds.
    for (const local of ['0000-06-01T10:00', '0001-01-01T00:00', '9999-12-31T23:59']) {
      equal(isLocalDateTime(local), false, local);
    }
    for (const local of ['2026-02-31T10:00', '2027-02-29T10:00', '2026-01-01T25:00', 'tomorrow']) {
      equal(isLocalDateTime(local), false, local);
    }
  });

  t('a time that the clocks skip moves on, one that comes twice is the first', () => {
    equal(instantOf('2027-03-28T02:30', 'Europe/Berlin'), '2027-03-28T01:30:00.000Z');
    equal(instantOf('2027-10-31T02:30', 'Europe/Berlin'), '2027-10-31T00:30:00.000Z');
  });

  t('of a time that the clocks skip or show twice it is told what it means', () => {
    equal(clockChangeAt('2027-03-28T01:59', 'Europe/Berlin'), null);
    deepEqual(clockChangeAt('2027-03-28T02:30', 'Europe/Berlin'), {
      code: 'local_time_skipped',
      message:
        'The clocks in Europe/Berlin skip 2027-03-28T02:30: it counts as 2027-03-28T01:30:00.000Z, when they show 2027-03-28T03:30.',
    });
    deepEqual(clockChangeAt('2027-10-31T02:30', 'Europe/Berlin'), {
      code: 'local_time_repeated',
      message:
        'The clocks in Europe/Berlin show 2027-10-31T02:30 twice, at 2027-10-31T00:30:00.000Z and at 2027-10-31T01:30:00.000Z: the first counts. If the second is meant, send it as scheduledAt.',
    });
  });

  t('days later is the same wall-clock time, where the clocks change too', () => {
    equal(daysLater('2027-03-27T08:00:00.000Z', 'Europe/Berlin', 1), '2027-03-28T07:00:00.000Z');
    equal(localDaysLater('2027-02-28T10:00', 1), '2027-03-01T10:00');
  });

  t('a month is that of the zone, and begins there', () => {
    equal(monthOf('2026-11-30T23:30:00.000Z', 'Europe/Berlin'), '2026-12');
    equal(monthOf('2026-12-01T00:30:00.000Z', 'America/New_York'), '2026-11');
    equal(monthAfter('2026-11', 2), '2027-01');
    equal(monthBegin('2026-12', 'Europe/Berlin'), '2026-11-30T23:00:00.000Z');
  });

  t('months later is the same day, or the last one of a shorter month', () => {
    equal(monthsAfter('2026-01-15T12:00:00.000Z', 1), '2026-02-15T12:00:00.000Z');
    equal(monthsAfter('2026-08-31T12:00:00.000Z', 18), '2028-02-29T12:00:00.000Z');
  });
});

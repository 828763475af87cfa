import * as assert from 'node:assert/strict';
import { Rejection } from '#domain/decider.ts';
import { type Destination, jitterOf, type PlanInput, planOf, scheduleIssues } from '#domain/scheduling.ts';
import { isTimezone } from '#domain/zones.ts';
import { suite } from '#test/support/suite.ts';

const now = '2026-11-21T10:00:00.000Z';
const account = (n: number, zones: Partial<Destination> = {}): Destination => ({
  accountId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  clientId: '10000000-0000-4000-8000-000000000000',
  platform: 'x',
  accountTimezone: null,
  clientTimezone: null,
  ...zones,
});
const input = (schedule: Partial<PlanInput['schedule']>, more: Partial<PlanInput> = {}): PlanInput => ({
  postId: '20000000-0000-4000-8000-000000000000',
  number: 1,
  destinations: [account(1)],
  schedule: {
    type: 'now',
    scheduledAt: null,
    scheduledLocal: null,
    from: null,
    to: null,
    spreadMinutes: null,
    ...schedule,
  },
  timezone: 'UTC',
  scheduleMode: 'managed',
  now,
  ...more,
});
const dues = (given: PlanInput) => planOf(given).targets.map((one) => one.dueAt);
const code = (given: PlanInput): string => {
  try {
    planOf(given);
  } catch (error) {
    if (error instanceof Rejection) return error.code;
    throw error;
  }
  return 'none';
};

suite('scheduling', (t) => {
  t('now is due at once', () => assert.deepEqual(dues(input({ type: 'now' })), [now]));

  t('a wall-clock time is meant in the account’s zone, else its client’s, else the post’s', () => {
    const destinations = [
      account(1, { accountTimezone: 'Asia/Tokyo', clientTimezone: 'Europe/Berlin' }),
      account(2, { clientTimezone: 'Europe/Berlin' }),
      account(3),
    ];
    const plan = input(
      { type: 'at', scheduledLocal: '2026-12-01T09:00' },
      { destinations, timezone: 'America/New_York' },
    );
    assert.deepEqual(dues(plan), ['2026-12-01T00:00:00.000Z', '2026-12-01T08:00:00.000Z', '2026-12-01T14:00:00.000Z']);
  });

  t('a local time that DST skips moves on, one that it repeats is the first', () => {
    const at = (local: string) => dues(input({ type: 'at', scheduledLocal: local }, { timezone: 'Europe/Berlin' }))[0];
    assert.equal(at('2027-03-28T02:30'), '2027-03-28T01:30:00.000Z');
    assert.equal(at('2027-10-31T02:30'), '2027-10-31T00:30:00.000Z');
  });

  t('scheduledLocal wins over scheduledAt', () => {
    const both = input({ type: 'at', scheduledAt: '2026-12-24T00:00:00.000Z', scheduledLocal: '2026-12-01T09:00' });
    assert.deepEqual(dues(both), ['2026-12-01T09:00:00.000Z']);
  });

  t('a range spreads evenly by account id, both ends included; a single target is at its beginning', () => {
    const range = { type: 'range', from: '2026-12-01T00:00:00.000Z', to: '2026-12-01T02:00:00.000Z' } as const;
    const three = input(range, { destinations: [account(3), account(1), account(2)] });
    const plan = planOf(three).targets;
    assert.deepEqual(
      plan.map((one) => one.dueAt),
      ['2026-12-01T00:00:00.000Z', '2026-12-01T01:00:00.000Z', '2026-12-01T02:00:00.000Z'],
    );
    assert.deepEqual(
      plan.map((one) => one.accountId),
      [1, 2, 3].map((n) => account(n).accountId),
    );
    assert.deepEqual(dues(input(range)), ['2026-12-01T00:00:00.000Z']);
  });

  t('jitter is deterministic, inside the window, never earlier, and fills it', () => {
    const seconds = Array.from({ length: 2_000 }, (_, n) =>
      jitterOf('20000000-0000-4000-8000-000000000000', account(n).accountId, 10),
    );
    assert.ok(seconds.every((one) => one >= 0 && one <= 600));
    assert.ok(Math.min(...seconds) < 10 && Math.max(...seconds) > 590);
    assert.equal(jitterOf('20000000-0000-4000-8000-000000000000', account(7).accountId, 10), seconds[7]);
    assert.equal(jitterOf('20000000-0000-4000-8000-000000000000', account(7).accountId, 0), 0);
  });

  t('the past is refused beyond a minute, the future beyond 18 months', () => {
    const at = (scheduledAt: string) => code(input({ type: 'at', scheduledAt }));
    assert.equal(at('2026-11-21T09:59:00.000Z'), 'none');
    assert.equal(at('2026-11-21T09:58:59.999Z'), 'schedule_in_past');
    assert.equal(at('2028-05-21T10:00:00.000Z'), 'none');
    assert.equal(at('2028-05-21T10:00:00.001Z'), 'schedule_too_far');
  });

  t('no account, or more than 500, is refused', () => {
    assert.equal(code(input({}, { destinations: [] })), 'no_targets');
    assert.equal(
      code(input({}, { destinations: Array.from({ length: 501 }, (_, n) => account(n)) })),
      'validation_failed',
    );
  });

  t('native falls back to managed and says why', () => {
    const plan = planOf(
      input({}, { scheduleMode: 'native', destinations: [account(1, { platform: 'facebook' }), account(2)] }),
    );
    assert.deepEqual(
      plan.targets.map((one) => [one.scheduleMode, one.scheduleModeReason]),
      [
        ['managed', 'native_not_available'],
        ['managed', 'platform_has_no_scheduler'],
      ],
    );
  });

  t('a schedule that cannot be meant is named', () => {
    const paths = (schedule: Partial<PlanInput['schedule']>, zone = 'UTC') =>
      scheduleIssues(input(schedule).schedule, zone).map((one) => one.path);
    assert.deepEqual(paths({ type: 'at' }), ['/schedule/scheduledAt']);
    assert.deepEqual(paths({ type: 'at', scheduledLocal: '2026-02-31T09:00' }), ['/schedule/scheduledLocal']);
    assert.deepEqual(paths({ type: 'range' }), ['/schedule/from', '/schedule/to']);
    assert.deepEqual(paths({ type: 'range', from: now, to: now }), ['/schedule/to']);
    assert.deepEqual(paths({}, 'Mars/Olympus'), ['/timezone']);
    assert.equal(isTimezone('+02:00'), false);
  });
});

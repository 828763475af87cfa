import * as assert from 'node:assert/strict';
import { Rejection } from '#domain/decider.ts';
import {
  checkDue,
  considerPlan,
  type Destination,
  jitterOf,
  type PlanInput,
  scheduleIssues,
} from '#domain/post/scheduling.ts';
import { isTimezone } from '#domain/zones.ts';
import { planOf } from '#test/support/planning.ts';
import { suite } from '#test/support/suite.ts';

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
  variants: [],
  now,
  ...more,
});
const dues = (given: PlanInput) => planOf(given).targets.map((one) => one.dueAt);
const refusalOf = (step: () => unknown): Rejection | null => {
  try {
    step();
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    assert.match(error.message, /^[A-Z].*\.$/, 'a refusal says why in a sentence');
    return error;
  }
  return null;
};
const code = (given: PlanInput): string => refusalOf(() => planOf(given))?.code ?? 'none';

suite('scheduling', (t) => {
  t('now is due at once, whatever else the schedule says', () => {
    assert.deepEqual(dues(input({ type: 'now' })), [now]);
    const rest = {
      from: '2026-12-01T00:00:00.000Z',
      to: '2026-12-02T00:00:00.000Z',
      scheduledLocal: '2026-12-01T09:00',
    };
    const target = planOf(input({ type: 'now', ...rest })).targets[0];
    assert.deepEqual([target?.dueAt, target?.scheduledLocal], [now, null]);
  });

  t('a target keeps the wall-clock time that its post was given, and none that it was not', () => {
    const local = (schedule: Partial<PlanInput['schedule']>) => planOf(input(schedule)).targets[0]?.scheduledLocal;
    assert.equal(local({ type: 'at', scheduledLocal: '2026-12-01T09:00' }), '2026-12-01T09:00');
    assert.equal(local({ type: 'at', scheduledAt: '2026-12-01T09:00:00.000Z' }), null);
    const range = { from: '2026-12-01T00:00:00.000Z', to: '2026-12-02T00:00:00.000Z' };
    assert.equal(local({ type: 'range', ...range, scheduledLocal: '2026-12-01T09:00' }), null);
  });

  t('a wall-clock time is read in the account’s zone, else its client’s, else the post’s', () => {
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

  t('a spread takes in its last second', () => {
    const seconds = Array.from({ length: 2_000 }, (_, n) => jitterOf('p1', account(n).accountId, 1));
    assert.deepEqual([Math.min(...seconds), Math.max(...seconds)], [0, 60]);
  });

  t('jitter moves a target to a later time, by the seconds that the target shows', () => {
    const requested = '2026-12-01T09:00:00.000Z';
    const destinations = Array.from({ length: 50 }, (_, n) => account(n));
    const { targets } = planOf(input({ type: 'at', scheduledAt: requested, spreadMinutes: 30 }, { destinations }));
    for (const { dueAt, jitterSeconds } of targets) {
      assert.ok(dueAt >= requested, `${dueAt} is before the time that was asked for`);
      assert.equal(Date.parse(dueAt) - Date.parse(requested), jitterSeconds * 1_000);
    }
    assert.ok(new Set(targets.map((one) => one.dueAt)).size > 40);
    const exact = planOf(input({ type: 'at', scheduledAt: requested }, { destinations })).targets;
    assert.ok(exact.every((one) => one.dueAt === requested && one.jitterSeconds === 0));
  });

  t('the past is refused beyond a minute, the future beyond 18 months', () => {
    const at = (scheduledAt: string) => code(input({ type: 'at', scheduledAt }));
    assert.equal(at('2026-11-21T09:59:00.000Z'), 'none');
    assert.equal(at('2026-11-21T09:58:59.999Z'), 'schedule_in_past');
    assert.equal(at('2028-05-21T10:00:00.000Z'), 'none');
    assert.equal(at('2028-05-21T10:00:00.001Z'), 'schedule_too_far');
  });

  t('a refusal for its time names each account and the time that it would be due', () => {
    const errors = (scheduledAt: string) =>
      refusalOf(() => planOf(input({ type: 'at', scheduledAt }, { destinations: [account(1), account(2)] })))?.errors;
    const named = (code: string, message: string) =>
      [account(1), account(2)].map(({ accountId, platform }) => ({
        path: '/schedule',
        code,
        message,
        accountId,
        platform,
      }));
    const past = '2026-11-20T00:00:00.000Z';
    assert.deepEqual(errors(past), named('schedule_in_past', `${past} is in the past`));
    const far = '2029-01-01T00:00:00.000Z';
    assert.deepEqual(errors(far), named('schedule_too_far', `${far} is more than 18 months ahead`));
  });

  t('a rescheduled target has the same limits of past and future', () => {
    const moved = (dueAt: string) => {
      const refusal = refusalOf(() => checkDue(dueAt, now, '/scheduledAt'));
      return refusal === null ? 'none' : [refusal.code, ...refusal.errors];
    };
    assert.equal(moved('2026-11-21T09:59:00.000Z'), 'none');
    const past = '2026-11-21T09:58:59.999Z';
    assert.deepEqual(moved(past), [
      'schedule_in_past',
      { path: '/scheduledAt', code: 'schedule_in_past', message: `${past} is in the past` },
    ]);
    assert.equal(moved('2028-05-21T10:00:00.000Z'), 'none');
    const far = '2028-05-21T10:00:00.001Z';
    assert.deepEqual(moved(far), [
      'schedule_too_far',
      { path: '/scheduledAt', code: 'schedule_too_far', message: `${far} is more than 18 months ahead` },
    ]);
  });

  t('no account, or more than 500, is refused', () => {
    const selecting = (count: number) =>
      input({}, { destinations: Array.from({ length: count }, (_, n) => account(n)) });
    assert.equal(code(selecting(0)), 'no_targets');
    assert.equal(planOf(selecting(500)).targets.length, 500);
    const refusal = refusalOf(() => planOf(selecting(501)));
    assert.equal(refusal?.code, 'validation_failed');
    assert.match(refusal.message, /500/);
    const message = 'selects 501 accounts, at most 500 are allowed';
    assert.deepEqual(refusal.errors, [{ path: '/targets', code: 'too_many', message }]);
  });

  t('a plan that is considered shows every reason, and the times of the targets all the same', () => {
    const shown = (given: PlanInput) => {
      const { plan, refusals } = considerPlan(given);
      return [plan.number, plan.targets.map((one) => one.dueAt), refusals.map((one) => one.code)];
    };
    const [from, to] = ['2020-01-01T00:00:00.000Z', '2030-01-01T00:00:00.000Z'];
    const destinations = [account(1), account(2)];
    const all = ['schedule_in_past', 'schedule_too_far'];
    assert.deepEqual(shown(input({ type: 'range', from, to }, { destinations })), [1, [from, to], all]);
    assert.deepEqual(shown(input({}, { destinations: [] })), [1, [], ['no_targets']]);
    const many = Array.from({ length: 501 }, (_, n) => account(n));
    const past = { type: 'at', scheduledAt: from } as const;
    const { plan, refusals } = considerPlan(input(past, { destinations: many }));
    assert.deepEqual(
      [plan.targets.length, refusals.map((one) => one.code)],
      [500, ['validation_failed', 'schedule_in_past']],
    );
  });

  t('native is handed over inside the network’s window; elsewhere it is managed, with a reason', () => {
    const destinations = [account(1, { platform: 'facebook' }), account(2, { platform: 'youtube' }), account(3)];
    const modes = (schedule: Partial<PlanInput['schedule']>, more: Partial<PlanInput> = {}) =>
      planOf(input(schedule, { scheduleMode: 'native', destinations, ...more })).targets.map(
        ({ scheduleMode, scheduleModeReason }) => (scheduleMode === 'native' ? 'native' : scheduleModeReason),
      );
    const after = (ms: number) => ({
      type: 'at' as const,
      scheduledAt: new Date(Date.parse(now) + ms).toISOString(),
    });
    const none = 'platform_has_no_scheduler';
    const outside = 'outside_native_window';
    const minute = 60_000;
    const day = 86_400_000;
    assert.deepEqual(modes({}), ['due_now', 'due_now', none]);
    // Jitter may move a post that is wanted now into the window, and it is not handed over all the same.
    assert.deepEqual(modes({ spreadMinutes: 720 }), ['due_now', 'due_now', none]);
    assert.deepEqual(modes(after(0)), ['due_now', 'due_now', none]);
    assert.deepEqual(modes(after(1)), [outside, outside, none]);
    assert.deepEqual(modes(after(10 * minute - 1)), [outside, outside, none]);
    assert.deepEqual(modes(after(10 * minute)), ['native', outside, none]);
    assert.deepEqual(modes(after(15 * minute - 1)), ['native', outside, none]);
    assert.deepEqual(modes(after(15 * minute)), ['native', 'native', none]);
    assert.deepEqual(modes(after(29 * day)), ['native', 'native', none]);
    assert.deepEqual(modes(after(29 * day + 1)), [outside, 'native', none]);
    const variant = (platform: 'facebook' | 'youtube', overrides: Record<string, unknown>) => ({
      variants: [{ platform, contentOverride: null, mediaIdsOverride: null, overrides }],
    });
    const soon = after(day);
    const refused = 'setting_not_schedulable';
    assert.deepEqual(modes(soon, variant('facebook', { contentType: 'story' })), [refused, 'native', none]);
    assert.deepEqual(modes(soon, variant('facebook', { contentType: 'reel' })), ['native', 'native', none]);
    assert.deepEqual(modes(soon, variant('youtube', { privacyStatus: 'unlisted' })), ['native', refused, none]);
    assert.deepEqual(modes(soon, variant('youtube', { privacyStatus: 'private' })), ['native', refused, none]);
    assert.deepEqual(modes(soon, variant('youtube', { privacyStatus: 'public' })), ['native', 'native', none]);
    const managed = planOf(input(soon, { destinations })).targets;
    assert.ok(managed.every((one) => one.scheduleMode === 'managed' && one.scheduleModeReason === null));
  });

  t('an impossible schedule gives a named issue', () => {
    const issues = (schedule: Partial<PlanInput['schedule']>, zone = 'UTC') =>
      scheduleIssues(input(schedule).schedule, zone).map((one) => `${one.path} ${one.message}`);
    assert.deepEqual(issues({ type: 'at' }), ['/schedule/scheduledAt is required, or scheduledLocal, when type is at']);
    assert.deepEqual(issues({ type: 'at', scheduledLocal: '2026-02-31T09:00' }), [
      '/schedule/scheduledLocal is not a time of the calendar',
    ]);
    assert.deepEqual(issues({ type: 'range' }), [
      '/schedule/from is required when type is range',
      '/schedule/to is required when type is range',
    ]);
    assert.deepEqual(issues({ type: 'range', from: now }), ['/schedule/to is required when type is range']);
    assert.deepEqual(issues({ type: 'range', to: now }), ['/schedule/from is required when type is range']);
    assert.deepEqual(issues({ type: 'range', from: now, to: now }), ['/schedule/to must be after from']);
    assert.deepEqual(issues({}, 'Mars/Olympus'), ['/timezone must be an IANA timezone, such as Europe/Berlin']);
    assert.equal(isTimezone('+02:00'), false);
  });

  t('a complete schedule has no issues, whatever further members it has', () => {
    const issues = (schedule: Partial<PlanInput['schedule']>) => scheduleIssues(input(schedule).schedule, 'UTC');
    assert.deepEqual(issues({ type: 'now', scheduledLocal: '2026-02-31T09:00', from: now, to: now }), []);
    assert.deepEqual(issues({ type: 'at', scheduledAt: now }), []);
    assert.deepEqual(issues({ type: 'at', scheduledLocal: '2026-02-28T09:00' }), []);
    assert.deepEqual(issues({ type: 'range', from: now, to: '2026-11-21T10:00:00.001Z' }), []);
  });
});

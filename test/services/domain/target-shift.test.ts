import { target } from '#domain/post-target/target.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given } = deciding(target);
const ids = { targetId: 't1', accountId: 'a1', clientId: 'c1' };
const now = '2026-03-01T00:00:00.000Z';
const berlin = { timezone: 'Europe/Berlin' };

const scheduled = (over: Partial<ReturnType<typeof planned>> = {}): TargetEvent => ({
  type: 'TargetScheduled',
  data: { ...planned({ ...ids, dueAt: '2026-03-28T08:00:00.000Z', ...over }), postId: 'p1', postRevision: 0 },
});
const moved = (dueAt: string, scheduledLocal: string | null = null, jitterSeconds = 0): TargetEvent => ({
  type: 'TargetRescheduled',
  data: { dueAt, scheduledLocal, jitterSeconds },
});
const minutes = (by: number) => ({ type: 'Shift', commandId: 's1', now, minutes: by, days: null }) as const;
const days = (by: number) => ({ type: 'Shift', commandId: 's1', now, minutes: null, days: by }) as const;
const claim = { attempt: 1, takeover: 0 };
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const limited: TargetEvent = {
  type: 'TargetRateLimited',
  data: { ...claim, retryAt: '2026-03-28T09:00:00.000Z', failure },
};

suite('target: a shift of its campaign', (t) => {
  t('by minutes moves the instant, keeps the jitter and leaves the wall-clock time', () => {
    given([scheduled({ jitterSeconds: 30, scheduledLocal: '2026-03-28T09:00', ...berlin })])
      .when(minutes(90))
      .then([moved('2026-03-28T09:30:00.000Z', null, 30)]);
    given([scheduled()])
      .when(minutes(-60))
      .then([moved('2026-03-28T07:00:00.000Z')]);
    given([scheduled()]).when(minutes(0)).then([]);
  });

  t('by days keeps the wall-clock time in its own zone, where the clocks change too', () => {
    const local = scheduled({ scheduledLocal: '2026-03-28T09:00', ...berlin });
    // In Berlin 29 March 2026 has 23 hours, in New York it has 24.
    given([local])
      .when(days(1))
      .then([moved('2026-03-29T07:00:00.000Z', '2026-03-29T09:00')]);
    given([scheduled(berlin)])
      .when(days(1))
      .then([moved('2026-03-29T07:00:00.000Z')]);
    given([scheduled({ timezone: 'America/New_York' })])
      .when(days(1))
      .then([moved('2026-03-29T08:00:00.000Z')]);
    // And 25 hours on 25 October.
    given([scheduled({ dueAt: '2026-10-24T07:00:00.000Z', ...berlin })])
      .when(days(1))
      .then([moved('2026-10-25T08:00:00.000Z')]);
    given([scheduled({ dueAt: '2026-10-25T08:00:00.000Z', ...berlin })])
      .when(days(-1))
      .then([moved('2026-10-24T07:00:00.000Z')]);
  });

  t('counts from the time to which a late release moved the target, which has no wall-clock time then', () => {
    const asked = {
      dueAt: '2026-03-01T09:10:00.000Z',
      scheduledLocal: '2026-03-01T10:00',
      jitterSeconds: 600,
      ...berlin,
    };
    const held: TargetEvent = { type: 'TargetHeld', data: { postRevision: 0 } };
    const released = (dueAt: string): TargetEvent => ({ type: 'TargetReleased', data: { postRevision: 2, dueAt } });
    given([scheduled(asked), held, released('2026-03-05T12:00:00.000Z'), started, limited])
      .when(days(5))
      .then([moved('2026-03-10T12:00:00.000Z')]);
    // A release in time moves nothing.
    given([scheduled(asked), held, released(asked.dueAt)])
      .when(days(5))
      .then([moved('2026-03-06T09:10:00.000Z', '2026-03-06T10:00', 600)]);
  });

  t('by days keeps the jitter behind the wall-clock time', () => {
    // The hour that the clocks skip lies between the time that was asked for and the one with its jitter.
    const jittered = { dueAt: '2026-03-28T01:10:00.000Z', jitterSeconds: 1_200, ...berlin };
    given([scheduled(jittered)])
      .when(days(1))
      .then([moved('2026-03-29T01:10:00.000Z', null, 1_200)]);
    given([scheduled({ ...jittered, scheduledLocal: '2026-03-28T01:50' })])
      .when(days(1))
      .then([moved('2026-03-29T01:10:00.000Z', '2026-03-29T01:50', 1_200)]);
  });

  t(
    'into an hour that the clocks skip moves forward by the gap, and the wall-clock time that was asked for stays',
    () => {
      const local = scheduled({ dueAt: '2026-03-28T01:30:00.000Z', scheduledLocal: '2026-03-28T02:30', ...berlin });
      const skipped = moved('2026-03-29T01:30:00.000Z', '2026-03-29T02:30');
      given([local]).when(days(1)).then([skipped]);
      given([local, skipped])
        .when({ ...days(1), commandId: 's2' })
        .then([moved('2026-03-30T00:30:00.000Z', '2026-03-30T02:30')]);
    },
  );

  t('moves held and rate-limited targets, once per command', () => {
    const held: TargetEvent = { type: 'TargetHeld', data: { postRevision: 0 } };
    const there = moved('2026-03-29T08:00:00.000Z');
    given([scheduled(), held]).when(days(1)).then([there]);
    given([scheduled(), started, limited]).when(days(1)).then([there]);
    const retried = { ...there, commandId: 's1' };
    given([scheduled(), retried, moved('2026-04-10T08:00:00.000Z')])
      .when(days(1))
      .then([]);
  });

  t('passes over every other target, and over a time in the past or too far ahead, with the reason', () => {
    given([scheduled(), started]).when(days(1)).refused('target_not_pending', 'publishing');
    const canceled: TargetEvent = { type: 'TargetCanceled', data: { reason: 'requested', postRevision: null } };
    given([scheduled(), canceled]).when(days(1)).refused('target_not_pending', 'canceled');
    given([scheduled()]).when(days(-28)).refused('target_not_pending', 'schedule_in_past');
    given([scheduled({ dueAt: '2027-03-28T08:00:00.000Z' })])
      .when(days(365))
      .refused('target_not_pending', 'schedule_too_far');
    given([]).when(days(1)).refused('not_found');
  });
});

import { deepEqual, equal } from 'node:assert/strict';
import { type TargetState, target } from '#domain/post-target/target.ts';
import { apiVersionEnded, approvalTooLate, publishingHeld } from '#domain/publish-failures.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** What keeps a target from going out at its time, and what ends the wait: approvals, holds, limits of an account, places. */

const { given, state } = deciding(target);

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const planned = {
  targetId: 't1',
  accountId: 'a1',
  clientId: 'c1',
  platform: 'x',
  dueAt: at(100),
  scheduledLocal: '2026-01-01T01:01',
  timezone: 'UTC',
  jitterSeconds: 7,
  scheduleMode: 'managed',
  scheduleModeReason: null,
} as const;
const { targetId: _target, accountId: _account, clientId: _client, platform: _platform, ...time } = planned;
const claim = { attempt: 1, takeover: 0 };
const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...planned, postId: 'p1', postRevision: 3 } };
const strict: TargetEvent = {
  type: 'TargetScheduled',
  data: { ...planned, approvalLate: 'fail', postId: 'p1', postRevision: 3 },
};
const held: TargetEvent = { type: 'TargetHeld', data: { postRevision: 3 } };
const lapsed: TargetEvent = { type: 'TargetApprovalLapsed', data: { dueAt: at(100) } };
const released = (dueAt: string): TargetEvent => ({ type: 'TargetReleased', data: { postRevision: 4, dueAt } });
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const boundary: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: {}, deadline: at(110) },
};
const deferred = (retryAt: string, why = failure): TargetEvent => ({
  type: 'TargetPublishDeferred',
  data: { ...claim, retryAt, failure: why },
});
const commonOf = (events: readonly Given<TargetEvent>[]) => {
  const now: TargetState = state(events);
  if (now.status === 'none') throw new Error('no target');
  return now.common;
};

suite('what a target waits for', (t) => {
  t('an approval that comes in time releases it at its time, a late one at once', () => {
    const release = (seconds: number) => ({ type: 'Release', postRevision: 4, now: at(seconds) }) as const;
    given([scheduled, held])
      .when(release(99))
      .then([released(at(100))]);
    given([scheduled, held])
      .when(release(100))
      .then([released(at(100))]);
    given([scheduled, held])
      .when(release(101))
      .then([released(at(101))]);
    equal(state([scheduled, held, released(at(101))]).status, 'pending');
    // What was held anew since needs another release.
    given([scheduled, { type: 'TargetHeld', data: { postRevision: 4 } }])
      .when(release(90))
      .then([]);
    given([scheduled]).when(release(90)).refused('target_not_pending', 'A pending target cannot be released.');
    given([]).when(release(90)).refused('not_found');
  });

  t('an approval that may not be late fails it at its time', () => {
    const lapse = (seconds: number) => ({ type: 'LapseApproval', now: at(seconds) }) as const;
    given([strict, held]).when(lapse(99)).then([]);
    given([strict, held]).when(lapse(100)).then([lapsed]);
    given([strict, held])
      .when({ type: 'Release', postRevision: 4, now: at(100) })
      .then([lapsed], { again: 'target_not_pending' });
    given([scheduled, held]).when(lapse(1_000)).then([]);
    given([strict]).when(lapse(1_000)).then([]);
    deepEqual(state([strict, held, lapsed]), {
      status: 'failed',
      failure: approvalTooLate,
      common: commonOf([strict, held]),
    });
  });

  t('an account that may publish later is no try, and the same time is said once', () => {
    const defer = { type: 'DeferAtClaim', retryAt: at(200), failure } as const;
    given([scheduled])
      .when(defer)
      .then([deferred(at(200))]);
    const waiting = state([scheduled, deferred(at(200))]);
    deepEqual(waiting, {
      status: 'pending',
      retryAt: at(200),
      common: { ...commonOf([scheduled]), deferredSince: at(100) },
    });
    given([scheduled, started]).when(defer).refused('not_claimable');
    // A failed try counts.
    equal(commonOf([scheduled, started, deferred(at(200))]).defers, 1);
  });

  t('a later attempt sees which calls made nothing, and of a lost one it does not', () => {
    const step = (attempt: number, name: string): TargetEvent => ({
      type: 'TargetPublishCheckpointed',
      data: { attempt, takeover: 0, step: name, data: {}, deadline: name === 'boundary' ? at(110) : null },
    });
    const again: TargetEvent = { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } };
    const crossed = [scheduled, started, step(1, 'container'), step(1, 'boundary')];
    const seen = (events: readonly TargetEvent[]) => commonOf(events).checkpoints.map((one) => one.madeNothing ?? null);
    deepEqual(seen([...crossed, deferred(at(200))]), [null, true]);
    const second = [step(2, 'boundary'), deferred(at(300))];
    deepEqual(seen([...crossed, deferred(at(200)), again, ...second]), [null, true, true]);
    const unknown: TargetEvent = { type: 'TargetOutcomeUnknown', data: { ...claim, failure, reconcileAt: at(150) } };
    const nothingFound = { externalId: null, permalink: null, publishedAt: null, failure: null };
    const settled: TargetEvent = {
      type: 'TargetOutcomeSettled',
      data: { ...nothingFound, by: 'reconcile', outcome: 'absent', retryAt: at(800) },
    };
    deepEqual(seen([...crossed, unknown, settled, again, ...second]), [null, null, true]);
    deepEqual(seen([...crossed, { type: 'TargetRateLimited', data: { ...claim, retryAt: at(200), failure } }]), [
      null,
      null,
    ]);
  });

  t('the wait counts from the due time, or from the moment after it', () => {
    const wait = (seconds: number) => commonOf([scheduled, { ...deferred(at(300)), at: at(seconds) }]).deferredSince;
    deepEqual([wait(99), wait(100), wait(101)], [at(100), at(100), at(101)]);
  });

  t('while publishing is held it keeps the time of its attempt and uses up no try', () => {
    const hold = { type: 'RecordHeld', ...claim, now: at(150), failure: publishingHeld } as const;
    given([scheduled, started])
      .when(hold)
      .then([deferred(at(100), publishingHeld)], { again: 'claim_lost' });
    const after = [scheduled, started, deferred(at(100), publishingHeld)];
    deepEqual([state(after).status, commonOf(after).defers], ['pending', 0]);
    given([scheduled, deferred(at(200)), started])
      .when(hold)
      .then([deferred(at(200), publishingHeld)], { again: 'claim_lost' });
  });

  t('while its network rests it waits the same, also where the network said so to the call itself', () => {
    const rest = { type: 'RecordHeld', ...claim, now: at(150), failure: apiVersionEnded } as const;
    const waits = deferred(at(100), apiVersionEnded);
    given([scheduled, started]).when(rest).then([waits], { again: 'claim_lost' });
    given([scheduled, started, boundary]).when(rest).refused('boundary_crossed');
    given([scheduled, started, boundary])
      .when({ ...rest, nothingSent: true })
      .then([waits], { again: 'claim_lost' });
    for (const events of [
      [scheduled, started, waits],
      [scheduled, started, boundary, waits],
    ]) {
      deepEqual([state(events).status, commonOf(events).defers, commonOf(events).rateLimits], ['pending', 0, 0]);
    }
  });

  t('a place that is given back changes nothing but the revision, where the target could be moved', () => {
    const lapse = { type: 'LapsePlace' } as const;
    const gone: TargetEvent = { type: 'TargetPlaceLapsed', data: {} };
    for (const events of [[scheduled], [scheduled, held], [strict, held, lapsed]]) {
      given(events)
        .when(lapse)
        .then([gone], { again: [gone] });
      deepEqual(state([...events, gone]), state(events));
    }
    for (const events of [[], [scheduled, started]]) given(events).when(lapse).then([]);
  });

  t('a revision keeps the time that was asked for, where a late release moved the target, and only then', () => {
    const late = [scheduled, held, released(at(130))];
    const asked = { dueAt: at(100), scheduledLocal: planned.scheduledLocal, jitterSeconds: planned.jitterSeconds };
    deepEqual(commonOf(late).askedTime, asked);
    const revised = (dueAt: string): TargetEvent => ({
      type: 'TargetRevised',
      data: { postRevision: 5, ...time, dueAt },
    });
    deepEqual(commonOf([...late, revised(at(130))]).askedTime, asked);
    equal(commonOf([...late, revised(at(140))]).askedTime, null);
  });
});

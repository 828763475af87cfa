import { deepEqual, equal, ok, throws } from 'node:assert/strict';
import { closesAt, isUndoable, scheduleModeOf, timeReason, undoClosesMs } from '#domain/post/scheduling.ts';
import {
  attemptAt,
  isBeingCanceled,
  isCancelable,
  isOpen,
  type TargetCommand,
  type TargetState,
  TooLate,
  target,
} from '#domain/post-target/target.ts';
import { nativePostLate, publishingHeld, undoTooLate } from '#domain/publish-failures.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);

const minuteMs = 60_000;
const base = Date.UTC(2026, 0, 1);
/** Minutes after the start of the year. */
const at = (minutes: number): string => new Date(base + minutes * minuteMs).toISOString();
const dueAt = at(60);
const planned = {
  targetId: 't1',
  accountId: 'a1',
  clientId: 'c1',
  platform: 'facebook',
  dueAt,
  scheduledLocal: null,
  timezone: 'UTC',
  jitterSeconds: 5,
  scheduleMode: 'native',
  scheduleModeReason: null,
} as const;
const policy = { deferDelaysMs: [minuteMs, 2 * minuteMs], maxRateLimits: 1, jitter: 0 };
const claim = { attempt: 1, takeover: 0 };

const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...planned, postId: 'p1', postRevision: 3 } };
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const step: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'upload', data: { id: '1' }, deadline: null },
};
const boundary: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: { key: 'k' }, deadline: at(1) },
};
const handed: TargetEvent = { type: 'TargetHandedToPlatform', data: { ...claim, nativeId: 'n1', dueAt } };
const managedBecause = (scheduleModeReason: string): TargetEvent => ({
  type: 'TargetScheduleModeChanged',
  data: { scheduleMode: 'managed', scheduleModeReason },
});
const tooLate = managedBecause('outside_native_window');
const deferred = (retryAt: string): TargetEvent => ({
  type: 'TargetPublishDeferred',
  data: { ...claim, retryAt, failure },
});
const claimed = [scheduled, started, step];
const crossed = [...claimed, boundary];
const over = [...crossed, handed];
const unknown: TargetEvent = { type: 'TargetOutcomeUnknown', data: { ...claim, failure, reconcileAt: at(2) } };
const none = { reason: null, postRevision: null, dueAt: null, scheduledLocal: null, jitterSeconds: null } as const;
const toCancel = (postRevision: number | null = null): TargetEvent => ({
  type: 'TargetUndoRequested',
  data: { ...none, then: 'cancel', reason: 'requested', postRevision },
});
const toMove = (to: string, jitterSeconds = 0): TargetEvent => ({
  type: 'TargetUndoRequested',
  data: { ...none, then: 'reschedule', dueAt: to, jitterSeconds },
});
const cancel = (now: string): TargetCommand => ({ type: 'Cancel', reason: 'requested', postRevision: null, now });
const move = (to: string, now: string, jitterSeconds = 0): TargetCommand => ({
  type: 'Reschedule',
  commandId: 'm1',
  dueAt: to,
  scheduledLocal: null,
  jitterSeconds,
  now,
});
const there = { externalId: 'e1', permalink: null, publishedAt: dueAt };
const settledAs = (data: Partial<Extract<TargetEvent, { type: 'TargetOutcomeSettled' }>['data']>): TargetEvent => ({
  type: 'TargetOutcomeSettled',
  data: {
    ...{ outcome: 'published', externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' },
    ...data,
  },
});
const settle = (outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome']): TargetCommand => ({
  type: 'Settle',
  now: at(61),
  by: 'reconcile',
  outcome,
});
const modeOf = (now: TargetState) =>
  now.status === 'none' ? null : [now.status, now.common.scheduleMode, now.common.scheduleModeReason];

suite('native targets', (t) => {
  t('the window of a network is closed at both ends, and a post may be taken back until a minute before', () => {
    const reason = (platform: 'facebook' | 'youtube' | 'x', minutes: number) =>
      timeReason(platform, at(minutes), at(0));
    equal(reason('x', 60), 'platform_has_no_scheduler');
    equal(reason('facebook', 0), 'due_now');
    equal(reason('facebook', -1), 'due_now');
    equal(timeReason('facebook', new Date(base + 1).toISOString(), at(0)), 'outside_native_window');
    equal(timeReason('facebook', new Date(base + 10 * minuteMs - 1).toISOString(), at(0)), 'outside_native_window');
    equal(reason('facebook', 10), null);
    equal(reason('facebook', 29 * 1440), null);
    equal(timeReason('facebook', new Date(base + 29 * 86_400_000 + 1).toISOString(), at(0)), 'outside_native_window');
    equal(reason('youtube', 14), 'outside_native_window');
    equal(reason('youtube', 15), null);
    equal(closesAt('facebook', dueAt), at(50));
    equal(closesAt('youtube', dueAt), at(45));
    equal(closesAt('x', dueAt), dueAt);
    equal(undoClosesMs, minuteMs);
    equal(isUndoable(dueAt, at(59)), true);
    equal(isUndoable(dueAt, new Date(base + 59 * minuteMs + 1).toISOString()), false);
  });

  t('a revision gets the mode that its own time and settings allow', () => {
    const wanted = {
      scheduleMode: 'native',
      platform: 'facebook',
      overrides: {},
      isNow: false,
      dueAt,
      now: at(0),
    } as const;
    const native = { scheduleMode: 'native', scheduleModeReason: null };
    const managed = (scheduleModeReason: string | null) => ({ scheduleMode: 'managed', scheduleModeReason });
    deepEqual(scheduleModeOf(wanted), native);
    deepEqual(scheduleModeOf({ ...wanted, scheduleMode: 'managed' }), managed(null));
    deepEqual(scheduleModeOf({ ...wanted, platform: 'x' }), managed('platform_has_no_scheduler'));
    deepEqual(scheduleModeOf({ ...wanted, isNow: true }), managed('due_now'));
    deepEqual(scheduleModeOf({ ...wanted, dueAt: at(9) }), managed('outside_native_window'));
    const story = { contentType: 'story' };
    deepEqual(scheduleModeOf({ ...wanted, overrides: story }), managed('setting_not_schedulable'));
    deepEqual(scheduleModeOf({ ...wanted, overrides: { contentType: 'feed' } }), native);
  });

  t('is claimed at once, and only while the network’s window is open', () => {
    const waiting = state([scheduled]);
    equal(waiting.status === 'pending' && attemptAt(waiting), at(0).replace('2026', '1970'));
    given([scheduled])
      .when({ type: 'Start', now: at(0) })
      .then([started], { again: 'not_claimable' });
    given([scheduled])
      .when({ type: 'Start', now: at(50) })
      .then([started], { again: 'not_claimable' });
    given([scheduled])
      .when({ type: 'Start', now: at(51) })
      .refused('too_late_to_hand_over', 'takes no post for that time');
    given([scheduled, started, deferred(at(20))])
      .when({ type: 'Start', now: at(19) })
      .refused('not_due');
    given([scheduled, started, deferred(at(20))])
      .when({ type: 'Start', now: at(20) })
      .then([{ type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } }], { again: 'not_claimable' });
  });

  t('too late for its window, it is published by us at its own time', () => {
    given([scheduled])
      .when({ type: 'FallBack', now: at(50) })
      .then([]);
    given([scheduled])
      .when({ type: 'FallBack', now: at(51) })
      .then([tooLate]);
    given([scheduled])
      .when({ type: 'FallBack', now: at(60) })
      .then([managedBecause('due_now')]);
    for (const events of [[], claimed, over])
      given(events)
        .when({ type: 'FallBack', now: at(51) })
        .then([]);
    const fallen = state([scheduled, tooLate]);
    deepEqual(modeOf(fallen), ['pending', 'managed', 'outside_native_window']);
    equal(fallen.status === 'pending' && attemptAt(fallen), dueAt);
    given([scheduled, tooLate])
      .when({ type: 'Start', now: at(59) })
      .refused('not_due');
    given([scheduled, tooLate])
      .when({ type: 'Start', now: at(60) })
      .then([started], { again: 'not_claimable' });
  });

  t('a hand-over that was to be tried again does not make the managed post early', () => {
    const again = [scheduled, started, deferred(at(49)), tooLate];
    const fallen = state(again);
    equal(fallen.status === 'pending' && attemptAt(fallen), dueAt);
    given(again)
      .when({ type: 'Start', now: at(51) })
      .refused('not_due');
    const later = state([scheduled, started, deferred(at(70)), tooLate]);
    equal(later.status === 'pending' && attemptAt(later), at(70));
    const native = state([
      ...again,
      { type: 'TargetScheduleModeChanged', data: { scheduleMode: 'native', scheduleModeReason: null } },
    ]);
    equal(native.status === 'pending' && native.retryAt, null);
    const kept: TargetEvent = {
      type: 'TargetScheduleModeChanged',
      data: { scheduleMode: 'native', scheduleModeReason: null },
    };
    const still = state([scheduled, started, deferred(at(49)), kept]);
    equal(still.status === 'pending' && still.retryAt, at(49));
  });

  t('what the network waits for keeps its instant, whatever its mode becomes', () => {
    const limited: TargetEvent = { type: 'TargetRateLimited', data: { ...claim, retryAt: at(20), failure } };
    const waiting = state([scheduled, started, limited, tooLate]);
    equal(waiting.status === 'rate_limited' && waiting.retryAt, at(20));
  });

  t('a hand-over is recorded by the worker that made the call', () => {
    const command = { type: 'RecordHandedOver', ...claim, nativeId: 'n1' } as const;
    given(crossed).when(command).then([handed], { again: 'claim_lost' });
    given(claimed).when(command).refused('no_boundary');
    for (const events of [[], [scheduled], over]) given(events).when(command).refused('claim_lost');
    given([...crossed, { type: 'TargetPublishTakenOver', data: { attempt: 1, takeover: 1 } }])
      .when(command)
      .refused('claim_lost');
    deepEqual(state(over), {
      status: 'handed_to_platform',
      takeover: 0,
      nativeId: 'n1',
      boundary: { attempt: 1, step: 'boundary', data: { key: 'k' }, deadline: at(1), segment: null },
      undo: null,
      otherTimes: [],
      otherContents: [],
      common: {
        ...planned,
        ...{ postId: 'p1', postRevision: 3, appliedRevision: 3, attempts: 1, rateLimits: 0, defers: 0 },
        ...{ provenAbsences: 0, assumedAbsences: 0, unknownSince: null, deferredSince: null, overdue: false },
        ...{ bornAt: '2026-01-01T00:00:00.000Z', knownAt: '2026-01-01T00:00:00.000Z' },
        // A later attempt makes another post.
        ...{ checkpoints: [], publishedSegments: [], appliedCommands: [], askedTime: null },
      },
    });
    equal(isOpen(state(over)), false);
    for (const events of [[], [scheduled], [scheduled, toCancel()]])
      deepEqual(state([...events, handed]), state(events));
  });

  t('a claim that is given back while publishing is held goes on at once, or is managed where that is too late', () => {
    const hold = (minutes: number) =>
      ({ type: 'RecordHeld', ...claim, now: at(minutes), failure: publishingHeld }) as const;
    const put = (retryAt: string): TargetEvent => ({
      type: 'TargetPublishDeferred',
      data: { ...claim, retryAt, failure: publishingHeld },
    });
    given(claimed)
      .when(hold(2))
      .then([put(at(2))], { again: 'claim_lost' });
    given(crossed).when(hold(2)).refused('boundary_crossed', 'only reconcile');
    given(claimed)
      .when(hold(51))
      .then([put(dueAt), tooLate], { again: 'claim_lost' });
  });

  t('is overdue by its own time, before the hand-over and after it', () => {
    const ask = (minutes: number) => ({ type: 'RecordOverdue', now: at(minutes) }) as const;
    for (const events of [[scheduled], over]) {
      given(events).when(ask(74.999)).then([]);
      given(events)
        .when(ask(75))
        .then([{ type: 'TargetOverdue', data: { dueAt } }]);
    }
  });

  t('a refused time makes it managed, and nothing was made', () => {
    const command = { type: 'RecordOutsideWindow', ...claim, now: at(20), failure } as const;
    given(crossed)
      .when(command)
      .then([deferred(dueAt), tooLate], { again: 'claim_lost' });
    given(crossed)
      .when({ ...command, now: at(70) })
      .then([deferred(at(70)), tooLate], { again: 'claim_lost' });
    given([scheduled]).when(command).refused('claim_lost');
    const waiting = state([...crossed, deferred(dueAt), tooLate]);
    deepEqual(modeOf(waiting), ['pending', 'managed', 'outside_native_window']);
    equal(waiting.status === 'pending' && attemptAt(waiting), dueAt);
  });

  t('a transient failure is deferred while the window is open, then the target is managed', () => {
    const defer = (now: string, attempt = claim): TargetCommand => ({
      type: 'RecordDeferred',
      ...attempt,
      now,
      failure,
      policy,
    });
    given(claimed)
      .when(defer(at(49)))
      .then([deferred(at(50))], { again: 'claim_lost' });
    given(claimed)
      .when(defer(new Date(base + 49 * minuteMs + 1).toISOString()))
      .then([deferred(dueAt), tooLate], { again: 'claim_lost' });
    given(claimed)
      .when(defer(at(61)))
      .then([deferred(at(61)), tooLate], { again: 'claim_lost' });
    const third = { attempt: 3, takeover: 0 };
    const tired = [
      ...claimed,
      deferred(at(2)),
      started,
      deferred(at(4)),
      { type: 'TargetPublishStarted', data: third } as const,
    ];
    given(tired)
      .when(defer(at(5), third))
      .then(
        [
          { type: 'TargetPublishDeferred', data: { ...third, retryAt: dueAt, failure } },
          managedBecause('network_unavailable'),
        ],
        { again: 'claim_lost' },
      );
    // The managed attempt has its own counts.
    const fresh = state([...claimed, deferred(at(2)), tooLate]);
    deepEqual(fresh.status === 'pending' && [fresh.common.defers, fresh.common.rateLimits], [0, 0]);
    const kept = state([
      ...claimed,
      deferred(at(2)),
      { type: 'TargetScheduleModeChanged', data: { scheduleMode: 'native', scheduleModeReason: null } },
    ]);
    equal(kept.status === 'pending' && kept.common.defers, 1);
  });

  t('a rate limit is waited for while the window is open, then the target is managed', () => {
    const limit = (retryAt: string, attempt = claim): TargetCommand => ({
      type: 'RecordRateLimited',
      ...attempt,
      retryAt,
      failure,
      policy,
    });
    const limited = (retryAt: string): TargetEvent => ({
      type: 'TargetRateLimited',
      data: { ...claim, retryAt, failure },
    });
    given(crossed)
      .when(limit(at(50)))
      .then([limited(at(50))], { again: 'claim_lost' });
    given(crossed)
      .when(limit(at(51)))
      .then([deferred(dueAt), tooLate], { again: 'claim_lost' });
    given(crossed)
      .when(limit(at(70)))
      .then([deferred(at(70)), tooLate], { again: 'claim_lost' });
    const second = { attempt: 2, takeover: 0 };
    const again: readonly TargetEvent[] = [
      ...crossed,
      limited(at(5)),
      { type: 'TargetRequeued', data: { by: 'schedule', dueAt: at(5) } },
      { type: 'TargetPublishStarted', data: second },
    ];
    given(again)
      .when(limit(at(6), second))
      .then(
        [
          { type: 'TargetPublishDeferred', data: { ...second, retryAt: dueAt, failure } },
          managedBecause('network_unavailable'),
        ],
        { again: 'claim_lost' },
      );
  });

  t('a refused hand-over fails; a retry hands it over again, or publishes it at its time', () => {
    const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
    given(crossed)
      .when({ type: 'RecordFailed', ...claim, failure })
      .then([failed], { again: 'claim_lost' });
    const retry = (now: string): TargetCommand => ({ type: 'Retry', commandId: 'r1', now });
    const requeued = (when: string): TargetEvent => ({ type: 'TargetRequeued', data: { by: 'retry', dueAt: when } });
    given([...crossed, failed])
      .when(retry(at(20)))
      .then([requeued(at(20))]);
    given([...crossed, failed])
      .when(retry(at(55)))
      .then([requeued(dueAt), tooLate]);
    given([...crossed, failed])
      .when(retry(dueAt))
      .then([requeued(dueAt), managedBecause('due_now')]);
    given([...crossed, failed])
      .when(retry(at(61)))
      .then([requeued(at(61)), managedBecause('due_now')]);
    // A managed target is due at once, also before its time.
    given([scheduled, tooLate, started, failed])
      .when(retry(at(20)))
      .then([requeued(at(20))]);
  });

  t('a failed one that is revised is handed over at once while the window is open, else at its time', () => {
    const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
    const revise = (now: string, time: object | null = null) =>
      ({ type: 'Revise', postRevision: 4, time, now }) as Extract<TargetCommand, { type: 'Revise' }>;
    const place = { scheduledLocal: null, timezone: 'UTC', jitterSeconds: 5 };
    const native = { scheduleMode: 'native', scheduleModeReason: null } as const;
    const revised = (over: object = {}) =>
      ({ type: 'TargetRevised', data: { postRevision: 4, dueAt, ...place, ...native, ...over } }) as TargetEvent;
    const requeued = (when: string): TargetEvent => ({ type: 'TargetRequeued', data: { by: 'revise', dueAt: when } });
    const history = [...crossed, failed];
    for (const [now, when] of [
      [at(20), at(20)],
      [at(50), at(50)],
      [at(51), dueAt],
      [at(61), at(61)],
    ] as const) {
      given(history)
        .when(revise(now))
        .then([revised(), requeued(when)]);
    }
    const moved = { ...place, dueAt: at(200), ...native };
    given(history)
      .when(revise(at(61), moved))
      .then([revised(moved), requeued(at(61))]);
    const own = { ...place, dueAt: at(200), scheduleMode: 'managed', scheduleModeReason: null };
    given(history)
      .when(revise(at(61), own))
      .then([revised(own), requeued(at(200))]);
  });

  t('a revise that keeps the time changes the mode only where the network does not schedule a setting', () => {
    const revised = (now: string, overrides: object, isNow = false) =>
      ({
        type: 'Revise',
        postRevision: 4,
        time: null,
        mode: { scheduleMode: 'native', overrides, isNow },
        now,
      }) as Extract<TargetCommand, { type: 'Revise' }>;
    const place = { scheduledLocal: null, timezone: 'UTC', jitterSeconds: 5 };
    const become = (scheduleMode: string, scheduleModeReason: string | null) =>
      ({
        type: 'TargetRevised',
        data: { postRevision: 4, dueAt, ...place, scheduleMode, scheduleModeReason },
      }) as TargetEvent;
    const story = { contentType: 'story' };
    given([scheduled])
      .when(revised(at(0), {}))
      .then([become('native', null)]);
    given([scheduled])
      .when(revised(at(0), story))
      .then([become('managed', 'setting_not_schedulable')]);
    const taken = {
      ...scheduled,
      data: { ...scheduled.data, scheduleMode: 'managed', scheduleModeReason: 'setting_not_schedulable' },
    } as TargetEvent;
    given([taken])
      .when(revised(at(0), story))
      .then([become('managed', 'setting_not_schedulable')]);
    given([taken])
      .when(revised(at(0), {}))
      .then([become('native', null)]);
    given([taken])
      .when(revised(at(0), {}, true))
      .then([become('managed', 'due_now')]);
    given([taken])
      .when(revised(at(51), {}))
      .then([become('managed', 'outside_native_window')]);
    // Another reason stays: what was too near is never handed over later.
    given([scheduled, tooLate])
      .when(revised(at(0), {}))
      .then([become('managed', 'outside_native_window')]);
    given([scheduled, tooLate])
      .when(revised(at(0), story))
      .then([become('managed', 'outside_native_window')]);
  });

  t('a pending target that is moved stays native inside of the window, and a managed one stays managed', () => {
    const moved = (to: string): TargetEvent => ({
      type: 'TargetRescheduled',
      data: { dueAt: to, scheduledLocal: null, jitterSeconds: 0 },
    });
    given([scheduled])
      .when(move(at(90), at(0)))
      .then([moved(at(90))]);
    given([scheduled])
      .when(move(at(9), at(0)))
      .then([moved(at(9)), tooLate]);
    given([scheduled, tooLate])
      .when(move(at(90), at(0)))
      .then([moved(at(90))]);
    deepEqual(modeOf(state([scheduled, tooLate, moved(at(90))])), ['pending', 'managed', 'outside_native_window']);
  });

  t('a handed-over target is canceled or moved only after the network deleted it', () => {
    given(over)
      .when(cancel(at(0)))
      .then([toCancel()]);
    given(over)
      .when(cancel(at(59)))
      .then([toCancel()]);
    given(over)
      .when(cancel(new Date(base + 59 * minuteMs + 1).toISOString()))
      .refused('target_not_pending', 'too soon to take it back');
    given(over)
      .when(move(at(90), at(0)))
      .then([toMove(at(90))]);
    given(over)
      .when(move(at(90), at(60)))
      .refused('target_not_pending', 'too soon to take it back');
    // A cancel of the whole post passes over it, and tells the caller why.
    throws(
      () => target.decide(cancel(at(60)), state(over)),
      (error) => error instanceof TooLate && error.reason === 'handed_to_platform',
    );
    given(over)
      .when({ type: 'Cancel', reason: 'client_archived', postRevision: 9, now: at(0) })
      .then([
        { type: 'TargetUndoRequested', data: { ...none, then: 'cancel', reason: 'client_archived', postRevision: 9 } },
      ]);
    const asked = state([...over, { ...toCancel(9), at: at(4), commandId: 'c9' } as Given<TargetEvent>]);
    deepEqual(asked.status === 'handed_to_platform' && asked.undo, {
      requestedAt: at(4),
      then: 'cancel',
      reason: 'requested',
      postRevision: 9,
    });
    deepEqual(asked.status !== 'none' && [asked.common.appliedRevision, asked.common.appliedCommands], [9, ['c9']]);
    const older = state([...over, toCancel(2)]);
    equal(older.status !== 'none' && older.common.appliedRevision, 3);
    const moving = state([...over, { ...toMove(at(90), 7), at: at(4) } as Given<TargetEvent>]);
    deepEqual(moving.status === 'handed_to_platform' && moving.undo, {
      requestedAt: at(4),
      then: 'reschedule',
      dueAt: at(90),
      scheduledLocal: null,
      jitterSeconds: 7,
    });
    for (const events of [[], [scheduled]]) deepEqual(state([...events, toCancel()]), state(events));
    deepEqual(state([...crossed, toMove(at(90))]), state(crossed));
  });

  t('an event that lacks members has their defaults', () => {
    const bare = (then: 'cancel' | 'reschedule') =>
      state([...over, { type: 'TargetUndoRequested', data: { ...none, then } }]);
    const canceled = bare('cancel');
    equal(
      canceled.status === 'handed_to_platform' && canceled.undo?.then === 'cancel' && canceled.undo.reason,
      'requested',
    );
    const moved = bare('reschedule');
    deepEqual(
      moved.status === 'handed_to_platform' &&
        moved.undo?.then === 'reschedule' && [moved.undo.dueAt, moved.undo.jitterSeconds],
      [dueAt, 0],
    );
  });

  t('of two requests the newer holds, but nothing takes back a cancel', () => {
    given([...over, toMove(at(90))])
      .when(cancel(at(0)))
      .then([toCancel()]);
    given([...over, toMove(at(90))])
      .when(move(at(120), at(0)))
      .then([toMove(at(120))]);
    given([...over, toMove(at(90))])
      .when(move(at(90), at(0), 7))
      .then([toMove(at(90), 7)]);
    given([...over, toMove(at(90))])
      .when(move(at(90), at(0)))
      .then([]);
    given([...over, toCancel()])
      .when(move(at(90), at(0)))
      .refused('target_not_pending', 'about to be canceled');
    given([...over, toCancel()])
      .when(cancel(at(60)))
      .then([]);
    // At the time that it has.
    given(over)
      .when(move(dueAt, at(0), 5))
      .then([]);
    given(over)
      .when(move(dueAt, at(0), 6))
      .then([toMove(dueAt, 6)]);
    // A repeat of a command that was carried out.
    const done = { ...toMove(at(90)), commandId: 'm1' } as Given<TargetEvent>;
    given([...over, done, toMove(at(120))])
      .when(move(at(90), at(0)))
      .then([]);
  });

  t('once undone it is canceled, or due at its new time: native where the window allows it', () => {
    const undone = (now: string): TargetCommand => ({ type: 'RecordUndone', now });
    const canceled: TargetEvent = { type: 'TargetCanceled', data: { reason: 'requested', postRevision: 9 } };
    given([...over, toCancel(9)])
      .when(undone(at(5)))
      .then([canceled]);
    equal(state([...over, toCancel(9), canceled]).status, 'canceled');
    const moved = (to: string): TargetEvent => ({
      type: 'TargetRescheduled',
      data: { dueAt: to, scheduledLocal: null, jitterSeconds: 0 },
    });
    given([...over, toMove(at(90))])
      .when(undone(at(5)))
      .then([moved(at(90))]);
    given([...over, toMove(at(90))])
      .when(undone(at(81)))
      .then([moved(at(90)), tooLate]);
    deepEqual(modeOf(state([...over, toMove(at(90)), moved(at(90))])), ['pending', 'native', null]);
    for (const events of [[], [scheduled], over, crossed])
      given(events)
        .when(undone(at(5)))
        .then([]);
  });

  t('a network that has the new time publishes the same post then, and nobody hands it over again', () => {
    const answered = (to: string): TargetCommand => ({ type: 'RecordTimeChanged', dueAt: to });
    const changed = (to: string, jitterSeconds = 0): TargetEvent => ({
      type: 'TargetNativeTimeChanged',
      data: { ...claim, nativeId: 'n1', dueAt: to, scheduledLocal: null, jitterSeconds },
    });
    given([...over, toMove(at(90), 9)])
      .when(answered(at(90)))
      .then([changed(at(90), 9)]);
    // Somebody has wanted another time since, or the end of it: the network is asked again.
    for (const since of [[toMove(at(90)), toMove(at(95))], [toMove(at(90)), toCancel()], []]) {
      given([...over, ...since])
        .when(answered(at(90)))
        .then([]);
    }
    for (const events of [[], [scheduled], crossed])
      given(events)
        .when(answered(at(90)))
        .then([]);
    const overdue: TargetEvent = { type: 'TargetOverdue', data: { dueAt } };
    const before = state([...over, overdue, toMove(at(90), 9)]);
    const after = state([...over, overdue, toMove(at(90), 9), changed(at(90), 9)]);
    ok(before.status === 'handed_to_platform' && after.status === 'handed_to_platform');
    deepEqual([before.otherTimes, before.common.dueAt], [[at(90)], dueAt]);
    deepEqual(after, {
      ...{ ...before, undo: null, otherTimes: [] },
      common: { ...before.common, dueAt: at(90), jitterSeconds: 9, overdue: false },
    });
    // It is canceled, moved and settled by its new time.
    const over90 = [...over, toMove(at(90)), changed(at(90))];
    given(over90)
      .when(cancel(at(61)))
      .then([toCancel()]);
    given(over90)
      .when(cancel(at(90)))
      .refused('target_not_pending');
    given(over90)
      .when(move(at(90), at(5)))
      .then([]);
    deepEqual(state([...crossed, changed(at(90))]), state(crossed));
    deepEqual(state([scheduled, changed(at(90))]), state([scheduled]));
  });

  const toRevise = (postRevision: number, to: string = dueAt, over: object = {}): TargetEvent => ({
    type: 'TargetUndoRequested',
    data: {
      ...{ then: 'revise', reason: null, postRevision, dueAt: to, scheduledLocal: null, jitterSeconds: 5 },
      revised: { timezone: 'UTC', scheduleMode: 'native', scheduleModeReason: null, ...over },
    },
  });
  const revise = (postRevision: number, over: object = {}): TargetCommand => ({
    ...{ type: 'Revise', postRevision, time: null, now: at(5), ...over },
  });
  const time = {
    ...{ scheduledLocal: null, timezone: 'UTC', jitterSeconds: 5 },
    ...({ scheduleMode: 'native', scheduleModeReason: null } as const),
  };

  t('a revise gives its content to the network, or takes the post back: no hand-over is repeated on a guess', () => {
    given(over)
      .when(revise(4))
      .then([toRevise(4)]);
    const later = { ...time, dueAt: at(90), scheduleMode: 'managed', scheduleModeReason: null } as const;
    given(over)
      .when(revise(4, { time: later }))
      .then([toRevise(4, at(90), { scheduleMode: 'managed' })]);
    // What somebody has to approve, what is canceled and what the network is about to publish stays as it is.
    for (const [events, command] of [
      [over, revise(4, { held: true })],
      [[...over, toCancel()], revise(4)],
      [over, revise(4, { now: at(59.5) })],
    ] as const) {
      throws(() => target.decide(command, state(events)), TooLate);
    }
    const confirmed = (postRevision: number, to: string = dueAt): TargetCommand => ({
      ...{ type: 'RecordRevised', postRevision, dueAt: to },
    });
    const revised = (postRevision: number, to: string = dueAt): TargetEvent => ({
      type: 'TargetNativeRevised',
      data: { ...claim, nativeId: 'n1', postRevision, ...time, dueAt: to },
    });
    given([...over, toRevise(4)])
      .when(confirmed(4))
      .then([revised(4)]);
    const now = state([...over, toRevise(4), revised(4)]);
    ok(now.status === 'handed_to_platform');
    deepEqual([now.undo, now.otherContents, now.common.postRevision, now.common.attempts], [null, [], 4, 1]);
    // Something else is wanted since.
    for (const since of [
      [toRevise(4), toRevise(5)],
      [toRevise(4), toRevise(4, at(90))],
      [toRevise(4), toCancel()],
      [],
    ]) {
      given([...over, ...since])
        .when(confirmed(4))
        .then([]);
    }
    // A change of the time keeps the content that is wanted, and a revise the time.
    given([...over, toRevise(4)])
      .when(move(at(90), at(5)))
      .then([{ ...toRevise(4, at(90)), data: { ...toRevise(4, at(90)).data, jitterSeconds: 0 } } as TargetEvent]);
    given([...over, toMove(at(90), 5)])
      .when(revise(4))
      .then([toRevise(4, at(90))]);
    // Taken back, it goes out with the new content.
    given([...over, toRevise(4)])
      .when({ type: 'RecordUndone', now: at(5) })
      .then([{ type: 'TargetRevised', data: { postRevision: 4, ...time, dueAt } }]);
    given([...over, toRevise(4)])
      .when({ type: 'RecordUndone', now: at(55) })
      .then([{ type: 'TargetRevised', data: { postRevision: 4, ...time, dueAt } }, tooLate]);
    // The network may have been told as many contents as a post keeps.
    const wanted = [toRevise(4), toRevise(5), toRevise(6), toRevise(7)];
    throws(() => target.decide(revise(8), state([...over, ...wanted])), TooLate);
    given([...over, ...wanted, revised(7)])
      .when(revise(8))
      .then([toRevise(8)]);
    deepEqual(state([...crossed, revised(4)]), state(crossed));
  });

  t('each time that the network may have been told counts, until it confirms one', () => {
    const timesOf = (events: readonly TargetEvent[]) => {
      const now = state(events);
      return now.status === 'handed_to_platform' && [now.common.dueAt, ...now.otherTimes];
    };
    const wanted = [...over, toMove(at(90)), toMove(at(95)), toMove(at(90))];
    deepEqual(timesOf(wanted), [dueAt, at(90), at(95)]);
    deepEqual(timesOf([...wanted, toCancel()]), [dueAt, at(90), at(95)]);
    const failed: TargetEvent = { type: 'TargetUndoFailed', data: { then: 'reschedule', failure } };
    deepEqual(timesOf([...wanted, failed]), [dueAt, at(90), at(95)]);
  });

  t('what the network published at the new time was moved, although its answer was lost', () => {
    const publishedAt = (instant: string) => settle({ kind: 'published', ...there, publishedAt: instant });
    const outAt = (instant: string) => settledAs({ ...there, publishedAt: instant });
    const moved: TargetEvent = {
      type: 'TargetNativeTimeChanged',
      data: { ...claim, nativeId: 'n1', dueAt: at(90), scheduledLocal: null, jitterSeconds: 0 },
    };
    const undoFailed: TargetEvent = { type: 'TargetUndoFailed', data: { then: 'reschedule', failure: undoTooLate } };
    given([...over, toMove(at(90))])
      .when(publishedAt(at(91)))
      .then([moved, outAt(at(91))], { again: 'target_not_unknown' });
    given([...over, toMove(at(90))])
      .when(publishedAt(at(61)))
      .then([undoFailed, outAt(at(61))], { again: 'target_not_unknown' });
    given([...over, toMove(at(90))])
      .when(settle({ kind: 'failed', failure }))
      .then([undoFailed, settledAs({ outcome: 'failed', failure })], { again: 'target_not_unknown' });
  });

  t('a network that does not delete it publishes it, and the request is told as failed', () => {
    const failedUndo = (then: 'cancel' | 'reschedule', why = failure): TargetEvent => ({
      type: 'TargetUndoFailed',
      data: { then, failure: why },
    });
    const command = { type: 'RecordUndoFailed', failure } as const;
    given([...over, toCancel()])
      .when(command)
      .then([failedUndo('cancel')]);
    given([...over, toMove(at(90))])
      .when(command)
      .then([failedUndo('reschedule')]);
    for (const events of [[], [scheduled], over]) given(events).when(command).then([]);
    deepEqual(
      state([...over, toCancel(), failedUndo('cancel')]),
      state([...over, toCancel()]).status === 'handed_to_platform' && {
        ...state([...over, toCancel()]),
        undo: null,
      },
    );
    for (const events of [[], [scheduled], crossed]) {
      deepEqual(state([...events, failedUndo('cancel')]), state(events));
    }
    given([...over, toCancel()])
      .when(settle({ kind: 'published', ...there }))
      .then([failedUndo('cancel', undoTooLate), settledAs(there)], { again: 'target_not_unknown' });
  });

  t('at its time it is published, failed or unknown, as the network says', () => {
    given(over)
      .when(settle({ kind: 'published', ...there }))
      .then([settledAs(there)], { again: 'target_not_unknown' });
    given(over)
      .when(settle({ kind: 'failed', failure }))
      .then([settledAs({ outcome: 'failed', failure })], { again: 'target_not_unknown' });
    for (const outcome of [
      { kind: 'absent', proof: true },
      { kind: 'handed_over', nativeId: 'n2' },
    ] as const) {
      given(over).when(settle(outcome)).then([]);
    }
    given(over)
      .when({ ...settle({ kind: 'failed', failure }), by: 'admin' } as TargetCommand)
      .refused('target_not_unknown');
    const late = { type: 'RecordNativeUnknown', failure: nativePostLate, reconcileAt: at(62) } as const;
    const noted: TargetEvent = {
      type: 'TargetOutcomeUnknown',
      data: { ...claim, failure: nativePostLate, reconcileAt: at(62) },
    };
    given(over).when(late).then([noted]);
    given([...over, toCancel()])
      .when(late)
      .then([{ type: 'TargetUndoFailed', data: { then: 'cancel', failure: nativePostLate } }, noted]);
    for (const events of [[], [scheduled], crossed]) given(events).when(late).then([]);
    const open = state([...over, noted]);
    deepEqual(open.status === 'outcome_unknown' && [open.nativeId, open.boundary?.step, open.takeover], [
      'n1',
      'boundary',
      0,
    ]);
    const lost = state([...crossed, unknown]);
    equal(lost.status === 'outcome_unknown' && lost.nativeId, null);
  });

  t('a hand-over whose answer was lost is found, and nothing moves it before', () => {
    const open = [...crossed, unknown];
    given(open)
      .when(settle({ kind: 'handed_over', nativeId: 'n1' }))
      .then([handed]);
    equal(state([...open, handed]).status, 'handed_to_platform');
    given(open)
      .when(move(at(90), at(0)))
      .refused('target_not_pending');
    const absent = settledAs({ outcome: 'absent' });
    const early = { ...settle({ kind: 'absent', proof: true }), now: at(2) } as TargetCommand;
    given(open).when(early).then([absent], { again: 'target_not_unknown' });
    deepEqual(modeOf(state([...open, absent])), ['pending', 'native', null]);
    const late = [absent, tooLate];
    given(open)
      .when(settle({ kind: 'absent', proof: true }))
      .then(late, { again: 'target_not_unknown' });
    // After three hand-overs that left nothing behind, this service publishes the post itself, at its time.
    const given4 = [scheduled, ...Array.from({ length: 3 }, () => [started, boundary, unknown, absent]).flat()];
    const end = [absent, managedBecause('network_unavailable')];
    given([...given4, started, boundary, unknown])
      .when(early)
      .then(end, { again: 'target_not_unknown' });
    const own = state([...given4, started, boundary, unknown, ...end]);
    ok(own.status === 'pending');
    deepEqual([attemptAt(own), own.common.provenAbsences], [dueAt, 0]);
  });

  const asManaged: TargetEvent = { ...scheduled, data: { ...scheduled.data, scheduleMode: 'managed' } } as TargetEvent;
  const canceledBy = (postRevision: number | null): TargetEvent => ({
    type: 'TargetCanceled',
    data: { reason: 'requested', postRevision },
  });

  t('a cancel before the call of a hand-over holds at once, and its worker makes no call', () => {
    for (const events of [[scheduled, started], claimed]) {
      given(events)
        .when(cancel(at(0)))
        .then([canceledBy(null)], { again: [] });
      given(events)
        .when(cancel(at(61)))
        .then([canceledBy(null)], { again: [] });
      given([...events, canceledBy(null)])
        .when({ type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: at(1) })
        .refused('claim_lost');
    }
    for (const events of [[started], [started, boundary], [started, boundary, unknown]]) {
      given([asManaged, ...events])
        .when(cancel(at(0)))
        .refused('target_not_pending');
    }
  });

  t('a cancel during the call of a hand-over, or after its answer was lost, waits for the answer', () => {
    for (const events of [crossed, [...crossed, unknown]]) {
      given(events)
        .when({ type: 'Cancel', reason: 'requested', postRevision: 9, now: at(0) })
        .then([toCancel(9)], { again: [] });
      const wanted = [...events, toCancel(9)];
      const waiting = state(wanted);
      equal(isBeingCanceled(waiting), true);
      equal(waiting.status !== 'none' && waiting.common.appliedRevision, 9);
      // Nothing else reaches it any more.
      given(wanted)
        .when(move(at(90), at(0)))
        .refused('target_not_pending');
      given(wanted)
        .when({ type: 'Revise', postRevision: 10, time: null, now: at(0) })
        .refused('target_not_pending');
      given(wanted)
        .when({ type: 'Retry', commandId: 'r1', now: at(0) })
        .refused('target_not_retryable');
      // The network publishes it too soon to take it back.
      given(events)
        .when(cancel(new Date(base + 59 * minuteMs + 1).toISOString()))
        .refused('target_not_pending');
      equal(isCancelable(state(events), at(59)), true);
      equal(isCancelable(state(events), at(60)), false);
    }
  });

  t('a cancel may be asked for exactly where one is carried out', () => {
    const limited: TargetEvent = { type: 'TargetRateLimited', data: { ...claim, retryAt: at(20), failure } };
    const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
    const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...there } };
    const before = [scheduled, asManaged].flatMap((one) => [
      ...[[one], [one, started], [one, started, boundary], [one, started, boundary, unknown]],
      ...[
        [one, started, limited],
        [one, started, deferred(at(20))],
        [one, { type: 'TargetHeld', data: { postRevision: 3 } } as const],
      ],
      ...[
        [one, started, failed],
        [one, started, boundary, published],
      ],
    ]);
    // The post of the last one was handed over, and nobody knows what the network did with it at its time.
    const all = [...before, over, [...over, toMove(at(90))], [...over, unknown]];
    for (const now of [at(0), at(59), at(61)]) {
      for (const events of all) {
        let isTaken = true;
        try {
          target.decide(cancel(now), state(events));
        } catch (error) {
          ok(error instanceof TooLate);
          isTaken = false;
        }
        equal(isCancelable(state(events), now), isTaken, `${events.map(({ type }) => type).join(', ')} at ${now}`);
      }
    }
    equal(isCancelable(state(over), at(59)), true);
    equal(isCancelable(state(over), at(60)), false);
    equal(isCancelable(state([...over, unknown]), at(0)), false);
    equal(isCancelable(state([scheduled]), at(90)), true);
    equal(isCancelable(state([scheduled, started]), at(90)), true);
    equal(isCancelable(state([]), at(0)), false);
  });

  t('a target is being canceled from the request until the answer, and not while it only moves', () => {
    for (const events of [crossed, [...crossed, unknown], over]) {
      equal(isBeingCanceled(state(events)), false);
      equal(isBeingCanceled(state([...events, toCancel()])), true);
    }
    equal(isBeingCanceled(state([...over, toMove(at(90))])), false);
    equal(isBeingCanceled(state([...over, toCancel(), canceledBy(null)])), false);
    for (const events of [[], [scheduled], [scheduled, canceledBy(null)]]) equal(isBeingCanceled(state(events)), false);
  });

  t('what the network turns out to have is taken back, however late the answer comes', () => {
    const handOver: TargetCommand = { type: 'RecordHandedOver', ...claim, nativeId: 'n1' };
    given([...crossed, toCancel(9)])
      .when(handOver)
      .then([handed], { again: 'claim_lost' });
    given([...crossed, unknown, toCancel(9)])
      .when(settle({ kind: 'handed_over', nativeId: 'n1' }))
      .then([handed]);
    for (const events of [
      [...crossed, toCancel(9), handed],
      [...crossed, toCancel(9), unknown, handed],
      [...crossed, unknown, toCancel(9), handed],
    ]) {
      const now = state(events);
      equal(now.status === 'handed_to_platform' && now.undo?.then, 'cancel');
      given(events)
        .when({ type: 'RecordUndone', now: at(2) })
        .then([canceledBy(9)], { again: [] });
    }
  });

  t('a hand-over of a canceled target that left nothing at the network is canceled', () => {
    const wanted = [...crossed, toCancel(9)];
    const nothingMade: readonly TargetCommand[] = [
      { type: 'RecordFailed', ...claim, failure },
      { type: 'RecordRateLimited', ...claim, retryAt: at(5), failure, policy },
      { type: 'RecordRateLimited', ...claim, retryAt: at(55), failure, policy },
      { type: 'RecordDeferred', ...claim, now: at(1), failure, policy, nothingSent: true },
      { type: 'RecordOutsideWindow', ...claim, now: at(1), failure },
    ];
    for (const command of nothingMade)
      given(wanted)
        .when(command)
        .then([canceledBy(9)], { again: 'claim_lost' });
    const lost = [...crossed, unknown, toCancel(9)];
    for (const command of [
      settle({ kind: 'absent', proof: true }),
      settle({ kind: 'failed', failure }),
      { ...settle({ kind: 'failed', failure }), by: 'admin' } as TargetCommand,
    ]) {
      given(lost)
        .when(command)
        .then([canceledBy(9)], { again: 'target_not_unknown' });
    }
    given(wanted)
      .when({ type: 'RecordUnknown', ...claim, failure, reconcileAt: at(2) })
      .then([unknown], { again: 'claim_lost' });
    given(lost)
      .when(settle({ kind: 'absent', proof: false }))
      .then([]);
  });

  t('a canceled target that went out all the same is published, and the cancel is told as failed', () => {
    const failedUndo: TargetEvent = { type: 'TargetUndoFailed', data: { then: 'cancel', failure: undoTooLate } };
    const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...there } };
    given([...crossed, toCancel(9)])
      .when({ type: 'RecordPublished', ...claim, ...there })
      .then([failedUndo, published], { again: 'claim_lost' });
    given([...crossed, unknown, toCancel(9)])
      .when(settle({ kind: 'published', ...there }))
      .then([failedUndo, settledAs(there)], { again: 'target_not_unknown' });
    equal(state([...crossed, toCancel(9), failedUndo, published]).status, 'published');
  });
});

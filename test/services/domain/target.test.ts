import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { Rejection } from '#domain/decider.ts';
import {
  attemptAt,
  isOpen,
  openStatuses,
  skipReasonOf,
  type TargetCommand,
  type TargetState,
  TooLate,
  target,
} from '#domain/post-target/target.ts';
import { publishUnanswered } from '#domain/publish-failures.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { failure } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(target);

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
const planned = {
  targetId: 't1',
  accountId: 'a1',
  clientId: 'c1',
  platform: 'x',
  dueAt: at(100),
  scheduledLocal: null,
  timezone: 'UTC',
  jitterSeconds: 0,
  scheduleMode: 'managed',
  scheduleModeReason: null,
} as const;
const { targetId: _target, accountId: _account, clientId: _client, platform: _platform, ...time } = planned;
const policy = { deferDelaysMs: [30_000, 120_000, 600_000], maxRateLimits: 10, jitter: 0.5 };
const claim = { attempt: 1, takeover: 0 };

const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...planned, postId: 'p1', postRevision: 3 } };
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const boundary: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'boundary', data: { key: 'k' }, deadline: at(130) },
};
const container: TargetEvent = {
  type: 'TargetPublishCheckpointed',
  data: { ...claim, step: 'container', data: { id: '1' }, deadline: null },
};
const takenOver: TargetEvent = { type: 'TargetPublishTakenOver', data: { attempt: 1, takeover: 1 } };
const there = { externalId: 'e1', permalink: null, publishedAt: at(101) };
const published: TargetEvent = { type: 'TargetPublished', data: { ...claim, ...there } };
const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
const limited = (retryAt = at(200)): TargetEvent => ({
  type: 'TargetRateLimited',
  data: { ...claim, retryAt, failure },
});
const deferred: TargetEvent = { type: 'TargetPublishDeferred', data: { ...claim, retryAt: at(131), failure } };
const unknown: TargetEvent = { type: 'TargetOutcomeUnknown', data: { ...claim, failure, reconcileAt: at(131) } };
const accepted: TargetEvent = {
  type: 'TargetAcceptedByPlatform',
  data: { ...claim, handle: { id: 'h1' }, askAt: at(140), until: at(700) },
};
const canceled: TargetEvent = { type: 'TargetCanceled', data: { reason: 'requested', postRevision: null } };
const requeued = (by: 'schedule' | 'retry' | 'revise', dueAt: string): TargetEvent => ({
  type: 'TargetRequeued',
  data: { by, dueAt },
});
const absent: TargetEvent = {
  type: 'TargetOutcomeSettled',
  data: { outcome: 'absent', externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' },
};
const held: TargetEvent = { type: 'TargetHeld', data: { postRevision: 3 } };
const handed: TargetEvent = { type: 'TargetHandedToPlatform', data: { ...claim, nativeId: 'n1', dueAt: at(100) } };
const claimed = [scheduled, started];
const crossed = [...claimed, boundary];
const open = [...crossed, unknown];

const situations: Readonly<Record<Exclude<TargetState['status'], 'none'>, readonly TargetEvent[]>> = {
  awaiting_approval: [scheduled, held],
  pending: [scheduled],
  publishing: claimed,
  processing: [...crossed, accepted],
  rate_limited: [...claimed, limited()],
  outcome_unknown: open,
  handed_to_platform: [...crossed, handed],
  published: [...crossed, published],
  failed: [...claimed, failed],
  canceled: [scheduled, canceled],
};
const except = (...names: readonly string[]) =>
  Object.entries(situations).flatMap(([name, events]) => (names.includes(name) ? [] : [events]));
/** Every situation that the command is refused in, by one code. */
const refusedIn = (events: readonly (readonly TargetEvent[])[], command: TargetCommand, code: string, saying = '') => {
  for (const one of events) given(one).when(command).refused(code, saying);
};

suite('target', (t) => {
  t('is scheduled once, with the post revision it binds to', () => {
    given([]).when({ type: 'Schedule', planned, postId: 'p1', postRevision: 3 }).then([scheduled]);
    for (const events of except()) {
      given(events).when({ type: 'Schedule', planned, postId: 'p1', postRevision: 3 }).then([]);
      deepEqual(state([...events, scheduled]), state(events));
    }
    deepEqual(state([scheduled]), {
      status: 'pending',
      retryAt: null,
      common: {
        ...planned,
        ...{ postId: 'p1', postRevision: 3, appliedRevision: 3, attempts: 0, rateLimits: 0, defers: 0, overdue: false },
        ...{ deferredSince: null, bornAt: at(0), knownAt: null },
        ...{ provenAbsences: 0, assumedAbsences: 0, unknownSince: null },
        ...{ checkpoints: [], publishedSegments: [], appliedCommands: [], askedTime: null },
      },
    });
  });

  t('one whose post waits for an approval is held in its first append, and so is a revise of one', () => {
    given([]).when({ type: 'Schedule', planned, postId: 'p1', postRevision: 3, held: true }).then([scheduled, held]);
    const revised: readonly TargetEvent[] = [
      { type: 'TargetRevised', data: { postRevision: 7, ...time } },
      { type: 'TargetHeld', data: { postRevision: 7 } },
    ];
    // A failed one that is held is not tried again before the approval.
    for (const events of [situations.pending, situations.awaiting_approval, situations.failed])
      given(events)
        .when({ type: 'Revise', postRevision: 7, time: null, now: at(90), held: true })
        .then(revised);
    equal(state([...situations.failed, ...revised]).status, 'awaiting_approval');
  });

  t('every situation has the status of its name', () => {
    for (const [name, events] of Object.entries(situations)) equal(state(events).status, name);
    deepEqual(
      except().map((events) => isOpen(state(events))),
      [true, true, false, false, true, false, false, false, false, false],
    );
  });

  t('an event before the plan changes nothing', () => {
    for (const event of [held, started, canceled]) deepEqual(state([event]), target.initial);
  });

  t('is claimed when it is due, not a millisecond before, and only while pending', () => {
    given([scheduled])
      .when({ type: 'Start', now: at(100) })
      .then([started], { again: 'not_claimable' });
    given([scheduled]).when({ type: 'Start', now: '2026-01-01T00:01:39.999Z' }).refused('not_due');
    refusedIn(except('pending'), { type: 'Start', now: at(999) }, 'not_claimable');
    given([...claimed, deferred])
      .when({ type: 'Start', now: at(130) })
      .refused('not_due');
    given([...claimed, deferred])
      .when({ type: 'Start', now: at(131) })
      .then([{ type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } }], { again: 'not_claimable' });
  });

  t('is refused at the claim without an attempt of the network', () => {
    given([scheduled]).when({ type: 'RefuseAtClaim', failure }).then([failed], { again: 'not_claimable' });
    refusedIn(except('pending'), { type: 'RefuseAtClaim', failure }, 'not_claimable');
  });

  t('crosses one boundary an attempt, and records the steps before it', () => {
    const step = { type: 'Checkpoint', ...claim, step: 'container', data: { id: '1' }, deadline: null } as const;
    const cross = { type: 'Checkpoint', ...claim, step: 'boundary', data: { key: 'k' }, deadline: at(130) } as const;
    given(claimed)
      .when(step)
      .then([container], { again: [container] });
    given([...claimed, container])
      .when(cross)
      .then([boundary], { again: 'boundary_crossed' });
    given(claimed)
      .when({ ...cross, deadline: null })
      .refused('invalid_checkpoint');
    given(claimed)
      .when({ ...step, deadline: at(130) })
      .refused('invalid_checkpoint');
  });

  t('a takeover begins with an append, after which the former worker can write nothing', () => {
    given(claimed)
      .when({ type: 'TakeOver', ...claim })
      .then([takenOver], { again: 'claim_lost' });
    const sleeper: readonly TargetCommand[] = [
      { type: 'TakeOver', ...claim },
      { type: 'Checkpoint', ...claim, step: 'boundary', data: null, deadline: at(130) },
      { type: 'RecordPublished', ...claim, ...there },
      { type: 'RecordFailed', ...claim, failure },
      { type: 'RecordRateLimited', ...claim, retryAt: at(200), failure, policy },
      { type: 'RecordDeferred', ...claim, now: at(101), failure, policy },
      { type: 'RecordUnknown', ...claim, failure, reconcileAt: at(131) },
    ];
    for (const command of sleeper) {
      given([...claimed, takenOver])
        .when(command)
        .refused('claim_lost');
      refusedIn(except('publishing'), command, 'claim_lost');
    }
    const next: TargetEvent = { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } };
    for (const command of sleeper)
      given([...claimed, deferred, next])
        .when(command)
        .refused('claim_lost');
    const second = { attempt: 1, takeover: 1 };
    given([...crossed, takenOver])
      .when({ type: 'RecordPublished', ...second, ...there })
      .then([{ type: 'TargetPublished', data: { ...second, ...there } }], { again: 'claim_lost' });
    given([...crossed, takenOver])
      .when({ type: 'Checkpoint', ...second, step: 'boundary', data: null, deadline: at(140) })
      .refused('boundary_crossed');
  });

  t('an outcome is unknown only after a call was made', () => {
    given(claimed)
      .when({ type: 'RecordUnknown', ...claim, failure, reconcileAt: at(131) })
      .refused('no_boundary');
  });

  t('an event of an attempt that is over changes nothing', () => {
    const tooLate: readonly TargetEvent[] = [boundary, takenOver, unknown];
    for (const events of [[], ...except('publishing', 'handed_to_platform', 'processing')]) {
      for (const late of tooLate) deepEqual(state([...events, late]), state(events));
    }
    const segment: TargetEvent = {
      type: 'TargetSegmentPublished',
      data: { ...claim, segment: { index: 0, of: 2 }, ...there },
    };
    for (const events of except('publishing', 'outcome_unknown')) deepEqual(state([...events, segment]), state(events));
  });

  t('a known outcome ends the attempt', () => {
    given(crossed)
      .when({ type: 'RecordPublished', ...claim, ...there })
      .then([published], { again: 'claim_lost' });
    given(crossed)
      .when({ type: 'RecordFailed', ...claim, failure })
      .then([failed], { again: 'claim_lost' });
    given(crossed)
      .when({ type: 'RecordUnknown', ...claim, failure, reconcileAt: at(131) })
      .then([unknown], { again: 'claim_lost' });
  });

  t('a transient failure before the boundary is deferred three times with its jitter, then fails', () => {
    let events: readonly TargetEvent[] = [scheduled];
    for (const [tries, seconds] of [31.5, 126, 630].entries()) {
      const now = { attempt: tries + 1, takeover: 0 };
      events = [...events, { type: 'TargetPublishStarted', data: now }];
      const updates: TargetEvent = {
        type: 'TargetPublishDeferred',
        data: { ...now, retryAt: at(100 + seconds), failure },
      };
      given(events)
        .when({ type: 'RecordDeferred', ...now, now: at(100), failure, policy })
        .then([updates], { again: 'claim_lost' });
      events = [...events, updates];
      equal(state(events).status, 'pending');
    }
    const last = { attempt: 4, takeover: 0 };
    given([...events, { type: 'TargetPublishStarted', data: last }])
      .when({ type: 'RecordDeferred', ...last, now: at(100), failure, policy })
      .then([{ type: 'TargetFailed', data: { ...last, failure } }], { again: 'claim_lost' });
  });

  t('nothing is deferred after the boundary', () => {
    given(crossed)
      .when({ type: 'RecordDeferred', ...claim, now: at(101), failure, policy })
      .refused('boundary_crossed');
  });

  t('a boundary call that left nothing behind is deferred like a failure before it, and its boundary is over', () => {
    const command = { type: 'RecordDeferred', ...claim, now: at(101), failure, policy, nothingSent: true } as const;
    const updates: TargetEvent = { type: 'TargetPublishDeferred', data: { ...claim, retryAt: at(132.5), failure } };
    given(crossed).when(command).then([updates], { again: 'claim_lost' });
    const next: TargetEvent = { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } };
    const second = { attempt: 2, takeover: 0, step: 'boundary', data: null, deadline: at(200) };
    given([...crossed, updates, next])
      .when({ type: 'Checkpoint', ...second })
      .then([{ type: 'TargetPublishCheckpointed', data: second }], { again: 'boundary_crossed' });
    given([...crossed, updates, next])
      .when({ type: 'RecordUnknown', attempt: 2, takeover: 0, failure, reconcileAt: at(131) })
      .refused('no_boundary');
    const always = Array.from({ length: 3 }, () => [updates, next]).flat();
    given([...crossed, ...always])
      .when({ ...command, attempt: 2 })
      .then([{ type: 'TargetFailed', data: { attempt: 2, takeover: 0, failure } }], { again: 'claim_lost' });
  });

  t('a rate limit is retried as often as the policy allows', () => {
    const command = { type: 'RecordRateLimited', ...claim, retryAt: at(200), failure, policy } as const;
    given(claimed).when(command).then([limited()], { again: 'claim_lost' });
    given(crossed).when(command).then([limited()], { again: 'claim_lost' });
    given(claimed)
      .when({ ...command, policy: { ...policy, maxRateLimits: 0 } })
      .then([failed], { again: 'claim_lost' });
    const waiting = [...claimed, limited()];
    given(waiting)
      .when({ type: 'Requeue', now: at(199) })
      .refused('not_due');
    given(waiting)
      .when({ type: 'Requeue', now: at(200) })
      .then([requeued('schedule', at(200))]);
    for (const events of except('rate_limited'))
      given(events)
        .when({ type: 'Requeue', now: at(999) })
        .then([]);
    const once = { attempt: 2, takeover: 0 };
    given([...waiting, requeued('schedule', at(200)), { type: 'TargetPublishStarted', data: once }])
      .when({ ...command, ...once, policy: { ...policy, maxRateLimits: 1 } })
      .then([{ type: 'TargetFailed', data: { ...once, failure } }], { again: 'claim_lost' });
  });

  t('a person retries a failed or waiting target, and the counts start at zero', () => {
    const retry = { type: 'Retry', commandId: 'r1', now: at(150) } as const;
    given([...claimed, failed])
      .when(retry)
      .then([requeued('retry', at(150))]);
    given([...claimed, limited()])
      .when(retry)
      .then([requeued('retry', at(150))]);
    const over = state([...claimed, failed]);
    const postRevision = over.status === 'none' ? 0 : over.common.postRevision;
    given([...claimed, failed])
      .when({ ...retry, postRevision })
      .then([requeued('retry', at(150))]);
    given([...claimed, failed])
      .when({ ...retry, postRevision: postRevision - 1 })
      .refused('target_not_retryable', 'another content');
    refusedIn(except('failed', 'rate_limited'), retry, 'target_not_retryable');
    given([]).when(retry).refused('not_found');
    // Nobody lost sight of these: that a person saw none of them on its network says nothing of them.
    refusedIn(except('failed', 'rate_limited'), { ...retry, isNotOut: true }, 'target_not_retryable');
    const again = state([...claimed, deferred, started, limited(), requeued('retry', at(150))]);
    deepEqual(again.status === 'pending' && [again.common.rateLimits, again.common.defers, again.retryAt], [
      0,
      0,
      at(150),
    ]);
    const counted = state([...claimed, deferred, started, limited(), requeued('schedule', at(200))]);
    deepEqual(counted.status === 'pending' && [counted.common.rateLimits, counted.common.defers], [1, 1]);
    // The same retry after it failed again was done already; it does not begin another.
    given([
      ...claimed,
      failed,
      { ...requeued('retry', at(150)), commandId: 'r1' } as Given<TargetEvent>,
      started,
      failed,
    ])
      .when(retry)
      .then([]);
  });

  t('keeps its planned time through every attempt; the next attempt has a time of its own', () => {
    const second: TargetEvent = { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } };
    const settled: Given<TargetEvent> = { ...absent, at: at(140) };
    const waits: readonly (readonly [readonly Given<TargetEvent>[], string])[] = [
      [[...claimed, deferred], at(131)],
      [[...claimed, limited(at(200)), requeued('schedule', at(201))], at(201)],
      [[...claimed, failed, requeued('retry', at(150))], at(150)],
      [[...open, settled], at(140)],
    ];
    for (const [events, retryAt] of waits) {
      const waiting = state(events);
      deepEqual(waiting.status === 'pending' && [waiting.common.dueAt, waiting.retryAt, attemptAt(waiting)], [
        at(100),
        retryAt,
        retryAt,
      ]);
      const early = new Date(Date.parse(retryAt) - 1).toISOString();
      given(events).when({ type: 'Start', now: early }).refused('not_due', retryAt);
      given(events).when({ type: 'Start', now: retryAt }).then([second], { again: 'not_claimable' });
      const begun = state([...events, second]);
      deepEqual(begun.status === 'publishing' && [begun.common.dueAt, attemptAt(begun)], [at(100), retryAt]);
      // Another time, or other content, takes the place of the next attempt's time.
      const moved: TargetEvent = {
        type: 'TargetRescheduled',
        data: { dueAt: at(100), scheduledLocal: null, jitterSeconds: 0 },
      };
      given(events)
        .when({ ...moved.data, type: 'Reschedule', now: '2026-01-01T00:00:00.000Z', commandId: 'back' })
        .then([moved]);
      const revised: TargetEvent = {
        type: 'TargetRevised',
        data: {
          ...{ ...moved.data, postRevision: 7, timezone: 'UTC' },
          ...{ scheduleMode: 'managed', scheduleModeReason: null },
        },
      };
      for (const one of [moved, revised]) {
        const back = state([...events, one]);
        deepEqual(back.status === 'pending' && [back.common.dueAt, back.retryAt], [at(100), null]);
      }
    }
    const first = state(claimed);
    deepEqual(first.status === 'publishing' && [first.retryAt, attemptAt(first)], [null, at(100)]);
    const stopped = state([...claimed, limited(at(200))]);
    deepEqual(stopped.status === 'rate_limited' && [stopped.common.dueAt, attemptAt(stopped)], [at(100), at(200)]);
    // A claim of a target that was not waiting, which only an older backup of the store can show.
    for (const events of except('pending')) {
      const begun = state([...events, second]);
      equal(begun.status === 'publishing' && begun.retryAt, null);
    }
  });

  t('is rescheduled while it is open, once per command', () => {
    const command = {
      type: 'Reschedule',
      now: '2026-01-01T00:00:00.000Z',
      commandId: 'm1',
      dueAt: at(500),
      scheduledLocal: null,
      jitterSeconds: 7,
    } as const;
    const moved: TargetEvent = {
      type: 'TargetRescheduled',
      data: { dueAt: at(500), scheduledLocal: null, jitterSeconds: 7 },
    };
    given([scheduled]).when(command).then([moved]);
    given([...claimed, limited()])
      .when(command)
      .then([moved]);
    given([scheduled, held]).when(command).then([moved]);
    equal(state([scheduled, held, moved]).status, 'awaiting_approval');
    equal(state([...claimed, limited(), moved]).status, 'pending');
    const closed = except('pending', 'rate_limited', 'awaiting_approval', 'handed_to_platform');
    refusedIn(closed, command, 'target_not_pending', 'target cannot be rescheduled.');
    // At the time it has, nothing happens; one that waits for a rate limit is due then nevertheless.
    const same = { ...command, dueAt: at(100), jitterSeconds: 0 };
    const at100 = { dueAt: at(100), scheduledLocal: null, jitterSeconds: 0 };
    given([scheduled]).when(same).then([]);
    given([scheduled, held]).when(same).then([]);
    given([...claimed, limited()])
      .when(same)
      .then([{ type: 'TargetRescheduled', data: at100 }]);
    given([scheduled])
      .when({ ...same, dueAt: at(500) })
      .then([{ type: 'TargetRescheduled', data: { ...at100, dueAt: at(500) } }]);
    given([scheduled])
      .when({ ...same, jitterSeconds: 7 })
      .then([{ type: 'TargetRescheduled', data: { ...at100, jitterSeconds: 7 } }]);
    const other: TargetEvent = { ...moved, data: { ...moved.data, dueAt: at(900) } };
    given([scheduled, { ...moved, commandId: 'm1' } as Given<TargetEvent>, other])
      .when(command)
      .then([]);
  });

  t('is canceled while it is open, and not while it is publishing or when it is settled', () => {
    const command = {
      type: 'Cancel',
      reason: 'requested',
      postRevision: null,
      now: '2026-01-01T00:00:00.000Z',
    } as const;
    given([scheduled]).when(command).then([canceled]);
    given([...claimed, limited()])
      .when(command)
      .then([canceled]);
    given([scheduled, held]).when(command).then([canceled]);
    given([scheduled, canceled]).when(command).then([]);
    const closed = except('pending', 'rate_limited', 'awaiting_approval', 'canceled', 'handed_to_platform');
    refusedIn(closed, command, 'target_not_pending', 'target cannot be canceled.');
    const byIntent = state([
      scheduled,
      { type: 'TargetCanceled', data: { reason: 'client_archived', postRevision: 9 } },
    ]);
    equal(byIntent.status !== 'none' && byIntent.common.appliedRevision, 9);
  });

  t('is revised while it waits for its time or for an approval, and keeps its time where none is given', () => {
    const command = { type: 'Revise', postRevision: 7, time: null, now: at(90) } as const;
    const revised = (over: object = {}): TargetEvent => ({
      type: 'TargetRevised',
      data: { postRevision: 7, ...time, ...over },
    });
    given([scheduled]).when(command).then([revised()]);
    given([scheduled, held]).when(command).then([revised()]);
    // The time of the next attempt is not the planned one.
    given([...claimed, deferred])
      .when(command)
      .then([revised()]);
    const moved = {
      dueAt: at(50),
      scheduledLocal: '2026-01-01T01:00',
      timezone: 'Europe/Berlin',
      jitterSeconds: 9,
      scheduleMode: 'native',
      scheduleModeReason: 'why',
    } as const;
    given([scheduled])
      .when({ ...command, time: moved })
      .then([revised(moved)]);
    given([scheduled])
      .when({ ...command, postRevision: 4 })
      .then([revised({ postRevision: 4 })]);
    for (const postRevision of [2, 3])
      given([scheduled])
        .when({ ...command, postRevision })
        .then([]);
    const after = state([scheduled, held, revised(moved)]);
    deepEqual(after, {
      ...state([scheduled, held]),
      common: {
        ...(after.status === 'none' ? {} : after.common),
        ...moved,
        postRevision: 7,
        appliedRevision: 7,
      },
    });
    equal(after.status, 'awaiting_approval');
    equal(state([...claimed, deferred, revised()]).status, 'pending');
    given([]).when(command).refused('not_found');
  });

  t('a failed one is revised and tried again in one append: at its time, or at once where that has passed', () => {
    const command = { type: 'Revise', postRevision: 7, time: null, now: at(140) } as const;
    const revised = (dueAt: string): TargetEvent => ({
      type: 'TargetRevised',
      data: { postRevision: 7, ...time, dueAt },
    });
    const failing = situations.failed;
    given(failing)
      .when(command)
      .then([revised(at(100)), requeued('revise', at(140))]);
    given(failing)
      .when({ ...command, now: at(99) })
      .then([revised(at(100)), requeued('revise', at(100))]);
    given(failing)
      .when({ ...command, time: { ...time, dueAt: at(300) } })
      .then([revised(at(300)), requeued('revise', at(300))]);
    const between = state([...failing, revised(at(300))]);
    deepEqual(between.status === 'failed' && [between.failure, between.common.dueAt], [failure, at(300)]);
    const again = state([
      ...claimed,
      limited(),
      requeued('schedule', at(200)),
      started,
      failed,
      revised(at(300)),
      {
        ...requeued('revise', at(300)),
        commandId: 'r',
      } as Given<TargetEvent>,
    ]);
    deepEqual(again.status === 'pending' && [again.common.rateLimits, again.common.appliedCommands], [0, ['r']]);
  });

  t('an upload of the former content is forgotten with the revision', () => {
    const revised: TargetEvent = { type: 'TargetRevised', data: { postRevision: 7, ...time } };
    const checkpointsOf = (...events: readonly TargetEvent[]) => {
      const now = state(events);
      return now.status === 'none' ? null : now.common.checkpoints.length;
    };
    const uploaded = [...claimed, container, deferred];
    deepEqual([checkpointsOf(...uploaded), checkpointsOf(...uploaded, revised)], [1, 0]);
  });

  t('is not revised in any other situation, and the refusal says which', () => {
    const command = { type: 'Revise', postRevision: 7, time: null, now: at(90) } as const;
    const closed = except('pending', 'failed', 'awaiting_approval');
    refusedIn(closed, command, 'target_not_pending', 'target cannot be revised.');
    const reasons = closed.map((events) => {
      try {
        return target.decide(command, state(events)).length;
      } catch (error) {
        return error instanceof TooLate && error.reason;
      }
    });
    deepEqual(reasons, [
      'publishing',
      'processing',
      'rate_limited',
      'outcome_unknown',
      'handed_to_platform',
      'published',
      'canceled',
    ]);
    deepEqual(
      except().map((events) => {
        const one = state(events);
        return one.status !== 'none' && skipReasonOf(one, openStatuses);
      }),
      [
        null,
        null,
        'publishing',
        'processing',
        null,
        'outcome_unknown',
        'handed_to_platform',
        'published',
        'failed',
        'canceled',
      ],
    );
  });

  t('keeps the newest post revision that was applied to it', () => {
    const applied = (events: readonly TargetEvent[]) => {
      const now = state(events);
      return now.status === 'none' ? null : [now.status, now.common.dueAt, now.common.appliedRevision];
    };
    const holding = (postRevision: number): TargetEvent => ({ type: 'TargetHeld', data: { postRevision } });
    const released = (postRevision: number): TargetEvent => ({
      type: 'TargetReleased',
      data: { postRevision, dueAt: at(300) },
    });
    const revised: TargetEvent = { type: 'TargetRevised', data: { postRevision: 7, ...time, dueAt: at(400) } };
    deepEqual(applied([scheduled, holding(5)]), ['awaiting_approval', at(100), 5]);
    deepEqual(applied([scheduled, holding(2)]), ['awaiting_approval', at(100), 3]);
    deepEqual(applied([scheduled, holding(5), released(6)]), ['pending', at(300), 6]);
    deepEqual(applied([scheduled, holding(5), released(2)]), ['pending', at(300), 5]);
    deepEqual(applied([scheduled, revised]), ['pending', at(400), 7]);
    deepEqual(applied([scheduled, holding(5), revised]), ['awaiting_approval', at(400), 7]);
    deepEqual(applied([scheduled, canceled]), ['canceled', at(100), 3]);
  });

  t('an unknown outcome is settled: present, failed, or absent where absence is proof', () => {
    const settle = (outcome: Extract<TargetCommand, { type: 'Settle' }>['outcome']): TargetCommand => ({
      type: 'Settle',
      now: at(140),
      by: 'reconcile',
      outcome,
    });
    const none = { externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' } as const;
    given(open)
      .when(settle({ kind: 'published', ...there }))
      .then([{ type: 'TargetOutcomeSettled', data: { ...none, ...there, outcome: 'published' } }], {
        again: 'target_not_unknown',
      });
    given(open)
      .when(settle({ kind: 'failed', failure }))
      .then([{ type: 'TargetOutcomeSettled', data: { ...none, failure, outcome: 'failed' } }], {
        again: 'target_not_unknown',
      });
    given(open)
      .when(settle({ kind: 'absent', proof: false }))
      .then([]);
    given(open)
      .when(settle({ kind: 'absent', proof: true }))
      .then([absent], { again: 'target_not_unknown' });
    refusedIn(
      except('outcome_unknown', 'handed_to_platform', 'processing'),
      settle({ kind: 'absent', proof: true }),
      'target_not_unknown',
    );
    const settled = (data: Extract<TargetEvent, { type: 'TargetOutcomeSettled' }>['data']) =>
      state([...open, { type: 'TargetOutcomeSettled', data }]);
    const bad = settled({ ...none, failure, outcome: 'failed' });
    deepEqual(bad.status === 'failed' && bad.failure, failure);
    const found = settled({ ...none, ...there, outcome: 'published' });
    deepEqual(found.status === 'published' && [found.externalId, found.publishedAt], ['e1', at(101)]);
    const nameless = settled({ ...none, outcome: 'published' });
    deepEqual(nameless.status === 'published' && [nameless.externalId, nameless.publishedAt], ['', at(0)]);
  });

  t('after the looks of the policy, far enough apart, an absent post is tried again', () => {
    const looks = { looks: 3, gapMs: 60_000 };
    const look = (seconds: number, policy = looks): TargetCommand => ({
      type: 'ObserveAbsence',
      askedAt: at(seconds),
      policy,
    });
    const seen = (seconds: number): TargetEvent => ({
      type: 'TargetAbsenceObserved',
      data: { ...claim, observedAt: at(seconds) },
    });
    const settled: TargetEvent = { type: 'TargetOutcomeSettled', data: { ...absent.data, by: 'policy' } };
    given(open)
      .when(look(200))
      .then([seen(200)]);
    given([...open, seen(200)])
      .when(look(259.999))
      .then([]);
    given([...open, seen(200)])
      .when(look(260))
      .then([seen(260)]);
    given([...open, seen(200), seen(260)])
      .when(look(319))
      .then([]);
    given([...open, seen(200), seen(260)])
      .when(look(320))
      .then([settled], { again: 'target_not_unknown' });
    given(open)
      .when(look(200, { looks: 1, gapMs: 0 }))
      .then([settled], { again: 'target_not_unknown' });
    refusedIn(except('outcome_unknown'), look(200), 'target_not_unknown');
    given([]).when(look(200)).refused('not_found');
    const again = state([...open, seen(200), seen(260), { ...settled, at: at(321) } as Given<TargetEvent>]);
    deepEqual(again.status === 'pending' && [again.retryAt, again.common.checkpoints.length], [at(321), 1]);
    // A takeover number names the worker that holds the boundary, as in every other event of the attempt.
    given([...crossed, takenOver, { ...unknown, data: { ...unknown.data, takeover: 1 } } as TargetEvent])
      .when(look(200))
      .then([{ type: 'TargetAbsenceObserved', data: { attempt: 1, takeover: 1, observedAt: at(200) } }]);
    // Found in between, it is published.
    given([...open, seen(200), seen(260)])
      .when({ type: 'Settle', now: at(320), by: 'reconcile', outcome: { kind: 'published', ...there } })
      .then([{ type: 'TargetOutcomeSettled', data: { ...absent.data, ...there, outcome: 'published' } }], {
        again: 'target_not_unknown',
      });
    const second = { attempt: 2, takeover: 0 };
    // The rules give one attempt more: a second unknown outcome waits for the network or a person.
    const repeated: readonly TargetEvent[] = [
      { type: 'TargetPublishStarted', data: second },
      { ...boundary, data: { ...boundary.data, ...second } },
      { type: 'TargetOutcomeUnknown', data: { ...second, failure, reconcileAt: at(131) } },
    ];
    given([...open, settled, ...repeated])
      .when(look(320))
      .then([]);
    for (const [word, ...rest] of [
      [{ ...absent, data: { ...absent.data, by: 'admin' } }],
      [{ ...absent, data: { ...absent.data, outcome: 'failed', failure } }, requeued('retry', at(150))],
    ] as const) {
      given([...open, settled, ...repeated, word, ...rest, ...repeated] as readonly TargetEvent[])
        .when(look(320))
        .then([{ type: 'TargetAbsenceObserved', data: { ...second, observedAt: at(320) } }]);
    }
    for (const events of except('outcome_unknown')) deepEqual(state([...events, seen(200)]), state(events));
  });

  t('an attempt that is proved absent is repeated three times, after longer and longer waits, and then fails', () => {
    const settle = (by: 'reconcile' | 'admin'): TargetCommand => ({
      ...{ type: 'Settle', now: at(140), by },
      outcome: { kind: 'absent', proof: true, policy },
    });
    const again = { again: 'target_not_unknown' };
    let events: readonly Given<TargetEvent>[] = [scheduled];
    const lose = (attempt: number): readonly Given<TargetEvent>[] => [
      { type: 'TargetPublishStarted', data: { attempt, takeover: 0 } },
      { ...boundary, data: { ...boundary.data, attempt } },
      { ...unknown, data: { ...unknown.data, attempt }, at: at(110 + attempt) },
    ];
    for (const [index, seconds] of [31.5, 126, 630].entries()) {
      events = [...events, ...lose(index + 1)];
      const updates: TargetEvent = { ...absent, data: { ...absent.data, retryAt: at(140 + seconds) } };
      given(events).when(settle('reconcile')).then([updates], again);
      events = [...events, updates];
      const waiting = state(events);
      deepEqual(waiting.status === 'pending' && [waiting.retryAt, waiting.common.unknownSince], [
        at(140 + seconds),
        at(111),
      ]);
    }
    events = [...events, ...lose(4)];
    const last = state(events);
    // The first time is the one that counts for people, the latest one for the questions to the network.
    deepEqual(last.status === 'outcome_unknown' && [last.common.unknownSince, last.askedFrom], [at(111), at(114)]);
    const end: TargetEvent = {
      type: 'TargetOutcomeSettled',
      data: { ...absent.data, outcome: 'failed', failure: publishUnanswered },
    };
    given(events).when(settle('reconcile')).then([end], again);
    // A person who knows that it is not there has it tried again at once, and the count starts at zero.
    const word: TargetEvent = { ...absent, data: { ...absent.data, by: 'admin' } };
    given(events).when(settle('admin')).then([word], again);
    for (const person of [[word], [end, requeued('retry', at(150))], [end, requeued('revise', at(150))]]) {
      const anew = state([...events, ...person]);
      deepEqual(anew.status === 'pending' && [anew.common.provenAbsences, anew.common.unknownSince], [0, null]);
    }
  });

  t(
    'an attempt of which the network named the time of the next is not repeated before, whoever found that it is absent',
    () => {
      const named = at(90_000);
      const until: TargetEvent = { ...unknown, data: { ...unknown.data, retryAt: named } };
      const settle = (by: 'reconcile' | 'admin', now = at(140)): TargetCommand => ({
        ...{ type: 'Settle', now, by, outcome: { kind: 'absent', proof: true, policy } },
      });
      const again = { again: 'target_not_unknown' };
      const waits: TargetEvent = { ...absent, data: { ...absent.data, retryAt: named } };
      given([...crossed, until])
        .when(settle('reconcile'))
        .then([waits], again);
      const waiting = state([...crossed, until, waits]);
      deepEqual(waiting.status === 'pending' && waiting.retryAt, named);
      given([...crossed, until])
        .when({ type: 'ObserveAbsence', askedAt: at(140), policy: { looks: 1, gapMs: 0 } })
        .then([{ ...waits, data: { ...waits.data, by: 'policy' } }], again);
      const later: TargetEvent = { ...absent, data: { ...absent.data, retryAt: at(95_031.5) } };
      given([...crossed, until])
        .when(settle('reconcile', at(95_000)))
        .then([later], again);
      // A person who knows that it is not there decides.
      const word: TargetEvent = { ...absent, data: { ...absent.data, by: 'admin' } };
      given([...crossed, until])
        .when(settle('admin'))
        .then([word], again);
      given(crossed)
        .when({ ...claim, type: 'RecordUnknown', failure, reconcileAt: unknown.data.reconcileAt, retryAt: named })
        .then([until], { again: 'claim_lost' });
    },
  );

  t('is overdue once its deferrals and rate limits have lasted a day together, until a person acts', () => {
    const day = 86_400;
    const ask = (seconds: number): TargetCommand => ({ type: 'RecordOverdue', now: at(seconds) });
    const second: TargetEvent = { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } };
    const wait = (occurred: number, retryAt: number): Given<TargetEvent> => ({
      ...{ ...deferred, data: { ...deferred.data, retryAt: at(retryAt) } },
      at: at(occurred),
    });
    const refuse = (occurred: number, retryAt: number) => ({ ...limited(at(retryAt)), at: at(occurred) });
    const again = [...claimed, wait(110, 50_000), second, refuse(50_010, 200_000)];
    for (const [events, since] of [
      [again, 110],
      [[scheduled, wait(110, 200_000)], 110],
      // A deferral before the time, as of a hand-over, keeps nothing beyond it.
      [[scheduled, wait(10, 50_000), wait(50_000, 200_000)], 100],
      [[...again, requeued('schedule', at(200)), second, refuse(300, 200_000)], 110],
    ] as const) {
      given(events)
        .when(ask(since + day - 0.001))
        .then([]);
      const reported: TargetEvent = { type: 'TargetOverdue', data: { dueAt: at(200_000), deferredSince: at(since) } };
      given(events)
        .when(ask(since + day))
        .then([reported]);
      given([...events, reported])
        .when(ask(199_999))
        .then([]);
    }
    // An attempt under way is not put off.
    given([...again.slice(0, -1)])
      .when(ask(110 + day))
      .then([{ type: 'TargetOverdue', data: { dueAt: at(50_000) } }]);
    const moved: TargetEvent = {
      type: 'TargetRescheduled',
      data: { dueAt: at(90_000), scheduledLocal: null, jitterSeconds: 0 },
    };
    const reported: TargetEvent = { type: 'TargetOverdue', data: { dueAt: at(200_000), deferredSince: at(110) } };
    for (const person of [
      [moved],
      [requeued('retry', at(90_000))],
      [requeued('schedule', at(200)), second, unknown, absent],
    ]) {
      const begun = [...again, reported, ...person, { ...second, data: { attempt: 3, takeover: 0 } }];
      const anew = state([...begun, wait(90_010, 300_000)]);
      equal(anew.status === 'pending' && anew.common.deferredSince, at(90_010));
    }
  });

  t('is overdue once fifteen minutes after its attempt was due, until a person moves or retries it', () => {
    const reported = (dueAt: string): TargetEvent => ({ type: 'TargetOverdue', data: { dueAt } });
    const ask = (seconds: number): TargetCommand => ({ type: 'RecordOverdue', now: at(seconds) });
    const waits: readonly (readonly [readonly TargetEvent[], number])[] = [
      [[scheduled], 100],
      [claimed, 100],
      [crossed, 100],
      [[...claimed, deferred], 131],
      [[...claimed, limited(at(200))], 200],
      [[...claimed, failed, requeued('retry', at(150))], 150],
      [[...claimed, deferred, { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } }], 131],
    ];
    for (const [events, due] of waits) {
      given(events)
        .when(ask(due + 899.999))
        .then([]);
      given(events)
        .when(ask(due + 900))
        .then([reported(at(due))]);
      const late = state([...events, reported(at(due))]);
      equal(late.status !== 'none' && late.common.overdue, true);
      deepEqual({ ...late, common: {} }, { ...state(events), common: {} });
    }
    for (const events of except('pending', 'publishing', 'rate_limited', 'handed_to_platform')) {
      given(events).when(ask(9_999)).then([]);
    }
    given([]).when(ask(9_999)).refused('not_found');
    // The service itself tries again: nothing new to tell.
    const again = [...claimed, reported(at(100)), limited(at(200)), requeued('schedule', at(200))];
    given(again).when(ask(9_999)).then([]);
    const time = { dueAt: at(500), scheduledLocal: null, jitterSeconds: 0 };
    const planned = { timezone: 'UTC', scheduleMode: 'managed', scheduleModeReason: null } as const;
    const anew: readonly TargetEvent[] = [
      { type: 'TargetRescheduled', data: time },
      { type: 'TargetRevised', data: { ...time, ...planned, postRevision: 7 } },
      { type: 'TargetReleased', data: { postRevision: 7, dueAt: at(500) } },
      requeued('retry', at(500)),
    ];
    for (const event of anew) {
      given([...claimed, reported(at(100)), limited(at(200)), event])
        .when(ask(1_400))
        .then([reported(at(500))]);
    }
  });

  t('a person settles a target that is no thread without naming a segment', () => {
    const command = { type: 'Settle', now: at(140), by: 'admin', outcome: { kind: 'published', ...there } } as const;
    given(open)
      .when(command)
      .then([{ type: 'TargetOutcomeSettled', data: { ...there, by: 'admin', outcome: 'published', failure: null } }], {
        again: 'target_not_unknown',
      });
    given(open)
      .when({ ...command, segment: 0 })
      .refused('segment_out_of_turn');
  });

  t('proven absent, the next attempt keeps what the boundary was crossed with', () => {
    const again = state([...claimed, container, boundary, unknown, absent]);
    equal(again.status, 'pending');
    const next = state([
      ...claimed,
      container,
      boundary,
      unknown,
      absent,
      { type: 'TargetPublishStarted', data: { attempt: 2, takeover: 0 } },
    ]);
    deepEqual(next.status === 'publishing' && [next.boundary, next.common.checkpoints.map(({ step }) => step)], [
      null,
      ['container', 'boundary'],
    ]);
  });

  t('is recorded once as removed from its network, and only if it was published', () => {
    const removed: TargetEvent = { type: 'TargetRemovedOnPlatform', data: { observedAt: at(900) } };
    const settled: TargetEvent = {
      type: 'TargetOutcomeSettled',
      data: { outcome: 'published', ...there, failure: null, by: 'reconcile' },
    };
    for (const published of [situations.published, [...open, settled]]) {
      given(published)
        .when({ type: 'RecordRemoved', observedAt: at(900) })
        .then([removed]);
      given([...published, removed])
        .when({ type: 'RecordRemoved', observedAt: at(999) })
        .then([]);
      deepEqual(state([...published, removed]), { ...state(published), removedAt: at(900) });
    }
    for (const elsewhere of [[], ...except('published')]) {
      given(elsewhere)
        .when({ type: 'RecordRemoved', observedAt: at(900) })
        .then([]);
      deepEqual(state([...elsewhere, removed]), state(elsewhere));
    }
  });

  t('any commands in any order: one boundary an attempt, and only a retry leaves a final state', () => {
    const seed = seeded('target commands').seed;
    const number = fc.integer({ min: 0, max: 3 });
    const commands: fc.Arbitrary<TargetCommand> = fc.oneof(
      fc.constant<TargetCommand>({ type: 'Schedule', planned, postId: 'p1', postRevision: 3 }),
      number.map((n): TargetCommand => ({ type: 'Start', now: at(99 + n) })),
      fc.constant<TargetCommand>({
        type: 'Cancel',
        reason: 'requested',
        postRevision: null,
        now: '2026-01-01T00:00:00.000Z',
      }),
      fc.constant<TargetCommand>({ type: 'Requeue', now: at(200) }),
      fc.uuid().map((commandId): TargetCommand => ({ type: 'Retry', commandId, now: at(100) })),
      fc.tuple(number, number, fc.integer({ min: 0, max: 6 })).map(([attempt, takeover, which]): TargetCommand => {
        const names = { attempt, takeover };
        const all: readonly TargetCommand[] = [
          { type: 'TakeOver', ...names },
          { type: 'Checkpoint', ...names, step: 'boundary', data: null, deadline: at(130) },
          { type: 'RecordPublished', ...names, ...there },
          { type: 'RecordFailed', ...names, failure },
          { type: 'RecordRateLimited', ...names, retryAt: at(200), failure, policy },
          { type: 'RecordDeferred', ...names, now: at(60), failure, policy },
          { type: 'RecordUnknown', ...names, failure, reconcileAt: at(131) },
        ];
        return all[which] ?? { type: 'TakeOver', ...names };
      }),
      fc.boolean().map(
        (proof): TargetCommand => ({
          type: 'Settle',
          now: at(140),
          by: 'reconcile',
          outcome: { kind: 'absent', proof },
        }),
      ),
    );
    fc.assert(
      fc.property(fc.array(commands, { maxLength: 60 }), (asked) => {
        const events: TargetEvent[] = [];
        for (const command of asked) {
          const before = state(events);
          let decided: readonly TargetEvent[] = [];
          try {
            decided = target.decide(command, before);
          } catch (error) {
            if (!(error instanceof Rejection)) throw error;
          }
          events.push(...decided);
          const after = state(events);
          const over = before.status === 'published' || before.status === 'canceled';
          if (over) deepEqual(after, before);
          if (decided.length > 0 && after.status === 'publishing' && before.status !== 'publishing') {
            equal(before.status, 'pending');
          }
        }
        const boundaries = events.flatMap((one) =>
          one.type === 'TargetPublishCheckpointed' && one.data.step === 'boundary' ? [one.data.attempt] : [],
        );
        equal(new Set(boundaries).size, boundaries.length, 'two boundaries in one attempt');
      }),
      { seed, numRuns: 2_000 },
    );
  });
});

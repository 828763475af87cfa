import { deepEqual, equal } from 'node:assert/strict';
import { movedTo, neededTimes, target, timesEver, timeWanted } from '#domain/post-target/target.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { deciding } from '#test/support/deciding.ts';
import { failure, planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** The times for which a target needs a place of the workspace's quota. */

const { state } = deciding(target);

const dueAt = '2026-03-02T08:00:00.000Z';
const later = '2026-04-02T08:00:00.000Z';
const plan = planned({ targetId: 't1', accountId: 'a1', clientId: 'c1', platform: 'facebook', dueAt });
const claim = { attempt: 1, takeover: 0 };
const scheduled: TargetEvent = { type: 'TargetScheduled', data: { ...plan, postId: 'p1', postRevision: 3 } };
const started: TargetEvent = { type: 'TargetPublishStarted', data: claim };
const failed: TargetEvent = { type: 'TargetFailed', data: { ...claim, failure } };
const canceled: TargetEvent = { type: 'TargetCanceled', data: { reason: 'requested', postRevision: null } };
const handed: TargetEvent = { type: 'TargetHandedToPlatform', data: { ...claim, nativeId: 'n1', dueAt } };
const rescheduled: TargetEvent = {
  type: 'TargetRescheduled',
  data: { dueAt: later, scheduledLocal: null, jitterSeconds: 0 },
};
const requeued: TargetEvent = { type: 'TargetRequeued', data: { by: 'retry', dueAt } };
const undo = (then: 'cancel' | 'reschedule', to: string | null): TargetEvent => ({
  type: 'TargetUndoRequested',
  data: { reason: null, postRevision: null, scheduledLocal: null, jitterSeconds: null, then, dueAt: to },
});
const over = [scheduled, started, handed];

suite('the places that a target needs', (t) => {
  t('one for its time while it may go out, none once it failed or is canceled', () => {
    deepEqual(neededTimes(state([scheduled])), [dueAt]);
    deepEqual(neededTimes(state([scheduled, started])), [dueAt]);
    deepEqual(neededTimes(state([scheduled, rescheduled])), [later]);
    deepEqual(neededTimes(state([scheduled, started, failed])), []);
    deepEqual(neededTimes(state([scheduled, canceled])), []);
    deepEqual(neededTimes(state([])), []);
  });

  t('both while its network is asked to give it back for another time', () => {
    deepEqual(neededTimes(state(over)), [dueAt]);
    deepEqual(neededTimes(state([...over, undo('reschedule', later)])), [dueAt, later]);
    deepEqual(neededTimes(state([...over, undo('cancel', null)])), [dueAt]);
  });

  t('are asked for with the append that gives it another time', () => {
    for (const events of [[rescheduled], [undo('reschedule', later)], [requeued, rescheduled]]) {
      equal(movedTo(events), later);
      equal(timeWanted(state([scheduled]), events), later);
    }
    for (const events of [[], [started], [undo('cancel', null)], [requeued]]) {
      equal(movedTo(events), null);
      equal(timeWanted(state([scheduled]), events), null);
    }
    equal(timeWanted(state([]), [rescheduled]), null);
    equal(movedTo([undo('cancel', null), rescheduled]), later);
  });

  t('are asked for anew by a retry of a failed one, at the time that was planned', () => {
    const events = [scheduled, started, failed];
    equal(timeWanted(state(events), [requeued]), dueAt);
    equal(timeWanted(state(events), [rescheduled, requeued]), later);
    for (const other of [[], [started]]) equal(timeWanted(state(events), other), null);
  });

  t('may be left at each time that it ever had', () => {
    const released: TargetEvent = {
      type: 'TargetReleased',
      data: { postRevision: 4, dueAt: '2026-03-03T08:00:00.000Z' },
    };
    const { targetId: _target, accountId: _account, clientId: _client, platform: _platform, ...time } = plan;
    const revised: TargetEvent = {
      type: 'TargetRevised',
      data: { ...time, postRevision: 5, dueAt: '2026-03-04T08:00:00.000Z' },
    };
    // What a network has keeps its time.
    const kept = [handed, { type: 'TargetApprovalLapsed', data: { dueAt: '2026-03-05T08:00:00.000Z' } }];
    deepEqual(timesEver([scheduled, released, revised, ...kept, undo('cancel', null)]), [
      dueAt,
      '2026-03-03T08:00:00.000Z',
      '2026-03-04T08:00:00.000Z',
    ]);
    deepEqual(timesEver([scheduled, rescheduled, undo('reschedule', '2026-05-02T08:00:00.000Z')]), [
      dueAt,
      later,
      '2026-05-02T08:00:00.000Z',
    ]);
  });
});

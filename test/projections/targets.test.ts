import assert from 'node:assert/strict';
import { approvalTooLate } from '#domain/publish-failures.ts';
import { rowOf } from '#projections/engine/model.ts';
import { postTargets, targetsOfShape1 } from '#projections/models/targets.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { everyEventIsProjected, type Given, given, history, instant, TestKeys } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { failure } from '#test/support/samples.ts';
import { claim, out, scheduled } from '#test/support/scheduled-post.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: targets', (t) => {
  t('targets: every sequence of states', async () => {
    const world = scheduled();
    const { id, clientId, accountA, a, plan, targetA: target } = world;
    const [first] = world.fanOut;
    assert.ok(first !== undefined);
    const sees = async (events: readonly Given[], row: object) =>
      given(plan, first, ...events)
        .project(pool, postTargets)
        .sees([{ id: a, ...row }]);
    const due = '2026-03-02T09:00:00.000Z';
    await sees([], {
      post_id: id,
      client_id: clientId,
      account_id: accountA,
      platform: 'x',
      status: 'pending',
      due_at: due,
      scheduled_local: null,
      timezone: 'UTC',
      jitter_seconds: 0,
      schedule_mode: 'managed',
      attempts: 0,
      takeover: 0,
      next_action_at: due,
      retry_at: null,
      overdue: false,
      failure: null,
      post_revision: 0,
      applied_revision: 0,
    });
    const held = target('TargetHeld', { postRevision: 1 });
    const moved = { dueAt: instant(5), scheduledLocal: '2026-03-01T00:05', jitterSeconds: 60 };
    await sees([held], { status: 'awaiting_approval', next_action_at: null, applied_revision: 1, post_revision: 0 });
    await sees([held, target('TargetRescheduled', moved)], {
      status: 'awaiting_approval',
      due_at: instant(5),
      scheduled_local: '2026-03-01T00:05',
      jitter_seconds: 60,
      next_action_at: null,
    });
    // Under the rule of a client that lets late approvals fail, the due search finds held targets.
    const late = { ...first, data: { ...(first.data as object), approvalLate: 'fail' } };
    const seesLate = (events: readonly Given[], row: object) =>
      given(plan, late, held, ...events)
        .project(pool, postTargets)
        .sees([{ id: a, ...row }]);
    await seesLate([], { status: 'awaiting_approval', due_at: due, next_action_at: due });
    await seesLate([target('TargetRescheduled', moved)], { due_at: instant(5), next_action_at: instant(5) });
    await seesLate([target('TargetApprovalLapsed', { dueAt: due })], {
      ...{ status: 'failed', failure: approvalTooLate, next_action_at: null, attempts: 0 },
    });
    await sees(
      [target('TargetRescheduled', moved), held, target('TargetReleased', { postRevision: 2, dueAt: instant(5) })],
      {
        ...{ due_at: instant(5), scheduled_local: '2026-03-01T00:05', jitter_seconds: 60 },
      },
    );
    await sees(
      [target('TargetRescheduled', moved), held, target('TargetReleased', { postRevision: 2, dueAt: instant(7) })],
      {
        status: 'pending',
        due_at: instant(7),
        // No wall-clock time was asked for that instant.
        scheduled_local: null,
        jitter_seconds: 0,
        next_action_at: instant(7),
        applied_revision: 2,
      },
    );
    const mode = { timezone: 'Europe/Berlin', scheduleMode: 'native', scheduleModeReason: 'why' };
    const revised = target('TargetRevised', { postRevision: 3, ...moved, ...mode });
    await sees([revised], {
      status: 'pending',
      due_at: instant(5),
      // It is handed over at once.
      next_action_at: instant(2),
      scheduled_local: '2026-03-01T00:05',
      timezone: 'Europe/Berlin',
      jitter_seconds: 60,
      schedule_mode: 'native',
      schedule_mode_reason: 'why',
      post_revision: 3,
      applied_revision: 3,
    });
    await sees([held, revised], { status: 'awaiting_approval', due_at: instant(5), next_action_at: null });
    const refused = target('TargetFailed', { ...claim, failure });
    await sees([refused, revised], { status: 'failed', due_at: instant(5), next_action_at: null, failure });
    await sees([refused, revised, target('TargetRequeued', { by: 'revise', dueAt: instant(8) })], {
      status: 'pending',
      due_at: instant(5),
      retry_at: instant(8),
      next_action_at: instant(8),
      failure: null,
      post_revision: 3,
    });
    await sees([target('TargetCanceled', { reason: 'requested', postRevision: null })], {
      status: 'canceled',
      next_action_at: null,
      applied_revision: 0,
    });

    const started = target('TargetPublishStarted', claim);
    await sees([started], { status: 'publishing', attempts: 1, takeover: 0, next_action_at: instant(2) });
    const boundary = { ...claim, step: 'boundary', data: { key: 'k' }, deadline: instant(10) };
    await sees([started, target('TargetPublishCheckpointed', boundary)], {
      status: 'publishing',
      next_action_at: instant(3),
    });
    const taken = target('TargetPublishTakenOver', { attempt: 1, takeover: 1 });
    await sees([started, taken], { status: 'publishing', takeover: 1, next_action_at: instant(3) });
    const head = { ...out, segment: { index: 0, of: 2 } };
    const second = { ...out, externalId: 'x-2', permalink: null, segment: { index: 1, of: 2 } };
    const shown = { external_id: 'x-1', permalink: 'https://x.example/1', published_at: null };
    const segments = [target('TargetSegmentPublished', head), target('TargetSegmentPublished', second)];
    const post = (externalId: string, permalink: string | null) => ({
      externalId,
      permalink,
      publishedAt: instant(90),
    });
    const both = { of: 2, out: [post('x-1', 'https://x.example/1'), post('x-2', null)] };
    await sees([started], { segments: null });
    await sees([started, ...segments], { ...shown, segments: both, status: 'publishing', next_action_at: instant(4) });
    await sees([started, ...segments, target('TargetFailed', { ...claim, failure })], {
      ...shown,
      segments: both,
      status: 'failed',
    });

    const published = {
      status: 'published',
      external_id: 'x-1',
      permalink: 'https://x.example/1',
      published_at: instant(90),
      next_action_at: null,
      failure: null,
    };
    await sees([started, target('TargetPublished', out)], published);
    const comment = { code: 'forbidden', message: 'no right', platformCode: '403' };
    const issue = target('TargetFirstCommentFailed', comment);
    const none = { first_comment_issue: null, first_comment_id: null };
    const isDue = target('TargetFirstCommentScheduled', { try: 1, dueAt: instant(91), refusal: null });
    const isOut = [started, target('TargetPublished', out), isDue];
    await sees(isOut, { ...published, ...none, next_action_at: instant(91) });
    const call = target('TargetFirstCommentStarted', { try: 1, deadline: instant(95) });
    await sees([...isOut, call], { ...published, ...none, next_action_at: instant(95) });
    const again = target('TargetFirstCommentScheduled', { try: 2, dueAt: instant(99), refusal: comment });
    const waiting = { ...published, ...none, next_action_at: instant(99) };
    await sees([...isOut, call, again], {
      ...waiting,
      first_comment_issue: { ...comment, at: instant(6), retryAt: instant(99) },
    });
    await sees([...isOut, call, issue], {
      ...{ ...published, first_comment_id: null },
      first_comment_issue: { ...comment, at: instant(6), retryAt: null },
    });
    const posted = target('TargetFirstCommentPosted', { externalId: 'c' });
    await sees([...isOut, call, posted], { ...published, first_comment_issue: null, first_comment_id: 'c' });
    await sees([...isOut, call, again, call, posted], { ...published, ...none, first_comment_id: 'c' });
    const cover = target('TargetAfterStepScheduled', { step: 'cover', try: 1, dueAt: instant(92), refusal: null });
    const setting = target('TargetAfterStepStarted', { step: 'cover', try: 1, deadline: instant(94) });
    const isSet = target('TargetAfterStepCompleted', { step: 'cover' });
    // The nearer of the two is what a worker must act on next.
    await sees([...isOut, cover], {
      ...{ ...published, next_action_at: instant(91), after_step_issues: null },
      follow_ups: { comment: instant(91), cover: instant(92) },
    });
    await sees([...isOut, cover, call], { ...published, next_action_at: instant(92) });
    await sees([...isOut, cover, call, posted], { ...published, next_action_at: instant(92), first_comment_id: 'c' });
    await sees([...isOut, cover, call, posted, setting], { ...published, next_action_at: instant(94) });
    await sees([...isOut, cover, call, posted, setting, isSet], { ...published, follow_ups: null });
    const unset = target('TargetAfterStepFailed', { step: 'cover', ...comment });
    await sees([...isOut, cover, call, unset], {
      ...{ ...published, next_action_at: instant(95), ...none },
      after_step_issues: [{ step: 'cover', ...comment, at: instant(7), retryAt: null }],
    });
    const later = target('TargetAfterStepScheduled', { step: 'cover', try: 2, dueAt: instant(98), refusal: comment });
    await sees([started, target('TargetPublished', out), cover, setting, later], {
      ...{ ...published, next_action_at: instant(98) },
      after_step_issues: [{ step: 'cover', ...comment, at: instant(6), retryAt: instant(98) }],
    });
    await sees([started, target('TargetPublished', out), cover, setting, later, setting, isSet], {
      ...{ ...published, after_step_issues: null },
    });
    await sees(
      [started, target('TargetPublished', out), target('TargetRemovedOnPlatform', { observedAt: instant(9) })],
      {
        ...published,
        revision: 3,
      },
    );

    await sees([target('TargetFailed', { ...claim, failure })], { status: 'failed', attempts: 1, failure });
    const limited = target('TargetRateLimited', { ...claim, retryAt: instant(30), failure });
    await sees([started, limited], {
      status: 'rate_limited',
      retry_at: instant(30),
      next_action_at: instant(30),
      failure,
    });
    await sees([started, limited, target('TargetRescheduled', moved)], {
      status: 'pending',
      retry_at: null,
      next_action_at: instant(5),
      failure: null,
    });
    const requeued = target('TargetRequeued', { by: 'schedule', dueAt: instant(31) });
    const next = { due_at: due, next_action_at: instant(31), retry_at: instant(31) };
    await sees([started, limited, requeued], { ...next, status: 'pending', failure: null });
    await sees([started, limited, requeued, target('TargetPublishStarted', { attempt: 2, takeover: 0 })], {
      ...next,
      status: 'publishing',
      next_action_at: instant(5),
    });
    const deferred = target('TargetPublishDeferred', { ...claim, retryAt: instant(20), failure });
    await sees([started, deferred], {
      status: 'pending',
      due_at: due,
      next_action_at: instant(20),
      retry_at: instant(20),
      attempts: 1,
      failure,
    });
    const revisedManaged = target('TargetRevised', { postRevision: 3, ...moved, ...mode, scheduleMode: 'managed' });
    for (const event of [target('TargetRescheduled', moved), revisedManaged]) {
      await sees([started, deferred, event], {
        status: 'pending',
        due_at: instant(5),
        next_action_at: instant(5),
        retry_at: null,
        failure: null,
      });
    }

    const unknown = target('TargetOutcomeUnknown', { ...claim, failure, reconcileAt: instant(12) });
    await sees([started, unknown], { status: 'outcome_unknown', next_action_at: instant(12), retry_at: null, failure });
    const settled = { externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' };
    const settle = (over: object) => target('TargetOutcomeSettled', { ...settled, ...over });
    await sees([started, unknown, settle({ outcome: 'absent' })], {
      status: 'pending',
      due_at: due,
      retry_at: instant(4),
      next_action_at: instant(4),
      failure: null,
    });
    // It is the first time that people see, until one of them has the target tried again.
    const anew = [started, unknown, settle({ outcome: 'absent', retryAt: instant(20) })];
    await sees(anew, { retry_at: instant(20), next_action_at: instant(20) });
    for (const [between, since] of [
      [[], 3],
      [[settle({ outcome: 'absent', by: 'policy' })], 3],
      [[settle({ outcome: 'absent', by: 'admin' })], 8],
      [[target('TargetRequeued', { by: 'schedule', dueAt: instant(31) })], 3],
      [[target('TargetRequeued', { by: 'retry', dueAt: instant(31) })], 8],
      [[target('TargetSegmentPublished', { ...out, segment: { index: 0, of: 2 } })], 8],
    ] as const) {
      await sees([...anew, started, ...between, started, unknown], {
        status: 'outcome_unknown',
        unknown_since: instant(since),
      });
    }
    await sees([target('TargetPlaceLapsed', {})], { status: 'pending', due_at: due });
    const overdue = target('TargetOverdue', { dueAt: due });
    await sees([overdue], { status: 'pending', due_at: due, next_action_at: due, overdue: true });
    await sees([started, overdue], { status: 'publishing', overdue: true });
    await sees([started, overdue, limited, requeued], { status: 'pending', overdue: true });
    for (const event of [
      target('TargetRescheduled', moved),
      revisedManaged,
      target('TargetReleased', { postRevision: 3, dueAt: instant(7) }),
      target('TargetRequeued', { by: 'retry', dueAt: instant(31) }),
    ]) {
      await sees([overdue, event], { status: 'pending', overdue: false });
    }
    // Put off beyond its time; before it, the wait counts from it.
    const put = (at: string) => ({
      ...target('TargetPublishDeferred', { ...claim, retryAt: instant(90), failure }),
      at,
    });
    const afterDue = '2026-03-02T10:00:00.000Z';
    await sees([put(instant(50))], { deferred_since: due });
    for (const first of [put(afterDue), { ...limited, at: afterDue }]) {
      const twice = [started, first, started, put('2026-03-02T11:00:00.000Z')];
      await sees(twice, { deferred_since: afterDue });
      await sees([...twice, requeued], { deferred_since: afterDue });
      for (const event of [
        target('TargetRescheduled', moved),
        revisedManaged,
        target('TargetReleased', { postRevision: 3, dueAt: instant(7) }),
        target('TargetRequeued', { by: 'retry', dueAt: instant(31) }),
        target('TargetSegmentPublished', { ...out, segment: { index: 0, of: 2 } }),
        target('TargetHandedToPlatform', { ...claim, nativeId: 'n1', dueAt: due }),
        unknown,
      ]) {
        await sees([...twice, event], { deferred_since: null });
      }
    }
    const accepted = target('TargetAcceptedByPlatform', {
      ...{ ...claim, handle: { id: 'h1' }, askAt: instant(11), until: instant(40) },
    });
    const processing = { status: 'processing', failure: null, retry_at: null, next_action_at: instant(11) };
    await sees([started, accepted], { ...processing, processing_until: instant(40) });
    await sees([started, unknown, accepted], { ...processing, processing_until: instant(40) });
    await sees([deferred, started, accepted], { ...processing, deferred_since: null });
    await sees([started, accepted, unknown], { status: 'outcome_unknown', failure, next_action_at: instant(12) });
    await sees([started, accepted, settle({ outcome: 'failed', failure })], { status: 'failed', failure });
    const looked = target('TargetAbsenceObserved', { ...claim, observedAt: instant(11) });
    await sees([started, unknown, looked], { status: 'outcome_unknown', next_action_at: instant(12), failure });
    await sees([started, unknown, settle({ outcome: 'failed', failure })], { status: 'failed', failure });
    await sees([started, unknown, settle({ outcome: 'published', externalId: 'x-1', publishedAt: instant(90) })], {
      ...published,
      permalink: null,
    });
  });

  t('a target for the network’s own scheduler has work at once, at its time, and when it is taken back', async () => {
    const world = scheduled();
    const { a, plan, targetA: target } = world;
    const [first] = world.fanOut;
    assert.ok(first !== undefined);
    const due = '2026-03-02T09:00:00.000Z';
    const native = { ...first, data: { ...(first.data as object), scheduleMode: 'native' } };
    const sees = async (events: readonly Given[], row: object) =>
      given(plan, native, ...events)
        .project(pool, postTargets)
        .sees([{ id: a, ...row }]);
    await sees([], { status: 'pending', due_at: due, next_action_at: instant(1), schedule_mode: 'native', undo: null });
    const started = target('TargetPublishStarted', claim);
    const retry = target('TargetPublishDeferred', { ...claim, retryAt: instant(20), failure });
    await sees([started, retry], { status: 'pending', due_at: due, next_action_at: instant(20) });
    const reason = 'outside_native_window';
    const managed = target('TargetScheduleModeChanged', { scheduleMode: 'managed', scheduleModeReason: reason });
    const byUs = { schedule_mode: 'managed', schedule_mode_reason: reason };
    await sees([managed], { ...byUs, status: 'pending', next_action_at: due });
    // The hand-over was to be tried before the due time: the post must not go out then.
    await sees([started, retry, managed], { ...byUs, retry_at: null, due_at: due, next_action_at: due });
    const late = target('TargetPublishDeferred', { ...claim, retryAt: '2026-03-02T10:00:00.000Z', failure });
    await sees([started, late, managed], { ...byUs, due_at: due, next_action_at: '2026-03-02T10:00:00.000Z' });
    const again = target('TargetScheduleModeChanged', { scheduleMode: 'native', scheduleModeReason: null });
    await sees([managed, again], { schedule_mode: 'native', schedule_mode_reason: null, next_action_at: instant(3) });
    await sees([target('TargetHeld', { postRevision: 1 }), managed], { ...byUs, next_action_at: null });
    await sees([target('TargetReleased', { postRevision: 2, dueAt: instant(7) })], {
      due_at: instant(7),
      next_action_at: instant(2),
    });

    const handed = target('TargetHandedToPlatform', { ...claim, nativeId: 'n', dueAt: due });
    const over = [started, handed];
    await sees(over, {
      status: 'handed_to_platform',
      next_action_at: due,
      undo: null,
      external_id: null,
      failure: null,
    });
    const none = { reason: null, postRevision: null, dueAt: null, scheduledLocal: null, jitterSeconds: null };
    const cancel = target('TargetUndoRequested', { ...none, then: 'cancel', reason: 'requested', postRevision: 4 });
    await sees([...over, cancel], {
      status: 'handed_to_platform',
      undo: 'pending',
      next_action_at: instant(4),
      applied_revision: 4,
    });
    const move = target('TargetUndoRequested', { ...none, then: 'reschedule', dueAt: instant(9), jitterSeconds: 0 });
    await sees([...over, move], { undo: 'moving', applied_revision: 0, due_at: due });
    await sees([...over, move, cancel], { undo: 'pending', applied_revision: 4 });
    const failedUndo = target('TargetUndoFailed', { then: 'cancel', failure });
    await sees([...over, cancel, failedUndo], { status: 'handed_to_platform', undo: 'failed', next_action_at: due });
    const canceled = target('TargetCanceled', { reason: 'requested', postRevision: null });
    await sees([...over, cancel, canceled], { status: 'canceled', undo: 'done', next_action_at: null });
    await sees([canceled], { status: 'canceled', undo: null });
    // Canceled during the hand-over, or after its answer was lost.
    await sees([started, cancel], { status: 'publishing', undo: 'pending', applied_revision: 4 });
    await sees([started, cancel, handed], {
      status: 'handed_to_platform',
      undo: 'pending',
      next_action_at: instant(4),
      applied_revision: 4,
    });
    await sees([started, cancel, canceled], { status: 'canceled', undo: 'done', next_action_at: null });
    const moved = target('TargetRescheduled', { dueAt: instant(9), scheduledLocal: null, jitterSeconds: 0 });
    await sees([...over, move, moved], {
      status: 'pending',
      undo: 'done',
      due_at: instant(9),
      next_action_at: instant(5),
    });
    await sees([...over, move, moved, managed], { ...byUs, undo: 'done', next_action_at: instant(9) });
    await sees([moved], { status: 'pending', undo: null });
    const other = { ...claim, nativeId: 'n', dueAt: instant(9), scheduledLocal: '2026-08-01T09:00', jitterSeconds: 7 };
    await sees([...over, target('TargetOverdue', { dueAt: due }), move, target('TargetNativeTimeChanged', other)], {
      status: 'handed_to_platform',
      undo: 'done',
      due_at: instant(9),
      next_action_at: instant(9),
      scheduled_local: '2026-08-01T09:00',
      jitter_seconds: 7,
      overdue: false,
    });
    const zone = { timezone: 'Europe/Berlin', scheduleMode: 'native', scheduleModeReason: null } as const;
    const revise = target('TargetUndoRequested', {
      ...{ ...none, then: 'revise', postRevision: 6, dueAt: instant(9), jitterSeconds: 7, revised: zone },
    });
    await sees([...over, revise], { undo: 'moving', post_revision: 0, applied_revision: 6, due_at: due });
    await sees([...over, revise, target('TargetNativeRevised', { ...other, postRevision: 6, ...zone })], {
      ...{ status: 'handed_to_platform', undo: 'done', due_at: instant(9), next_action_at: instant(9) },
      ...{ scheduled_local: '2026-08-01T09:00', timezone: 'Europe/Berlin', jitter_seconds: 7 },
      ...{ post_revision: 6, applied_revision: 6, schedule_mode: 'native', schedule_mode_reason: null },
    });
    const taken = target('TargetRevised', {
      ...zone,
      postRevision: 6,
      dueAt: instant(9),
      scheduledLocal: null,
      jitterSeconds: 7,
    });
    await sees([...over, revise, taken], {
      ...{ status: 'pending', undo: 'done', post_revision: 6, due_at: instant(9), next_action_at: instant(5) },
    });
  });

  t('shape 1 has what a network processes as an attempt under way that asks nothing of its workers', async () => {
    const { id, a, plan, fanOut, targetA: target } = scheduled();
    const [first] = fanOut;
    assert.ok(first !== undefined);
    const codec = new EventCodec(new TestKeys());
    const rowAfter = async (...events: readonly Given[]) => {
      const decoded = await history([plan, first, ...events], { codec, workspaceId: id });
      return rowOf(
        targetsOfShape1,
        decoded.filter(({ stream }) => stream === `target-${a}`),
      );
    };
    const started = target('TargetPublishStarted', claim);
    const accepted = target('TargetAcceptedByPlatform', {
      ...{ ...claim, handle: { id: 'h1' }, askAt: instant(11), until: instant(40) },
    });
    const shown = await rowAfter(started, accepted);
    assert.deepEqual([shown?.status, shown?.next_action_at, shown?.revision], ['publishing', null, 2]);
    assert.equal((await rowAfter(started, accepted, target('TargetPublished', out)))?.status, 'published');
    const newer = ['processing_until', 'follow_ups', 'after_step_issues'];
    const columns = Object.keys(postTargets.columns).filter((name) => !newer.includes(name));
    assert.deepEqual(Object.keys(targetsOfShape1.columns), columns);
  });

  t('shape 1 knows no cover: a worker that cannot set it is called for the comment alone', async () => {
    const { id, a, plan, fanOut, targetA: target } = scheduled();
    const [first] = fanOut;
    assert.ok(first !== undefined);
    const codec = new EventCodec(new TestKeys());
    const cover = (type: string, of: object) => target(`TargetAfterStep${type}`, { step: 'cover', ...of });
    const given = [
      target('TargetPublishStarted', claim),
      target('TargetPublished', out),
      cover('Scheduled', { try: 1, dueAt: instant(80), refusal: null }),
      target('TargetFirstCommentScheduled', { try: 1, dueAt: instant(91), refusal: null }),
      cover('Started', { try: 1, deadline: instant(82) }),
      cover('Completed', {}),
    ];
    const decoded = await history([plan, first, ...given], { codec, workspaceId: id });
    const own = decoded.filter(({ stream }) => stream === `target-${a}`);
    for (const upTo of [own.length - 2, own.length]) {
      const row = rowOf(targetsOfShape1, own.slice(0, upTo));
      assert.deepEqual([row?.next_action_at, row?.revision], [instant(91), upTo - 1]);
    }
  });

  everyEventIsProjected(t, 'target');
});

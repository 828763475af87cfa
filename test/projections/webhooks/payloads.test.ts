import { deepEqual } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import { approvalTooLate, notShown } from '#domain/publish-failures.ts';
import { published, unpublished } from '#projections/webhooks/types.ts';
import { EventCodec, personalMembers } from '#runtime/eventing/codec.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { eventTypes } from '#schemas/http/webhook-events.ts';
import { idOf } from '#schemas/topics.ts';
import { plannedPublicTypes } from '#test/architecture/planned.ts';
import { bodyBytes, eventOf } from '#test/bench/webhooks/feed.ts';
import { fittingProbe } from '#test/support/assets.ts';
import { covered, given, histories, maxBytes, personal } from '#test/support/payloads.ts';
import { type Given, instant, TestKeys } from '#test/support/projecting.ts';
import { campaignFields, clientFields, failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

/** Every event that is published, and with what data. */

const on =
  (kind: string, id: string) =>
  (type: string, data: object = {}): Given => ({ stream: `${kind}-${id}`, type, data });
const at = (minute: number): string => new Date(Date.UTC(2026, 2, 2, 8, minute)).toISOString();
const uuids = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

suite('published: targets', (t) => {
  const [targetId = '', postId = '', accountId = '', clientId = ''] = uuids(4);
  const ids = { targetId, postId, accountId, clientId, platform: 'x' };
  const target = on('target', targetId);
  const plan = planned({ targetId, accountId, clientId, dueAt: at(0), jitterSeconds: 30 });
  const scheduled = target('TargetScheduled', { ...plan, postId, postRevision: 0 });
  const claim = { attempt: 1, takeover: 0 };
  const started = target('TargetPublishStarted', claim);
  const unknown = target('TargetOutcomeUnknown', { ...claim, failure, reconcileAt: at(9) });
  const there = { externalId: 'x-1', permalink: 'https://x.com/1', publishedAt: at(1) };
  const time = { scheduledAt: at(30), scheduledLocal: '2026-03-02T09:30', jitterSeconds: 7 };
  const moved = { dueAt: at(30), scheduledLocal: '2026-03-02T09:30', jitterSeconds: 7 };
  const mode = { timezone: 'Europe/Berlin', scheduleMode: 'managed', scheduleModeReason: null };

  t('scheduled, moved, held, released, revised, canceled', async () => {
    await given()
      .when(scheduled)
      .gives({
        'target.scheduled': {
          ...ids,
          scheduledAt: at(0),
          scheduledLocal: null,
          jitterSeconds: 30,
          timezone: 'UTC',
          scheduleMode: 'managed',
          scheduleModeReason: null,
        },
      });
    const rescheduled = target('TargetRescheduled', moved);
    await given(scheduled)
      .when(rescheduled)
      .gives({ 'target.rescheduled': { ...ids, ...time, previousScheduledAt: at(0) } });
    await given(scheduled, rescheduled)
      .when(target('TargetRescheduled', { ...moved, dueAt: at(40) }))
      .gives({ 'target.rescheduled': { ...ids, ...time, scheduledAt: at(40), previousScheduledAt: at(30) } });
    const held = target('TargetHeld', { postRevision: 0 });
    await given(scheduled, rescheduled)
      .when(held)
      .gives({ 'target.held': { ...ids, scheduledAt: at(30) } });
    await given(scheduled, held)
      .when(target('TargetReleased', { postRevision: 0, dueAt: at(20) }))
      .gives({ 'target.released': { ...ids, scheduledAt: at(20) } });
    await given(scheduled, held)
      .when(target('TargetApprovalLapsed', { dueAt: at(20) }))
      .gives({ 'target.failed': { ...ids, attempts: 0, failure: approvalTooLate, settledBy: null } });
    await given(scheduled)
      .when(target('TargetRevised', { postRevision: 4, ...moved, ...mode }))
      .gives({ 'target.revised': { ...ids, ...time, postRevision: 4 } });
    for (const reason of [
      'requested',
      'client_archived',
      'approval_rejected',
      'post_canceled',
      'account_disconnected',
    ]) {
      await given(scheduled)
        .when(target('TargetCanceled', { reason, postRevision: null }))
        .gives({ 'target.canceled': { ...ids, reason } });
    }
  });

  t('an attempt: begun, published, failed, deferred; its inner steps are not public', async () => {
    await given(scheduled)
      .when(started)
      .gives({ 'target.publishing': { ...ids, attempts: 1 } });
    await given(scheduled, started)
      .when(target('TargetPublishCheckpointed', { ...claim, step: 'boundary', data: {}, deadline: at(2) }))
      .gives({});
    await given(scheduled, started)
      .when(target('TargetSegmentPublished', { ...claim, ...there, segment: { index: 0, of: 2 } }))
      .gives({});
    await given(scheduled, started)
      .when(target('TargetPublishTakenOver', { attempt: 1, takeover: 1 }))
      .gives({});
    await given(scheduled, started)
      .when(target('TargetPublished', { ...claim, ...there }))
      .gives({ 'target.published': { ...ids, attempts: 1, ...there, settledBy: null } });
    const cause = { ...failure, platformCode: '503', platformMessage: 'over capacity', mediaId: randomUUID() };
    const whole = { ...ids, attempts: 2, failure: cause };
    const second = { attempt: 2, takeover: 1, failure: cause };
    await given(scheduled, started)
      .when(target('TargetFailed', second))
      .gives({ 'target.failed': { ...whole, settledBy: null } });
    await given(scheduled, started)
      .when(target('TargetRateLimited', { ...second, retryAt: at(15) }))
      .gives({ 'target.rate_limited': { ...whole, scheduledAt: at(0), retryAt: at(15) } });
    await given(scheduled, started)
      .when(target('TargetPublishDeferred', { ...second, retryAt: at(15) }))
      .gives({ 'target.deferred': { ...whole, scheduledAt: at(0), retryAt: at(15) } });
    await given(scheduled, started)
      .when(target('TargetOutcomeUnknown', { ...second, reconcileAt: at(15) }))
      .gives({ 'target.outcome_unknown': { ...whole, reason: 'no_answer', reconcileAt: at(15) } });
    await given(scheduled, started)
      .when(target('TargetOutcomeUnknown', { ...second, reconcileAt: at(15), reason: 'restored' }))
      .gives({ 'target.outcome_unknown': { ...whole, reason: 'restored', reconcileAt: at(15) } });
  });

  t('a post that its network processes, and one that it never showed', async () => {
    const until = at(20);
    const accepted = target('TargetAcceptedByPlatform', { ...claim, handle: { id: 'secret' }, askAt: at(2), until });
    await given(scheduled, started)
      .when(accepted)
      .gives({ 'target.processing': { ...ids, attempts: 1, askAt: at(2), processingUntil: until } });
    await given(scheduled, started, accepted)
      .when(target('TargetOutcomeUnknown', { ...claim, failure: notShown, reconcileAt: at(21) }))
      .gives({
        'target.outcome_unknown': {
          ...{ ...ids, attempts: 1, failure: notShown, reason: 'not_shown', reconcileAt: at(21) },
        },
      });
    await given(scheduled, started, unknown, accepted)
      .when(target('TargetRequeued', { by: 'schedule', dueAt: at(9) }))
      .gives({
        'target.requeued': {
          ...{ ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(9), reason: 'retry_time_reached' },
        },
      });
  });

  t('a hand-over, its undo, and a target that is managed after all', async () => {
    const handed = target('TargetHandedToPlatform', { ...claim, nativeId: 'n-1', dueAt: at(0) });
    await given(scheduled, started)
      .when(handed)
      .gives({ 'target.handed_to_platform': { ...ids, attempts: 1, nativeId: 'n-1', scheduledAt: at(0) } });
    const none = { reason: null, postRevision: null, dueAt: null, scheduledLocal: null, jitterSeconds: null };
    await given(scheduled, started, handed)
      .when(target('TargetUndoRequested', { ...none, then: 'cancel', reason: 'requested' }))
      .gives({
        'target.undo_requested': {
          ...ids,
          ...{ then: 'cancel', reason: 'requested', scheduledAt: at(0), newScheduledAt: null },
        },
      });
    await given(scheduled, started, handed)
      .when(target('TargetUndoRequested', { ...none, then: 'reschedule', dueAt: at(9), jitterSeconds: 0 }))
      .gives({
        'target.undo_requested': {
          ...ids,
          ...{ then: 'reschedule', reason: null, scheduledAt: at(0), newScheduledAt: at(9) },
        },
      });
    await given(scheduled, started, handed)
      .when(target('TargetUndoFailed', { then: 'cancel', failure }))
      .gives({ 'target.undo_failed': { ...ids, then: 'cancel', failure } });
    const mode = { scheduleMode: 'managed', scheduleModeReason: 'outside_native_window' };
    await given(scheduled)
      .when(target('TargetScheduleModeChanged', mode))
      .gives({ 'target.schedule_mode_changed': { ...ids, ...mode, scheduledAt: at(0) } });
  });

  t('an unknown outcome that was reconciled', async () => {
    const nothing = { externalId: null, permalink: null, publishedAt: null, failure: null };
    await given(scheduled, started, unknown)
      .when(target('TargetAbsenceObserved', { ...claim, observedAt: at(20) }))
      .gives({});
    for (const [by, reason] of [
      ['reconcile', 'proven_absent'],
      ['admin', 'proven_absent'],
      ['policy', 'assumed_absent'],
    ]) {
      const settled = (over: object) => target('TargetOutcomeSettled', { ...nothing, by, ...over });
      const history = given(scheduled, started, unknown);
      await history
        .when(settled({ outcome: 'published', ...there }))
        .gives({ 'target.published': { ...ids, attempts: 1, ...there, settledBy: by } });
      await history.when({ ...settled({ outcome: 'published' }), at: at(50) }).gives({
        'target.published': {
          ...ids,
          attempts: 1,
          externalId: null,
          permalink: null,
          publishedAt: at(50),
          settledBy: by,
        },
      });
      await history
        .when(settled({ outcome: 'failed', failure }))
        .gives({ 'target.failed': { ...ids, attempts: 1, failure, settledBy: by } });
      await history.when({ ...settled({ outcome: 'absent' }), at: at(50) }).gives({
        'target.requeued': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(50), reason },
      });
    }
  });

  t('a retried target', async () => {
    const limited = target('TargetRateLimited', { ...claim, retryAt: at(15), failure });
    await given(scheduled).when(target('TargetPlaceLapsed', {})).gives({});
    await given(scheduled)
      .when(target('TargetOverdue', { dueAt: at(0) }))
      .gives({ 'target.overdue': { ...ids, attempts: 0, scheduledAt: at(0), retryAt: null, deferredSince: null } });
    await given(scheduled, started, limited)
      .when(target('TargetOverdue', { dueAt: at(15) }))
      .gives({ 'target.overdue': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(15), deferredSince: null } });
    await given(scheduled, started, limited)
      .when(target('TargetOverdue', { dueAt: at(15), deferredSince: at(2) }))
      .gives({ 'target.overdue': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(15), deferredSince: at(2) } });
    for (const [by, reason] of [
      ['schedule', 'retry_time_reached'],
      ['retry', 'retry_requested'],
      ['revise', 'revised'],
    ]) {
      await given(scheduled, started, limited)
        .when(target('TargetRequeued', { by, dueAt: at(15) }))
        .gives({ 'target.requeued': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(15), reason } });
    }
    const unknown = target('TargetOutcomeUnknown', { ...claim, failure, reconcileAt: at(3) });
    const segment = target('TargetSegmentPublished', { ...claim, ...there, segment: { index: 0, of: 2 } });
    await given(scheduled, started, unknown, segment)
      .when(target('TargetRequeued', { by: 'schedule', dueAt: at(15) }))
      .gives({
        'target.requeued': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(15), reason: 'segment_found' },
      });
    // Refused before it was begun, an attempt counts.
    await given(scheduled, target('TargetFailed', { ...claim, failure }))
      .when(target('TargetRequeued', { by: 'retry', dueAt: at(15) }))
      .gives({
        'target.requeued': { ...ids, attempts: 1, scheduledAt: at(0), retryAt: at(15), reason: 'retry_requested' },
      });
    await given(scheduled, started, target('TargetPublishDeferred', { ...claim, retryAt: at(12), failure }))
      .when(target('TargetRescheduled', moved))
      .gives({ 'target.rescheduled': { ...ids, ...time, previousScheduledAt: at(0) } });
    await given(scheduled, started, target('TargetHandedToPlatform', { ...claim, nativeId: 'n1', dueAt: at(0) }))
      .when(target('TargetNativeTimeChanged', { ...claim, nativeId: 'n1', ...moved }))
      .gives({ 'target.rescheduled': { ...ids, ...time, previousScheduledAt: at(0) } });
    const native = { timezone: 'UTC', scheduleMode: 'native', scheduleModeReason: null };
    await given(scheduled, started, target('TargetHandedToPlatform', { ...claim, nativeId: 'n1', dueAt: at(0) }))
      .when(target('TargetNativeRevised', { ...claim, nativeId: 'n1', postRevision: 1, ...native, ...moved }))
      .gives({ 'target.revised': { ...ids, ...time, postRevision: 1 } });
  });

  t('events after the publication', async () => {
    const done = target('TargetPublished', { ...claim, ...there });
    await given(scheduled, started, done)
      .when(target('TargetFirstCommentScheduled', { try: 1, dueAt: at(90), refusal: null }))
      .gives({});
    await given(scheduled, started, done)
      .when(target('TargetFirstCommentStarted', { try: 1, deadline: at(95) }))
      .gives({});
    await given(scheduled, started, done)
      .when(target('TargetFirstCommentPosted', { externalId: 'x-2' }))
      .gives({ 'target.first_comment_posted': { ...ids, commentExternalId: 'x-2' } });
    const issue = { code: 'platform_rejected', message: 'Too long.', platformCode: '400' };
    await given(scheduled, started, done)
      .when(target('TargetFirstCommentFailed', issue))
      .gives({ 'target.first_comment_failed': { ...ids, firstCommentIssue: issue } });
    for (const silent of [
      target('TargetAfterStepScheduled', { step: 'cover', try: 1, dueAt: at(90), refusal: null }),
      target('TargetAfterStepStarted', { step: 'cover', try: 1, deadline: at(95) }),
      target('TargetAfterStepCompleted', { step: 'cover' }),
    ]) {
      await given(scheduled, started, done).when(silent).gives({});
    }
    await given(scheduled, started, done)
      .when(target('TargetAfterStepFailed', { step: 'cover', ...issue }))
      .gives({ 'target.after_step_failed': { ...ids, afterStepIssue: { step: 'cover', ...issue } } });
    const removed = target('TargetRemovedOnPlatform', { observedAt: at(90) });
    await given(scheduled, started, done)
      .when(removed)
      .gives({ 'target.removed': { ...ids, externalId: 'x-1', observedAt: at(90) } });
    const settled = { ...there, externalId: null, failure: null, by: 'admin', outcome: 'published' };
    await given(scheduled, started, unknown, target('TargetOutcomeSettled', settled))
      .when(removed)
      .gives({ 'target.removed': { ...ids, externalId: null, observedAt: at(90) } });
  });

  t('a payload stays small whatever the network answers', async () => {
    const failed = (message: string, platformMessage: string) =>
      target('TargetFailed', { ...claim, failure: { ...failure, message, platformMessage } });
    const whole = { ...failure, message: '語'.repeat(2000), platformMessage: '語'.repeat(2000) };
    await given(scheduled, started)
      .when(failed(whole.message, whole.platformMessage))
      .gives({ 'target.failed': { ...ids, attempts: 1, failure: whole, settledBy: null } });
    // JSON writes these six times as long.
    const bells = '\u0007'.repeat(2000);
    await given(scheduled, started)
      .when(failed(bells, bells))
      .gives({
        'target.failed': {
          ...ids,
          attempts: 1,
          failure: { ...failure, message: bells, platformMessage: bells.slice(0, 500) },
          settledBy: null,
        },
      });
  });
});

suite('published: posts', (t) => {
  const [id = '', clientId = '', campaignId = '', ...rest] = uuids(3 + 500);
  const externalRef = 'CMS-1042';
  const ids = { postId: id, clientId };
  const post = on('post', id);
  const createdBy = { type: 'member', id: randomUUID() };
  const mediaIds = uuids(2);
  const body = postBody({ content: 'Hello', mediaIds, campaignId, externalRef });
  const composed = { excerpt: 'Hello', mediaIds, campaignId, externalRef };
  const targets = (count: number) =>
    rest.slice(0, count).map((targetId, index) =>
      planned({
        targetId,
        accountId: randomUUID(),
        clientId,
        platform: index % 2 === 0 ? 'x' : 'bluesky',
        // The last one of the list is not the latest.
        dueAt: at(index === 1 ? 40 : 20 - index / 60),
      }),
    );
  const scheduled = (count: number, number = 1) =>
    post('PostScheduled', { clientId, createdBy, body, plan: { number, targets: targets(count) } });
  const drafted = post('PostDrafted', { clientId, createdBy, body });
  const settled = (index: number, outcome: string) =>
    post('PostTargetSettled', {
      targetId: rest[index],
      targetRevision: 5,
      outcome,
      publishedAt: outcome === 'published' ? at(21) : null,
    });

  t('scheduled at once: created and scheduled', async () => {
    await given()
      .when(scheduled(3))
      .gives({
        'post.created': {
          ...ids,
          status: 'scheduled',
          createdBy,
          ...composed,
          targetCount: 3,
          scheduledAt: targets(3)[2]?.dueAt ?? '',
        },
        'post.scheduled': {
          ...ids,
          plan: 1,
          campaignId,
          externalRef,
          scheduledAt: targets(3)[2]?.dueAt ?? '',
          lastScheduledAt: at(40),
          platforms: ['bluesky', 'x'],
          targetCount: 3,
        },
      });
  });

  t('revised: the newer content, for the targets that go out with it; failed ones count again', async () => {
    const named = [rest[0] ?? '', rest[1] ?? '', randomUUID()];
    const newer = postBody({ content: 'Newer', campaignId, externalRef });
    const revised = post('PostRevised', { body: newer, changed: ['content'], targetIds: named, times: null });
    await given(scheduled(3), settled(0, 'failed'))
      .when(revised)
      .gives({
        'post.revised': {
          ...ids,
          changed: ['content'],
          held: false,
          excerpt: 'Newer',
          mediaIds: [],
          campaignId,
          externalRef,
          targetCount: 3,
        },
      });
    await given(scheduled(3))
      .when(post('PostRevised', { body: newer, changed: ['content'], targetIds: named, times: null, held: true }))
      .gives({
        'post.revised': {
          ...{ ...ids, changed: ['content'], held: true, excerpt: 'Newer', mediaIds: [] },
          ...{ campaignId, externalRef, targetCount: 3 },
        },
      });
    const all = [scheduled(3), settled(0, 'failed'), settled(1, 'canceled'), revised, settled(2, 'published')];
    await given(...all)
      .when(post('PostPublished', { publishedAt: at(21) }))
      .gives({
        'post.published': {
          ...ids,
          campaignId,
          externalRef,
          counts: { total: 3, published: 1, failed: 0, canceled: 1 },
          publishedAt: at(21),
        },
      });
  });

  t('another campaign, with the one before; later events name the new one', async () => {
    const [next = ''] = uuids(1);
    const joined = post('PostCampaignChanged', { campaignId: next, previousCampaignId: campaignId });
    await given(drafted)
      .when(joined)
      .gives({ 'post.campaign_changed': { ...ids, campaignId: next, previousCampaignId: campaignId } });
    await given(drafted, joined)
      .when(post('PostCampaignChanged', { campaignId: null, previousCampaignId: next }))
      .gives({ 'post.campaign_changed': { ...ids, campaignId: null, previousCampaignId: next } });
    await given(drafted, joined)
      .when(post('PostDiscarded'))
      .gives({ 'post.discarded': { ...ids, campaignId: next, externalRef } });
  });

  t('recycling: set, cleared or stopped, a copy made or refused', async () => {
    const settings = { enabled: true, everyDays: 7, times: null, until: null };
    const set = post('PostRecycleSet', { ...settings, setBy: { type: 'apikey', id: 'k1' }, needsApproval: false });
    await given(scheduled(1))
      .when(set)
      .gives({ 'post.recycle_changed': { ...ids, ...settings, stoppedReason: null } });
    const none = { enabled: false, everyDays: null, times: null, until: null };
    for (const reason of ['requested', 'times', 'until', 'client_archived', 'account_disconnected', 'failures']) {
      const stoppedReason = reason === 'requested' ? null : reason;
      await given(scheduled(1), set)
        .when(post('PostRecycleCleared', { reason }))
        .gives({ 'post.recycle_changed': { ...ids, ...none, stoppedReason } });
    }
    await given(scheduled(1), set)
      .when(post('PostRecyclePlanned', { day: 7, dueAt: at(30) }))
      .gives({});
    const copy = { occurrence: 1, newPostId: randomUUID(), scheduledAt: at(30) };
    await given(scheduled(1), set)
      .when(post('PostRecycled', { ...copy, day: 7 }))
      .gives({ 'post.recycled': { ...ids, ...copy } });
    const refusal = { code: 'no_targets', message: 'None is left.' };
    await given(scheduled(1), set)
      .when(post('PostRecycleFailed', { ...refusal, day: 7 }))
      .gives({ 'post.recycle_failed': { ...ids, ...refusal } });
  });

  t('a draft that is deleted: discarded', async () => {
    await given(drafted)
      .when(post('PostDiscarded'))
      .gives({ 'post.discarded': { ...ids, campaignId, externalRef } });
  });

  t('a draft: created, updated, then scheduled', async () => {
    await given()
      .when(drafted)
      .gives({
        'post.created': { ...ids, status: 'draft', createdBy, ...composed, targetCount: 0, scheduledAt: null },
      });
    const replaced = post('DraftReplaced', { body: postBody({ content: 'Bye' }) });
    await given(drafted)
      .when(replaced)
      .gives({ 'post.updated': { ...ids, excerpt: 'Bye', mediaIds: [], campaignId: null, externalRef: null } });
    await given(drafted, replaced)
      .when(scheduled(1, 2))
      .gives({
        'post.scheduled': {
          ...ids,
          plan: 2,
          campaignId,
          externalRef,
          scheduledAt: at(20),
          lastScheduledAt: at(20),
          platforms: ['x'],
          targetCount: 1,
        },
      });
  });

  t('a post that needs an approval: created, submitted, released or returned', async () => {
    const held = (number: number, count: number): Given => {
      const plan = { number, targets: targets(count) };
      return post('PostScheduled', { clientId, createdBy, body, plan, held: true });
    };
    const [approvalId = ''] = uuids(1);
    const submittedBy = { type: 'apikey', id: 'k1' };
    const hash = 'a'.repeat(64);
    const named = rest.slice(0, 2);
    const submitted = post('PostSubmittedForApproval', { approvalId, request: 1, hash, submittedBy, targetIds: named });
    await given(drafted)
      .when(held(3, 2))
      .gives({
        'post.scheduled': {
          ...{ ...ids, plan: 3, campaignId, externalRef, scheduledAt: at(20), lastScheduledAt: at(40) },
          ...{ platforms: ['bluesky', 'x'], targetCount: 2 },
        },
      });
    await given(held(3, 2))
      .when(submitted)
      .gives({ 'post.submitted': { ...ids, approvalId, plan: 3, submittedBy, targetCount: 2 } });
    const decided = { decidedBy: { type: 'guest', id: 'link' }, comment: 'Lovely.' } as const;
    const silent = { ...decided, comment: null };
    const released = { ...post('PostReleased', { approvalId, hash, ...decided }), at: at(5) };
    await given(held(3, 2), submitted)
      .when(released)
      .gives({ 'post.released': { ...ids, approvalId, ...decided, scheduledAt: at(20), targetCount: 2 } });
    const { timezone, scheduledLocal, jitterSeconds, scheduleMode, scheduleModeReason } = planned({
      ...{ targetId: '', accountId: '', clientId },
    });
    const time = { timezone, scheduledLocal, jitterSeconds, scheduleMode, scheduleModeReason };
    const times = [at(40), at(50)].map((dueAt) => ({ ...time, dueAt }));
    const revised = post('PostRevised', { body, changed: ['schedule'], targetIds: named, times });
    await given(held(3, 2), submitted, revised, submitted)
      .when({ ...post('PostReleased', { approvalId, hash, ...silent }), at: at(45) })
      .gives({ 'post.released': { ...ids, approvalId, ...silent, scheduledAt: at(45), targetCount: 2 } });
    const asked = { ...decided, comment: 'Shorter.' };
    await given(held(3, 2), submitted)
      .when(post('PostReturnedToDraft', { approvalId, ...asked }))
      .gives({ 'post.returned_to_draft': { ...ids, approvalId, ...asked } });
    await given(held(3, 2), submitted)
      .when(post('PostReturnedToDraft', { approvalId, ...silent }))
      .gives({ 'post.returned_to_draft': { ...ids, approvalId, ...silent } });
  });

  t('a text is cut after whole characters', async () => {
    const excerptOf = async (over: object, excerpt: string) =>
      given(drafted)
        .when(post('DraftReplaced', { body: postBody(over) }))
        .gives({ 'post.updated': { ...ids, excerpt, mediaIds: [], campaignId: null, externalRef: null } });
    const long = `${'a'.repeat(279)}🎈 tail`;
    await excerptOf({ content: long }, 'a'.repeat(279));
    await excerptOf({ content: `b${long}` }, `b${'a'.repeat(279)}`);
    await excerptOf({ content: `${'a'.repeat(278)}🎈 tail` }, `${'a'.repeat(278)}🎈`);
    const segments = ['', 'first', 'second'].map((content) => ({ content, mediaIds: [] }));
    await excerptOf({ content: '', thread: { segments } }, 'first');
    await excerptOf({ content: 'base', thread: { segments } }, 'base');
    await excerptOf({ content: '' }, '');
  });

  t('events of the post that repeat events of its targets are not public', async () => {
    await given(scheduled(2))
      .when(
        post('PostTargetsChanged', {
          change: { kind: 'cancel', reason: 'client_archived' },
          targetIds: rest.slice(0, 2),
        }),
      )
      .gives({});
    await given(scheduled(2))
      .when(post('PostTargetsSkipped', { intentRevision: 1, targetIds: rest.slice(0, 1), reason: 'publishing' }))
      .gives({});
    await given(scheduled(2)).when(post('PostExternalRefClaimLapsed', { externalRef })).gives({});
    await given(scheduled(2)).when(post('PostAbandoned', {})).gives({});
    await given(scheduled(2)).when(settled(0, 'failed')).gives({});
    await given(scheduled(2), settled(0, 'failed'))
      .when(post('PostTargetReopened', { targetId: rest[0], targetRevision: 6 }))
      .gives({});
  });

  t('the outcome of the post: published, partially published, failed, canceled', async () => {
    const publishedAt = at(21);
    await given(scheduled(3), settled(0, 'published'), settled(1, 'canceled'), settled(2, 'published'))
      .when(post('PostPublished', { publishedAt }))
      .gives({
        'post.published': {
          ...ids,
          campaignId,
          externalRef,
          counts: { total: 3, published: 2, failed: 0, canceled: 1 },
          publishedAt,
        },
      });
    await given(scheduled(3), settled(2, 'failed'), settled(1, 'published'), settled(0, 'failed'))
      .when(post('PostPartiallyPublished', { publishedAt }))
      .gives({
        'post.partially_published': {
          ...ids,
          campaignId,
          externalRef,
          counts: { total: 3, published: 1, failed: 2, canceled: 0 },
          publishedAt,
          failedTargetIds: [rest[0], rest[2]],
        },
      });
    const reopened = post('PostTargetReopened', { targetId: rest[0], targetRevision: 6 });
    await given(scheduled(2), settled(0, 'failed'), settled(1, 'published'), reopened, settled(0, 'published'))
      .when(post('PostPublished', { publishedAt }))
      .gives({
        'post.published': {
          ...ids,
          campaignId,
          externalRef,
          counts: { total: 2, published: 2, failed: 0, canceled: 0 },
          publishedAt,
        },
      });
    for (const reason of ['targets_canceled', 'client_archived', 'approval_rejected', 'account_disconnected']) {
      await given(scheduled(2), settled(0, 'canceled'), settled(1, 'canceled'))
        .when(post('PostCanceled', { reason }))
        .gives({ 'post.canceled': { ...ids, campaignId, externalRef, reason, targetCount: 2 } });
    }
    // A second plan begins anew.
    await given(scheduled(2), settled(0, 'canceled'), settled(1, 'canceled'), scheduled(1, 2), settled(0, 'failed'))
      .when(post('PostFailed'))
      .gives({
        'post.failed': {
          ...ids,
          campaignId,
          externalRef,
          counts: { total: 1, published: 0, failed: 1, canceled: 0 },
          failedTargetIds: [rest[0]],
        },
      });
  });

  t(`a post of 500 targets stays below ${maxBytes} bytes`, async () => {
    const failed = Array.from({ length: 500 }, (_, index) => settled(index, 'failed'));
    const counts = { total: 500, published: 0, failed: 500, canceled: 0 };
    await given(scheduled(500), ...failed)
      .when(post('PostFailed'))
      .gives({ 'post.failed': { ...ids, campaignId, externalRef, counts, failedTargetIds: rest.slice(0, 500) } });
    await given(scheduled(500), ...failed.slice(0, 499), settled(499, 'published'))
      .when(post('PostPartiallyPublished', { publishedAt: at(21) }))
      .gives({
        'post.partially_published': {
          ...ids,
          campaignId,
          externalRef,
          counts: { ...counts, failed: 499, published: 1 },
          publishedAt: at(21),
          failedTargetIds: rest.slice(0, 499),
        },
      });
  });
});

suite('published: reports', (t) => {
  const [reportId = '', runId = '', clientId = ''] = uuids(3);
  const report = on('report', reportId);
  const defined = (filters: object) =>
    report('ReportDefined', {
      definition: {
        ...{ name: 'Monthly', kind: 'workspace', window: 'last_30_days', formats: ['pdf', 'csv'], schedule: null },
        filters: { clientId: null, socialAccountId: null, platform: null, ...filters },
      },
    });
  const requested = report('ReportRunRequested', {
    ...{ runId, from: '2026-02-01', to: '2026-03-02', by: 'schedule', formats: ['pdf', 'csv'] },
  });
  const file = (format: string, sha256: string) => ({
    ...{ format, key: `w/reports/${runId}/canary.${format}`, contentType: 'text/plain', bytes: 7 },
    sha256: sha256.repeat(64),
  });
  const exports = [file('pdf', 'a'), file('csv', 'b')];

  t('a run ends with its first export, without the place of the file, or with its failure', async () => {
    const reported = { reportId, runId, clientId };
    const completeness = { complete: false, provisionalDays: ['2026-03-02'] };
    await given(defined({ clientId }), requested)
      .when(report('ReportRunCompleted', { runId, asOf: at(0), exports, completeness }))
      .gives({
        'report.run.completed': {
          ...{ ...reported, format: 'pdf', asOf: at(0), bytes: 7 },
          ...{ sha256: 'a'.repeat(64), completeness },
        },
      });
    await given(defined({}), requested)
      .when(report('ReportRunCompleted', { runId, asOf: null, exports: exports.slice(1), completeness }))
      .gives({
        'report.run.completed': {
          ...{ ...reported, clientId: null, format: 'csv', asOf: null, bytes: 7 },
          ...{ sha256: 'b'.repeat(64), completeness },
        },
      });
    const failure = { code: 'report_failed', message: 'The report could not be made.' };
    await given(defined({}), defined({ clientId }), requested)
      .when(report('ReportRunFailed', { runId, ...failure }))
      .gives({ 'report.run.failed': { ...reported, failure } });
  });

  t('a run names the client of its report at the time of the request', async () => {
    const failure = { code: 'report_failed', message: 'The report could not be made.' };
    await given(defined({ clientId }), requested, defined({}))
      .when(report('ReportRunFailed', { runId, ...failure }))
      .gives({ 'report.run.failed': { reportId, runId, clientId, failure } });
  });

  t('definition, request and removal are not public', async () => {
    await given().when(defined({})).gives({});
    await given(defined({})).when(requested).gives({});
    await given(defined({})).when(report('ReportRemoved', {})).gives({});
  });
});

suite('published: campaigns', (t) => {
  const [campaignId = '', clientId = '', ...targetIds] = uuids(4);
  const campaign = on('campaign', campaignId);
  const created = campaign('CampaignCreated', { clientId, ...campaignFields });
  const { name, startsOn, endsOn } = campaignFields;

  t('created, updated with the names of what changed, deleted', async () => {
    const shown = { name, startsOn, endsOn };
    await given()
      .when(created)
      .gives({ 'campaign.created': { campaignId, clientId, ...shown } });
    await given()
      .when(campaign('CampaignCreated', { clientId: null, ...campaignFields }))
      .gives({ 'campaign.created': { campaignId, clientId: null, ...shown } });
    const updated = campaign('CampaignUpdated', { endsOn: null, color: null });
    await given(created)
      .when(updated)
      .gives({ 'campaign.updated': { campaignId, clientId, changed: ['endsOn', 'color'], ...shown, endsOn: null } });
    await given(created, updated)
      .when(campaign('CampaignUpdated', { name: 'Summer' }))
      .gives({
        'campaign.updated': { campaignId, clientId, changed: ['name'], name: 'Summer', startsOn, endsOn: null },
      });
    await given(created).when(campaign('CampaignDeleted')).gives({ 'campaign.deleted': { campaignId, clientId } });
  });

  t('shifted, once every target was moved or passed over, with minutes or days', async () => {
    const shifted = (by: object) => campaign('CampaignShifted', { ...by, targetIds, skipped: 1 });
    for (const by of [
      { minutes: -30, days: null },
      { minutes: null, days: 7 },
    ]) {
      await given(created).when(shifted(by)).gives({});
      await given(created, shifted(by))
        .when(campaign('CampaignShiftCompleted', { shiftRevision: 1, ...by, shifted: 1, skipped: 2, passedOver: [] }))
        .gives({ 'campaign.shifted': { campaignId, clientId, ...by, shifted: 1, skipped: 2 } });
    }
  });
});

suite('published: media', (t) => {
  const [assetId = '', clientId = '', other = '', postId = ''] = uuids(4);
  const asset = on('media', assetId);
  const reported = { assetId, clientId };
  const offer = {
    ...{ fileName: 'table.jpg', clientId: other, folder: null, contentType: 'image/jpeg', bytes: 482_133 },
    ...{ key: 'w/a/upload', expiresAt: at(60) },
  };
  const details = { name: 'Table', clientId, folder: null, altText: null, platforms: ['x'] };
  const offered = asset('MediaUploadOffered', offer);
  const registered = asset('MediaRegistered', details);
  const why = { code: 'media_too_long', message: 'It is longer than X takes videos.' };
  const sha256 = 'a'.repeat(64);
  const [rendition, need] = ['1'.repeat(32), { platform: 'x', use: 'feed' }];
  const seen = { contentType: 'image/jpeg', bytes: 301_772, width: 1_080, height: 1_350, durationMs: null };

  t('registered as announced, imported without a probe; an offer is not public', async () => {
    await given().when(offered).gives({});
    const pending = { ...reported, status: 'pending', registeredAt: instant(1) };
    await given(offered)
      .when(registered)
      .gives({ 'media.registered': { ...pending, contentType: 'image/jpeg', bytes: 482_133 } });
    const url = 'https://user:canary@cdn.example/clip.mov';
    const imported = asset('MediaImportRequested', { url, ...details });
    await given()
      .when(imported)
      .gives({ 'media.registered': { ...pending, registeredAt: instant(0), contentType: null, bytes: null } });
    await given(imported)
      .when(asset('MediaFailed', { failure: why }))
      .gives({ 'media.failed': { ...reported, status: 'failed', failure: why } });
  });

  t('ready without details; failed and quarantined with the reason', async () => {
    await given(offered, registered)
      .when(asset('MediaTranscoded', { poster: null }))
      .gives({ 'media.ready': { assetId, status: 'transcoded' } });
    await given(offered, registered)
      .when(asset('MediaFailed', { failure: why }))
      .gives({ 'media.failed': { ...reported, status: 'failed', failure: why } });
    await given(offered, asset('MediaRegistered', { ...details, clientId: null }))
      .when(asset('MediaQuarantined', { failure: why }))
      .gives({ 'media.quarantined': { assetId, clientId: null, status: 'quarantined', failure: why } });
  });

  t('deleted once, in any state; the removal of files is not public', async () => {
    const deleted = asset('MediaDeleted', {});
    await given(offered, registered)
      .when(deleted)
      .gives({ 'media.deleted': { ...reported, deletedAt: instant(2) } });
    await given(offered, registered, deleted).when(asset('MediaFilesRemoved', {})).gives({});
  });

  t('each rendition with its network and use, never with the place of the file', async () => {
    await given(offered, registered)
      .when(asset('MediaRenditionReady', { ...need, rendition, key: `w/a/${rendition}.jpg`, sha256, ...seen }))
      .gives({ 'media.variant.ready': { ...reported, ...need, ...seen } });
    await given(offered, registered)
      .when(asset('MediaRenditionFailed', { ...need, rendition: null, failure: why }))
      .gives({ 'media.variant.failed': { ...reported, ...need, failure: why } });
  });

  t('steps between are not public', async () => {
    for (const silent of [
      asset('MediaStored', { key: 'w/a/original', contentType: 'image/jpeg', bytes: 1, sha256, kind: 'image' }),
      asset('MediaProbed', { probe: fittingProbe('image') }),
      asset('MediaRenditionsRequested', { needs: [need], for: { kind: 'post', id: postId } }),
      asset('MediaRenditionsPlanned', { initial: true, needs: [{ ...need, rendition: null }], renditions: [] }),
    ]) {
      await given(offered, registered).when(silent).gives({});
    }
  });
});

suite('published: the agency', (t) => {
  t('clients', async () => {
    const [id = ''] = uuids(1);
    const client = on('client', id);
    const { rules, brandVoice, ...shown } = clientFields;
    const created = client('ClientCreated', clientFields);
    await given()
      .when(created)
      .gives({ 'client.created': { clientId: id, ...shown } });
    const renamed = client('ClientUpdated', { name: 'Acme & Co', rules: {} });
    await given(created)
      .when(renamed)
      .gives({ 'client.updated': { clientId: id, changed: ['name', 'rules'], ...shown, name: 'Acme & Co' } });
    await given(created, renamed)
      .when(client('ClientUpdated', { timezone: null, approvalRequired: true }))
      .gives({
        'client.updated': {
          clientId: id,
          changed: ['timezone', 'approvalRequired'],
          ...shown,
          name: 'Acme & Co',
          timezone: null,
          approvalRequired: true,
        },
      });
    await given(created)
      .when(client('ClientArchived'))
      .gives({ 'client.archived': { clientId: id } });
    await given(created)
      .when(client('ClientNameClaimLapsed', { name: 'other' }))
      .gives({});
    await given(created)
      .when(client('ClientErased'))
      .gives({ 'client.erased': { clientId: id } });
  });

  t('requests for approval: made, decided, withdrawn', async () => {
    const [id = '', postId = '', clientId = ''] = uuids(3);
    const approval = on('approval', id);
    const ids = { approvalId: id, postId, clientId };
    const requestedBy = { type: 'apikey', id: 'k1' };
    const about = { postId, clientId, request: 1, postRevision: 1, contentHash: 'a'.repeat(64), requestedBy };
    const requested = approval('ApprovalRequested', { ...about, scheduledAt: at(20) });
    await given()
      .when(requested)
      .gives({
        'approval.requested': { ...ids, requestedBy, contentHash: 'a'.repeat(64), scheduledAt: at(20) },
      });
    const decided = { decidedBy: { type: 'member', id: 'm1' }, comment: 'Off brand.' };
    for (const [type, reported] of [
      ['ApprovalApproved', 'approval.approved'],
      ['ApprovalRejected', 'approval.rejected'],
      ['ApprovalChangesRequested', 'approval.changes_requested'],
    ] as const) {
      await given(requested)
        .when(approval(type, decided))
        .gives({ [reported]: { ...ids, ...decided } });
    }
    await given(requested)
      .when(approval('ApprovalWithdrawn', { reason: 'post_canceled' }))
      .gives({ 'approval.withdrawn': { ...ids, reason: 'post_canceled' } });
    const [linkId = ''] = uuids(1);
    const link = approval('ApprovalLinkCreated', { linkId, expiresAt: at(600), keyVersion: 'v1' });
    await given(requested)
      .when(link)
      .gives({ 'approval.link_created': { ...ids, linkId, expiresAt: at(600) } });
    await given(requested, link)
      .when(approval('ApprovalLinkRevoked', { linkId }))
      .gives({ 'approval.link_revoked': { ...ids, linkId } });
    const guest = approval('ApprovalGuestNamed', { clientId, linkId, name: 'Zoë Canary' });
    await given(requested, link).when(guest).gives({});
    await given(requested, link, guest)
      .when(approval('ApprovalApproved', decided))
      .gives({ 'approval.approved': { ...ids, ...decided } });
  });

  t('accounts: no personal member', async () => {
    const [id = '', clientId = '', inviteId = ''] = uuids(3);
    const account = on('account', id);
    const profile = { username: 'zoe.canary', displayName: 'Zoë Canary', avatarUrl: 'https://cdn.example/zoe.jpg' };
    const grant = { scopes: ['publish'], expiresAt: at(600), timezone: 'Asia/Tokyo', inviteId };
    const connected = account('AccountConnected', {
      clientId,
      platform: 'threads',
      externalId: 'external-1',
      network: 'live',
      ...profile,
      ...grant,
    });
    const ids = { accountId: id, clientId, platform: 'threads' };
    const granted = { timezone: 'Asia/Tokyo', expiresAt: at(600), inviteId };
    await given()
      .when(connected)
      .gives({ 'account.connected': { ...ids, ...granted } });
    const lapsed = account('AccountReauthRequired', { reason: 'The token was revoked.' });
    await given(connected)
      .when(lapsed)
      .gives({ 'account.reauth_required': { ...ids, reason: 'The token was revoked.' } });
    await given(connected, lapsed)
      .when(account('AccountReauthorized', { clientId, ...profile, ...grant, expiresAt: null }))
      .gives({ 'account.reauthorized': { ...ids, ...granted, expiresAt: null } });
    await given(connected)
      .when(account('AccountDisconnected', { reason: 'requested' }))
      .gives({ 'account.disconnected': { ...ids, reason: 'requested' } });
    await given(connected)
      .when(account('AccountProfileChanged', { clientId, ...profile }))
      .gives({ 'account.updated': ids });
    const windows = [{ name: '24 hours', seconds: 86_400, limit: 50, used: 3, resetsAt: null }];
    await given(connected)
      .when(account('AccountLimitsObserved', { clientId, windows }))
      .gives({ 'account.limits_observed': { ...ids, windows } });
  });

  t('members: ids and roles, never a name', async () => {
    const [id = '', anna = '', ben = ''] = uuids(3);
    const workspace = on('workspace', id);
    const created = workspace('WorkspaceCreated', { name: 'Agency', timezone: 'UTC', mode: 'live', twinOf: null });
    const owner = workspace('MemberAdded', { memberId: anna, name: 'Anna', role: 'owner' });
    const joined = workspace('MemberAdded', { memberId: ben, name: 'Ben', role: 'viewer' });
    const promoted = workspace('MemberRoleChanged', { memberId: ben, role: 'creator' });
    await given().when(created).gives({});
    await given(created)
      .when(workspace('WorkspaceProfileChanged', { name: 'Studio', timezone: 'Asia/Tokyo' }))
      .gives({ 'workspace.updated': { workspaceId: id, clientId: null, name: 'Studio', timezone: 'Asia/Tokyo' } });
    const rule = { platform: 'x', minIntervalMinutes: 30, perDay: null };
    await given(created)
      .when(workspace('CadenceSet', rule))
      .gives({ 'cadence.changed': { workspaceId: id, clientId: null, ...rule } });
    const ending = { platform: 'linkedin', version: '202511', endsAt: '2026-11-16', stage: 'ends_in_30_days' };
    await given(created)
      .when(workspace('NetworkVersionEndReported', ending))
      .gives({ 'network.version_ending': { workspaceId: id, clientId: null, ...ending } });
    for (const limit of [500, null]) {
      await given(created)
        .when(workspace('PostingQuotaSet', { limit }))
        .gives({ 'quota.changed': { workspaceId: id, clientId: null, limit } });
    }
    await given(created, owner)
      .when(joined)
      .gives({ 'team.member_added': { memberId: ben, clientId: null, role: 'viewer' } });
    const identified = workspace('MemberIdentified', { memberId: ben, personId: anna });
    await given(created, owner, joined).when(identified).gives({});
    await given(created)
      .when(workspace('SandboxClockMoved', { aheadMs: 60_000 }))
      .gives({});
    await given(created, owner, joined, identified)
      .when(promoted)
      .gives({ 'team.role_changed': { memberId: ben, clientId: null, role: 'creator', previousRole: 'viewer' } });
    await given(created, owner, joined, promoted)
      .when(workspace('MemberRoleChanged', { memberId: ben, role: 'manager' }))
      .gives({ 'team.role_changed': { memberId: ben, clientId: null, role: 'manager', previousRole: 'creator' } });
    const removed = workspace('MemberRemoved', { memberId: ben });
    await given(created, owner, joined, promoted)
      .when(removed)
      .gives({ 'team.member_removed': { memberId: ben, clientId: null, role: 'creator' } });
    // Who comes back has the role that was given then.
    await given(created, owner, joined, promoted, removed, joined)
      .when(removed)
      .gives({ 'team.member_removed': { memberId: ben, clientId: null, role: 'viewer' } });
  });

  t('API keys: who may do what, never the key, its beginning or its hash', async () => {
    const [id = '', memberId = '', one = ''] = uuids(3);
    const key = on('apikey', id);
    const hashes = { hash: 'a'.repeat(64), prefix: 'sk_test_abcd' };
    const shown = { name: 'Newsroom', scopes: ['posts.read'], expiresAt: at(9), clientIds: [one] };
    const ids = { apiKeyId: id, clientId: null, memberId, mode: 'test' };
    const created = key('ApiKeyCreated', { memberId, mode: 'test', ...hashes, ...shown });
    await given()
      .when(created)
      .gives({ 'apikey.created': { ...ids, ...shown } });
    const rotated = { ...hashes, previousHash: 'b'.repeat(64), previousUntil: at(5) };
    await given(created)
      .when(key('ApiKeyRotated', rotated))
      .gives({ 'apikey.rotated': { ...ids, previousExpiresAt: at(5) } });
    await given(created).when(key('ApiKeyRevoked')).gives({ 'apikey.revoked': ids });
  });

  t('connect links: never the token, the address or an e-mail address', async () => {
    const [id = '', clientId = '', accountId = ''] = uuids(3);
    const link = on('invite', id);
    const ids = { inviteId: id, clientId };
    const shown = { platforms: ['x', 'threads'], expiresAt: at(9) };
    const secret = { clientId, keyVersion: 'v1', recipientEmail: 'canary@acme.example' };
    const created = link('ConnectInviteCreated', { ...secret, ...shown, maxAccounts: 3 });
    await given()
      .when(created)
      .gives({ 'invite.created': { ...ids, ...shown, maxAccounts: 3 } });
    await given()
      .when(link('ConnectInviteCreated', { ...secret, ...shown }))
      .gives({ 'invite.created': { ...ids, ...shown, maxAccounts: 50 } });
    await given(created)
      .when(link('ConnectInviteUsed', { accountId, platform: 'x' }))
      .gives({ 'invite.used': { ...ids, accountId, platform: 'x' } });
    for (const reason of ['client_archived', null]) {
      await given(created)
        .when(link('ConnectInviteRevoked', { reason }))
        .gives({ 'invite.revoked': { ...ids, reason } });
    }
  });

  t('a refresh of figures: how many accounts were requested and how many failed', async () => {
    const [refreshId = '', one = '', two = '', three = ''] = uuids(4);
    const refresh = on('refresh', refreshId);
    const requested = refresh('AnalyticsRefreshRequested', { accountIds: [one, two, three] });
    await given().when(requested).gives({});
    const refreshed = refresh('AnalyticsRefreshed', { accountIds: [one, two], failedAccountIds: [three] });
    // It is the second event of its stream.
    const asOf = instant(1);
    await given(requested)
      .when(refreshed)
      .gives({ 'analytics.refreshed': { refreshId, clientId: null, asOf, accounts: 3, failedAccounts: 1 } });
  });

  t('webhook endpoints: never their URL', async () => {
    const [id = ''] = uuids(1);
    const webhook = on('webhook', id);
    const fields = { url: 'https://user:canary@example.com/', events: ['*'], description: null, clientIds: null };
    const registered = webhook('WebhookRegistered', { ...fields, keyVersion: '1' });
    await given().when(registered).gives({});
    await given(registered)
      .when(webhook('WebhookDisabled', { by: 'service', reason: 'gone' }))
      .gives({ 'webhook.disabled': { webhookId: id, clientId: null, by: 'service', reason: 'gone' } });
    await given(registered)
      .when(webhook('WebhookEnabled'))
      .gives({ 'webhook.enabled': { webhookId: id, clientId: null } });
    const [replayId = '', deliveryId = ''] = uuids(2);
    for (const silent of [
      webhook('WebhookUpdated', { events: ['post.*'] }),
      webhook('WebhookSecretRotated', { generation: 2, keyVersion: '1', previousExpiresAt: at(9) }),
      webhook('WebhookDeleted'),
      webhook('WebhookTestRequested', { eventType: 'webhook.test' }),
      webhook('WebhookResendRequested', { deliveryId, eventTime: at(1) }),
      webhook('WebhookReplayRequested', { replayId, from: at(0), to: at(1), types: null }),
      webhook('WebhookReplayCanceled', { replayId }),
    ]) {
      await given(registered).when(silent).gives({});
    }
  });
});

suite('published: the whole table', (t) => {
  const kindsOfTable = new Set([...published.keys(), ...unpublished.keys()].map((event) => event.split('/')[0]));
  const silentKinds = [
    'person',
    'personemail',
    'session',
    'teaminvite',
    'clientname',
    'grant',
    'externalref',
    'quota',
    'request',
    'targetcalls',
    'targetmetrics',
    'accountmetrics',
  ];

  t('the tests above cover every rule and every event of a published kind without a rule', () => {
    const rules = [...published].flatMap(([event, types]) => types.map((type) => `${event} ${type}`));
    const silent = [...unpublished.keys()].filter((event) => !silentKinds.includes(event.split('/')[0] ?? ''));
    deepEqual(
      [...rules, ...silent].filter((one) => !covered.has(one)),
      [],
    );
    deepEqual([...kindsOfTable].sort(), Object.keys(eventCatalogue).sort());
  });

  t('the events without a public type are these: no state that a caller can see changes silently', () => {
    const steps: Readonly<Record<string, readonly string[]>> = {
      'its stream has no endpoint yet': ['workspace/WorkspaceCreated'],
      'a caller moves the clock for its own tests': ['workspace/SandboxClockMoved'],
      'a step of a protocol, whose result is published': [
        ...['client/ClientNameClaimLapsed', 'clientname/NameClaimed', 'clientname/NameReleased'],
        ...['externalref/ExternalRefClaimed', 'externalref/ExternalRefReleased', 'post/PostExternalRefClaimLapsed'],
        ...['quota/QuotaReserved', 'quota/QuotaReleased', 'post/PostAbandoned', 'target/TargetPlaceLapsed'],
        ...['post/PostTargetsChanged', 'post/PostTargetsSkipped', 'post/PostTargetSettled', 'post/PostTargetReopened'],
        'post/PostRecyclePlanned',
        ...['target/TargetPublishCheckpointed', 'target/TargetSegmentPublished', 'target/TargetPublishTakenOver'],
        ...['target/TargetFirstCommentScheduled', 'target/TargetFirstCommentStarted', 'target/TargetAbsenceObserved'],
        ...['target/TargetAfterStepScheduled', 'target/TargetAfterStepStarted', 'target/TargetAfterStepCompleted'],
        ...['media/MediaUploadOffered', 'media/MediaStored', 'media/MediaProbed', 'media/MediaRenditionsRequested'],
        ...['media/MediaRenditionsPlanned', 'media/MediaFilesRemoved'],
        ...['refresh/AnalyticsRefreshRequested', 'report/ReportRunRequested', 'campaign/CampaignShifted'],
        'approval/ApprovalGuestNamed',
        ...['request/RequestAccepted', 'request/RequestCompleted'],
      ],
      'a matter between a person and an app': ['grant/GrantGiven', 'grant/GrantRevoked'],
      'a matter of one person': [
        ...['person/PersonRegistered', 'person/PasswordSet', 'person/PasskeyAdded', 'person/PasskeyRemoved'],
        ...['person/SecondFactorEnabled', 'person/SecondFactorDisabled', 'person/RecoveryCodesReplaced'],
        ...['person/RecoveryCodeUsed', 'person/PersonErased', 'session/SessionStarted', 'session/SessionRevoked'],
        'person/EmailProven',
        ...['personemail/EmailClaimed', 'personemail/EmailReleased', 'workspace/MemberIdentified'],
      ],
      'an offer, whose acceptance is published': [
        ...['teaminvite/TeamInviteCreated', 'teaminvite/TeamInviteAccepted', 'teaminvite/TeamInviteRevoked'],
      ],
      'too many': ['targetmetrics/TargetMetricsObserved', 'accountmetrics/AccountMetricsObserved'],
      'for auditors': ['targetcalls/TargetNetworkCallObserved'],
      'definitions of the agency, which their own caller changed': [
        ...['webhook/WebhookRegistered', 'webhook/WebhookUpdated', 'webhook/WebhookSecretRotated'],
        ...['webhook/WebhookDeleted', 'report/ReportDefined', 'report/ReportRemoved'],
      ],
      'its effect is a delivery': [
        ...['webhook/WebhookTestRequested', 'webhook/WebhookResendRequested', 'webhook/WebhookReplayRequested'],
        'webhook/WebhookReplayCanceled',
      ],
    };
    deepEqual([...unpublished.keys()].sort(), Object.values(steps).flat().sort());
  });

  t('the tests above set the personal members of every published kind', () => {
    const marked = Object.entries(eventCatalogue)
      .filter(([kind]) => !silentKinds.includes(kind))
      .flatMap(([kind, types]) =>
        Object.entries(types).flatMap(([type, { schema }]) =>
          personalMembers(schema).length > 0 ? [`${kind}/${type}`] : [],
        ),
      );
    deepEqual(
      marked.filter((one) => !personal.has(one)),
      [],
    );
  });
});

suite('published: minted', (t) => {
  let world: WebhookWorld;
  t.before(async () => {
    world = await WebhookWorld.open();
  });
  t.after(() => world.close());

  t('an event of each public type becomes one delivery', async () => {
    const endpointId = await world.register(['*']);
    const running = world.dispatch();
    // The tests above give many histories to one stream: each is stored under an id of its own.
    const own = (events: readonly Given[]): readonly Given[] => {
      const id = idOf(events[0]?.stream ?? '');
      return JSON.parse(JSON.stringify(events).replaceAll(id, randomUUID()));
    };
    const stored = await Promise.all(
      [...histories].map(async ([type, events]) => {
        const last = (await world.append(own(events))).at(-1);
        return [type, envelopeIdOf(last?.id ?? '', type)] as const;
      }),
    );
    const command = { type: 'RequestTest', commandId: randomUUID(), eventType: 'webhook.test' } as const;
    const asked = (await world.act(endpointId, command)).appended[0]?.id ?? '';
    const expected = [...stored, ['webhook.test', envelopeIdOf(asked, 'webhook.test')] as const];
    deepEqual(
      expected.map(([type]) => type).sort(),
      eventTypes.filter((type) => histories.has(type) || !plannedPublicTypes.includes(type)).sort(),
    );
    await world.settled();
    const minted = await world.deliveries(endpointId);
    for (const [type, messageId] of expected) {
      const found = minted.filter((one) => one.messageId === messageId);
      deepEqual(
        found.map((one) => [one.type, one.id, one.envelope.type, one.queued?.trigger]),
        [[type, deliveryIdOf(messageId, endpointId), type, type === 'webhook.test' ? 'test' : 'scheduled']],
        type,
      );
    }
    await running.stop();
  });
});

suite('published: what the bench of webhooks sends', (t) => {
  t('has the bytes that the limits beside it send, whatever members the event has', async () => {
    const codec = new EventCodec(new TestKeys());
    const [workspaceId = '', clientId = ''] = uuids(2);
    const { body } = await eventOf(codec, { workspaceId, clientId });
    deepEqual([body.length, bodyBytes], [1_024, 1_024]);
  });
});

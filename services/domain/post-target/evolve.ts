import type { TargetEvent } from '#schemas/target.ts';
import type { Fact } from '../decider.ts';
import { approvalTooLate, publishingHeld } from '../publish-failures.ts';
import { evolveNative } from './native.ts';
import {
  applied,
  type FirstComment,
  type NetworkPost,
  releasedAt,
  remember,
  type TargetCommon,
  type TargetState,
} from './state.ts';

export const evolve = (state: TargetState, event: TargetEvent, fact: Fact): TargetState => {
  if (event.type === 'TargetScheduled') return state.status === 'none' ? scheduled(event.data, fact) : state;
  if (state.status === 'none') return state;
  const { common } = state;
  /** A held target stays held when its time or its content changes. */
  const due = (changed: TargetCommon): TargetState =>
    state.status === 'awaiting_approval' ? { status: 'awaiting_approval', common: changed } : pending(changed);
  switch (event.type) {
    case 'TargetHeld':
      return { status: 'awaiting_approval', common: applied(common, event.data.postRevision) };
    case 'TargetReleased': {
      const { postRevision, dueAt } = event.data;
      return pending({ ...releasedAt(applied(common, postRevision), dueAt), ...inTime });
    }
    case 'TargetRescheduled':
      return due({ ...remember(common, fact), ...event.data, askedTime: null, ...inTime });
    case 'TargetRevised': {
      const { postRevision: appliedRevision, dueAt } = event.data;
      const askedTime = dueAt === common.dueAt ? common.askedTime : null;
      // An upload of the former content must not go out: no later attempt may see its checkpoints.
      const revised = { ...common, ...event.data, appliedRevision, askedTime, checkpoints: [], ...inTime };
      return state.status === 'failed' ? { ...state, common: revised } : due(revised);
    }
    case 'TargetCanceled':
      return { status: 'canceled', common: applied(common, event.data.postRevision ?? 0) };
    case 'TargetRequeued': {
      const { by, dueAt: retryAt } = event.data;
      // A person's retry or revision resets the counts. An automatic requeue does not, or no limit on automatic attempts
      // would hold.
      const counted = by === 'schedule' ? common : { ...remember(common, fact), ...noAttempts, ...inTime };
      return pending(counted, retryAt);
    }

    case 'TargetPublishStarted':
      return {
        status: 'publishing',
        retryAt: state.status === 'pending' ? state.retryAt : null,
        takeover: 0,
        progressAt: 0,
        boundary: null,
        undo: null,
        common: { ...common, attempts: event.data.attempt, knownAt: fact.occurredAt },
      };
    case 'TargetPublishCheckpointed': {
      if (state.status !== 'publishing') return state;
      const { attempt, step, data, deadline, segment = null } = event.data;
      const checkpoint = { attempt, step, data, deadline, segment };
      return {
        ...state,
        boundary: step === 'boundary' ? checkpoint : state.boundary,
        common: { ...common, checkpoints: [...common.checkpoints, checkpoint] },
      };
    }
    case 'TargetPublishTakenOver':
      return state.status === 'publishing' ? { ...state, takeover: event.data.takeover } : state;
    case 'TargetSegmentPublished':
      if (state.status === 'publishing') {
        return { ...state, boundary: null, progressAt: state.takeover, common: withSegment(common, event.data) };
      }
      if (state.status !== 'outcome_unknown') return state;
      return { ...state, boundary: null, common: withSegment(common, event.data) };

    case 'TargetPublished':
      return { status: 'published', ...postOf(event.data), removedAt: null, firstComment: null, common };
    case 'TargetFailed': {
      const { attempt, failure } = event.data;
      return { status: 'failed', failure, common: { ...common, attempts: attempt } };
    }
    case 'TargetApprovalLapsed':
      return { status: 'failed', failure: approvalTooLate, common };
    case 'TargetRateLimited': {
      const { retryAt } = event.data;
      return {
        status: 'rate_limited',
        retryAt,
        common: { ...deferredBy(common, fact), rateLimits: common.rateLimits + 1 },
      };
    }
    case 'TargetPublishDeferred': {
      const { retryAt, failure } = event.data;
      // One that the publisher rescheduled before its claim, or because publishing is held, used up no try.
      const isTry = state.status !== 'pending' && failure.code !== publishingHeld.code;
      const put = deferredBy(common, fact);
      return pending(isTry ? { ...put, defers: common.defers + 1 } : put, retryAt);
    }
    case 'TargetOutcomeUnknown': {
      const isRestored = event.data.reason === 'restored';
      if (state.status === 'outcome_unknown' && isRestored) {
        return { ...state, restored: true, askedFrom: fact.occurredAt, absences: [] };
      }
      if (state.status !== 'publishing' && state.status !== 'handed_to_platform') return state;
      const { takeover, boundary } = state;
      const since = { ...common, deferredSince: null, unknownSince: common.unknownSince ?? fact.occurredAt };
      const asked = { askedFrom: fact.occurredAt, absences: [], restored: isRestored };
      // An undo of what the network had has failed by now.
      const of =
        state.status === 'publishing' ? { nativeId: null, undo: state.undo } : { nativeId: state.nativeId, undo: null };
      return { status: 'outcome_unknown', takeover, boundary, ...asked, ...of, common: since };
    }
    case 'TargetAbsenceObserved':
      if (state.status !== 'outcome_unknown') return state;
      return { ...state, absences: [...state.absences, event.data.observedAt] };
    case 'TargetOutcomeSettled': {
      const { outcome, by, externalId, permalink, publishedAt, failure, retryAt } = event.data;
      const common = { ...state.common, knownAt: fact.occurredAt };
      if (outcome === 'absent') return pending(absentBy(by, common), retryAt ?? fact.occurredAt);
      if (outcome === 'failed' && failure !== null) return { status: 'failed', failure, common };
      const post = { externalId: externalId ?? '', permalink, publishedAt: publishedAt ?? fact.occurredAt };
      return { status: 'published', ...post, removedAt: null, firstComment: null, common };
    }
    case 'TargetOverdue':
      return { ...state, common: { ...common, overdue: true } };
    case 'TargetPlaceLapsed':
      return state;
    case 'TargetRemovedOnPlatform':
      return state.status === 'published' ? { ...state, removedAt: event.data.observedAt } : state;
    case 'TargetHandedToPlatform':
    case 'TargetUndoRequested':
    case 'TargetUndoFailed':
    case 'TargetScheduleModeChanged':
      return evolveNative(state, event, fact);
    case 'TargetFirstCommentScheduled':
    case 'TargetFirstCommentStarted':
    case 'TargetFirstCommentPosted':
    case 'TargetFirstCommentFailed':
      return state.status === 'published' ? { ...state, firstComment: commentOf(event) } : state;
  }
};

type CommentEvent = Extract<TargetEvent, { type: `TargetFirstComment${string}` }>;

const commentOf = (event: CommentEvent): FirstComment | null => {
  if (event.type === 'TargetFirstCommentScheduled') {
    return { status: 'due', try: event.data.try, dueAt: event.data.dueAt };
  }
  return event.type === 'TargetFirstCommentStarted' ? { status: 'calling', ...event.data } : null;
};

const pending = (common: TargetCommon, retryAt: string | null = null): TargetState => ({
  status: 'pending',
  retryAt,
  common,
});

/** Nothing keeps the target beyond its time, as far as the service knows. */
const inTime = { deferredSince: null, overdue: false } as const;

/** The wait counts from the due time: a hand-over to the network's own scheduler may be deferred long before it. */
const deferredBy = (common: TargetCommon, { occurredAt }: Fact): TargetCommon => ({
  ...common,
  deferredSince: common.deferredSince ?? (occurredAt < common.dueAt ? common.dueAt : occurredAt),
});

/** What automatic attempts are limited by, before the first of them. */
const noAttempts = { rateLimits: 0, defers: 0, provenAbsences: 0, assumedAbsences: 0, unknownSince: null } as const;

/** A person who says that the post is not there has the target tried again, as a retry does. */
const absentBy = (
  by: Extract<TargetEvent, { type: 'TargetOutcomeSettled' }>['data']['by'],
  common: TargetCommon,
): TargetCommon => {
  if (by === 'admin') return { ...common, ...noAttempts };
  return by === 'reconcile'
    ? { ...common, provenAbsences: common.provenAbsences + 1 }
    : { ...common, assumedAbsences: common.assumedAbsences + 1 };
};

const scheduled = (data: Extract<TargetEvent, { type: 'TargetScheduled' }>['data'], fact: Fact): TargetState =>
  pending({
    ...data,
    bornAt: fact.occurredAt,
    knownAt: null,
    appliedRevision: data.postRevision,
    askedTime: null,
    attempts: 0,
    ...noAttempts,
    ...inTime,
    checkpoints: [],
    publishedSegments: [],
    appliedCommands: [],
  });

/** Each segment has as many attempts as a single post. */
const withSegment = (common: TargetCommon, post: NetworkPost): TargetCommon => ({
  ...common,
  ...noAttempts,
  deferredSince: null,
  publishedSegments: [...common.publishedSegments, postOf(post)],
});

const postOf = ({ externalId, permalink, publishedAt }: NetworkPost): NetworkPost => ({
  externalId,
  permalink,
  publishedAt,
});

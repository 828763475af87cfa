import type { TargetEvent } from '#schemas/target.ts';
import type { Fact } from '../decider.ts';
import type { NetworkPost, TargetCommon, TargetState } from './state.ts';

export const evolve = (state: TargetState, event: TargetEvent, fact: Fact): TargetState => {
  if (event.type === 'TargetScheduled') return state.status === 'none' ? scheduled(event.data) : state;
  if (state.status === 'none') return state;
  const { common } = state;
  /** A held target stays held when its time or its content changes. */
  const status = state.status === 'awaiting_approval' ? 'awaiting_approval' : 'pending';
  switch (event.type) {
    case 'TargetHeld':
      return { status: 'awaiting_approval', common: applied(common, event.data.postRevision) };
    case 'TargetReleased': {
      const { postRevision, dueAt } = event.data;
      return { status: 'pending', common: { ...applied(common, postRevision), dueAt } };
    }
    case 'TargetRescheduled':
      return { status, common: { ...remember(common, fact), ...event.data } };
    case 'TargetRevised': {
      // An upload of the former content must not go out: no later attempt may see its checkpoints.
      const revised = { ...common, ...event.data, appliedRevision: event.data.postRevision, checkpoints: [] };
      return state.status === 'failed' ? { ...state, common: revised } : { status, common: revised };
    }
    case 'TargetCanceled':
      return { status: 'canceled', common: applied(common, event.data.postRevision ?? 0) };
    case 'TargetRequeued': {
      const { by, dueAt } = event.data;
      // A person's retry or revise resets the counts. An automatic requeue does not, or no limit on automatic attempts
      // would hold.
      const counted = by !== 'schedule' ? { ...remember(common, fact), rateLimits: 0, defers: 0 } : common;
      return { status: 'pending', common: { ...counted, dueAt } };
    }

    case 'TargetPublishStarted':
      return {
        status: 'publishing',
        takeover: 0,
        progressAt: 0,
        boundary: null,
        common: { ...common, attempts: event.data.attempt },
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
      return { status: 'published', ...postOf(event.data), removedAt: null, common };
    case 'TargetFailed': {
      const { attempt, failure } = event.data;
      return { status: 'failed', failure, common: { ...common, attempts: attempt } };
    }
    case 'TargetRateLimited': {
      const { retryAt } = event.data;
      return { status: 'rate_limited', retryAt, common: { ...common, rateLimits: common.rateLimits + 1 } };
    }
    case 'TargetPublishDeferred': {
      const { retryAt } = event.data;
      return { status: 'pending', common: { ...common, dueAt: retryAt, defers: common.defers + 1 } };
    }
    case 'TargetOutcomeUnknown': {
      if (state.status !== 'publishing') return state;
      const { takeover, boundary } = state;
      return { status: 'outcome_unknown', takeover, boundary, unknownSince: fact.occurredAt, common };
    }
    case 'TargetOutcomeSettled': {
      const { outcome, externalId, permalink, publishedAt, failure } = event.data;
      if (outcome === 'absent') return { status: 'pending', common };
      if (outcome === 'failed' && failure !== null) return { status: 'failed', failure, common };
      const post = { externalId: externalId ?? '', permalink, publishedAt: publishedAt ?? fact.occurredAt };
      return { status: 'published', ...post, removedAt: null, common };
    }
    case 'TargetRemovedOnPlatform':
      return state.status === 'published' ? { ...state, removedAt: event.data.observedAt } : state;
    case 'TargetHandedToPlatform':
    case 'TargetFirstCommentPosted':
    case 'TargetFirstCommentFailed':
      return state;
  }
};

const scheduled = (data: Extract<TargetEvent, { type: 'TargetScheduled' }>['data']): TargetState => ({
  status: 'pending',
  common: {
    ...data,
    appliedRevision: data.postRevision,
    attempts: 0,
    rateLimits: 0,
    defers: 0,
    checkpoints: [],
    publishedSegments: [],
    appliedCommands: [],
  },
});

const applied = (common: TargetCommon, postRevision: number): TargetCommon => ({
  ...common,
  appliedRevision: Math.max(common.appliedRevision, postRevision),
});

const remember = (common: TargetCommon, { commandId }: Fact): TargetCommon => ({
  ...common,
  appliedCommands: [...common.appliedCommands, commandId],
});

/** Each segment has as many attempts as a single post. */
const withSegment = (common: TargetCommon, post: NetworkPost): TargetCommon => ({
  ...common,
  rateLimits: 0,
  defers: 0,
  publishedSegments: [...common.publishedSegments, postOf(post)],
});

const postOf = ({ externalId, permalink, publishedAt }: NetworkPost): NetworkPost => ({
  externalId,
  permalink,
  publishedAt,
});

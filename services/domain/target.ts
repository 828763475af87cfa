import type { Platform } from '#schemas/common.ts';
import type { Failure, PlannedTarget, Segment, TargetEvent } from '#schemas/target.ts';
import { type Decider, type Fact, Rejection } from './decider.ts';

/**
 * One destination of a post. Its law: at most one boundary is crossed per attempt, only by the worker whose claim
 * (attempt, takeover) is the newest, and whatever is not known afterwards is said to be unknown. Of a thread each
 * segment has a boundary of its own, which opens when the segment before it is out; one that is out stays out through
 * every later attempt. Longer than other streams: claim, boundary, takeover and outcome are one machine, and a rule of
 * it elsewhere would be missed.
 */

export interface TargetCheckpoint {
  readonly attempt: number;
  readonly step: string;
  readonly data: unknown;
  readonly deadline: string | null;
  /** Null: the target is no thread. */
  readonly segment: Segment | null;
}

/** A segment of a thread as the network has it. */
export interface SegmentPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

interface Common extends Omit<PlannedTarget, 'dueAt'> {
  readonly postId: string;
  /** Content it binds to: the post folded up to this revision. */
  readonly postRevision: number;
  /** Highest post revision whose plan or intent was applied. */
  readonly appliedRevision: number;
  readonly attempts: number;
  readonly rateLimits: number;
  readonly defers: number;
  readonly checkpoints: readonly TargetCheckpoint[];
  /** Those of a thread that are out, in their order. */
  readonly segments: readonly SegmentPost[];
  readonly appliedCommands: readonly string[];
}

export type TargetState =
  | { readonly status: 'none' }
  | (Common & { readonly status: 'awaiting_approval'; readonly dueAt: string })
  | (Common & { readonly status: 'pending'; readonly dueAt: string })
  | (Common & {
      readonly status: 'publishing';
      readonly dueAt: string;
      readonly takeover: number;
      /** Takeover in which a segment went out the last time in this attempt; 0: none did. */
      readonly progressAt: number;
      readonly boundary: TargetCheckpoint | null;
    })
  | (Common & { readonly status: 'rate_limited'; readonly dueAt: string; readonly retryAt: string })
  | (Common & {
      readonly status: 'outcome_unknown';
      readonly dueAt: string;
      readonly takeover: number;
      readonly boundary: TargetCheckpoint | null;
      readonly unknownSince: string;
    })
  | (Common & {
      readonly status: 'published';
      readonly dueAt: string;
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
      /** When the network was seen to have it no more. */
      readonly removedAt: string | null;
    })
  | (Common & { readonly status: 'failed'; readonly dueAt: string; readonly failure: Failure })
  | (Common & { readonly status: 'canceled'; readonly dueAt: string });

type Existing = Exclude<TargetState, { status: 'none' }>;

interface Claim {
  readonly attempt: number;
  readonly takeover: number;
}

/** Delays before a transient failure is tried again; when they are used up the target fails. Milliseconds. */
export interface RetryPolicy {
  readonly deferDelaysMs: readonly number[];
  /** Added to the delay, 0–1 of a tenth of it, drawn by the caller. */
  readonly jitter: number;
  readonly maxRateLimits: number;
}

export type TargetCommand =
  | {
      readonly type: 'Schedule';
      readonly planned: PlannedTarget;
      readonly postId: string;
      readonly postRevision: number;
    }
  | {
      readonly type: 'Reschedule';
      readonly commandId: string;
      readonly dueAt: string;
      readonly scheduledLocal: string | null;
      readonly jitterSeconds: number;
    }
  | { readonly type: 'Retry'; readonly commandId: string; readonly now: string }
  | { readonly type: 'Cancel'; readonly reason: 'requested' | 'client_archived'; readonly postRevision: number | null }
  | { readonly type: 'Start'; readonly now: string }
  | { readonly type: 'Requeue'; readonly now: string }
  | (Claim & {
      readonly type: 'Checkpoint';
      readonly step: string;
      readonly data: unknown;
      readonly deadline: string | null;
      /** Of a thread: the part it is a step of. */
      readonly segment?: Segment | null;
    })
  | (Claim & { readonly type: 'TakeOver' })
  | (Claim & {
      readonly type: 'RecordPublished';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
      /** Of a thread: which part of it. */
      readonly segment?: Segment | null;
    })
  /** `part`: of a thread the segment that is at fault; absent: the next one. */
  | (Claim & { readonly type: 'RecordFailed'; readonly failure: Failure; readonly part?: number | undefined })
  | (Claim & {
      readonly type: 'RecordRateLimited';
      readonly retryAt: string;
      readonly failure: Failure;
      readonly policy: RetryPolicy;
    })
  | (Claim & {
      readonly type: 'RecordDeferred';
      readonly now: string;
      readonly failure: Failure;
      readonly policy: RetryPolicy;
    })
  | (Claim & { readonly type: 'RecordUnknown'; readonly failure: Failure; readonly reconcileAt: string })
  /** The post is not on its network any more; `observedAt`: by the network's clock. */
  | { readonly type: 'RecordRemoved'; readonly observedAt: string }
  | { readonly type: 'RefuseAtClaim'; readonly failure: Failure; readonly part?: number | undefined }
  | {
      readonly type: 'Settle';
      readonly now: string;
      readonly by: 'reconcile' | 'admin';
      /** Of a thread: the segment a person means. */
      readonly segment?: number;
      readonly outcome:
        | {
            readonly kind: 'published';
            readonly externalId: string | null;
            readonly permalink: string | null;
            readonly publishedAt: string;
          }
        | { readonly kind: 'failed'; readonly failure: Failure }
        /** `proof`: the network says that this attempt can never appear; without it nothing is settled. */
        | { readonly kind: 'absent'; readonly proof: boolean };
    };

/** Whether a many-target change may still alter it. Not once a part of its thread is out: nobody can take that back. */
export const isOpen = (state: TargetState): boolean =>
  (state.status === 'awaiting_approval' || state.status === 'pending' || state.status === 'rate_limited') &&
  state.segments.length === 0;

const existing = (state: TargetState): Existing => {
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such target.');
  return state;
};

/** The worker's commands name their claim; a sleeper's, or one whose attempt is over, is refused. */
const claimed = (state: TargetState, claim: Claim): Extract<TargetState, { status: 'publishing' }> => {
  if (state.status !== 'publishing' || state.attempts !== claim.attempt || state.takeover !== claim.takeover) {
    throw new Rejection('claim_lost', `Attempt ${claim.attempt}.${claim.takeover} no longer holds this target.`);
  }
  return state;
};

const publishingClaim = (state: Extract<TargetState, { status: 'publishing' }>): Claim => ({
  attempt: state.attempts,
  takeover: state.takeover,
});

const requireOpen = (state: Existing, change: 'rescheduled' | 'canceled'): void => {
  if (isOpen(state)) return;
  const why = state.segments.length > 0 ? 'A target of whose thread a part is out' : `A ${state.status} target`;
  throw new Rejection('target_not_pending', `${why} cannot be ${change}.`);
};

/** The failure of a thread says what of it is out all the same. */
const withSegments = (state: Existing, failure: Failure, part?: number): Failure => {
  const out = state.segments.length;
  if (out === 0 && part === undefined) return failure;
  const these = out === 1 ? 'Segment 1 of the thread is out' : `Segments 1 to ${out} of the thread are out`;
  const which = `of segment ${(part ?? out) + 1}: ${failure.message}`;
  const message = out === 0 ? `Nothing of the thread is out; ${which}` : `${these}; ${which}`;
  return { ...failure, message: message.slice(0, 2_000).toWellFormed() };
};

/** What a person says of a thread is about one segment: by the time it is heard another may be the one that is not known. */
const requireMeant = (
  state: Extract<TargetState, { status: 'outcome_unknown' }>,
  { segment, outcome }: Extract<TargetCommand, { type: 'Settle' }>,
): void => {
  const unknown = state.boundary?.segment ?? null;
  if (unknown === null) {
    if (segment !== undefined) throw new Rejection('segment_out_of_turn', 'The target is no thread.');
    return;
  }
  if (segment !== unknown.index) {
    throw new Rejection('segment_out_of_turn', `Segment ${unknown.index + 1} of ${unknown.of} is the one not known.`);
  }
  if (outcome.kind === 'published' && state.segments.some(({ externalId }) => externalId === outcome.externalId)) {
    throw new Rejection('segment_out_of_turn', 'That is the id of a segment before it.');
  }
};

/**
 * What a part of a thread that is out means for the whole, in this order: the thread goes on with the next segment, or
 * the target is published as the network knows its head.
 */
const segmentOut = (
  state: Extract<TargetState, { readonly takeover: number }>,
  segment: Segment,
  post: SegmentPost,
): { readonly out: TargetEvent; readonly head: SegmentPost | null } => {
  if (segment.index !== state.segments.length) {
    throw new Rejection('segment_out_of_turn', `Segment ${state.segments.length} of the thread is next.`);
  }
  const claim = { attempt: state.attempts, takeover: state.takeover };
  const { externalId, permalink, publishedAt } = post;
  return {
    out: { type: 'TargetSegmentPublished', data: { ...claim, segment, externalId, permalink, publishedAt } },
    head: segment.index + 1 < segment.of ? null : (state.segments[0] ?? post),
  };
};

const failedBy = (
  held: Extract<TargetState, { status: 'publishing' }>,
  failure: Failure,
  part?: number,
): TargetEvent => ({
  type: 'TargetFailed',
  data: { ...publishingClaim(held), failure: withSegments(held, failure, part) },
});

const decide = (command: TargetCommand, state: TargetState): readonly TargetEvent[] => {
  switch (command.type) {
    case 'Schedule':
      if (state.status !== 'none') return [];
      return [
        {
          type: 'TargetScheduled',
          data: { ...command.planned, postId: command.postId, postRevision: command.postRevision },
        },
      ];

    case 'Reschedule': {
      const now = existing(state);
      if (now.appliedCommands.includes(command.commandId)) return [];
      requireOpen(now, 'rescheduled');
      const { dueAt, scheduledLocal, jitterSeconds } = command;
      if (now.status !== 'rate_limited' && now.dueAt === dueAt && now.jitterSeconds === jitterSeconds) return [];
      return [{ type: 'TargetRescheduled', data: { dueAt, scheduledLocal, jitterSeconds } }];
    }

    case 'Retry': {
      const now = existing(state);
      if (now.appliedCommands.includes(command.commandId)) return [];
      if (now.status !== 'failed' && now.status !== 'rate_limited') {
        throw new Rejection('target_not_retryable', `A ${now.status} target cannot be retried.`);
      }
      return [{ type: 'TargetRequeued', data: { by: 'retry', dueAt: command.now } }];
    }

    case 'Cancel': {
      const now = existing(state);
      if (now.status === 'canceled') return [];
      requireOpen(now, 'canceled');
      return [{ type: 'TargetCanceled', data: { reason: command.reason, postRevision: command.postRevision } }];
    }

    case 'Start':
      if (state.status !== 'pending')
        throw new Rejection('not_claimable', `A ${state.status} target cannot be claimed.`);
      if (state.dueAt > command.now) throw new Rejection('not_due', `It is due at ${state.dueAt}.`);
      return [{ type: 'TargetPublishStarted', data: { attempt: state.attempts + 1, takeover: 0 } }];

    case 'RefuseAtClaim':
      if (state.status !== 'pending')
        throw new Rejection('not_claimable', `A ${state.status} target cannot be refused.`);
      return [
        {
          type: 'TargetFailed',
          data: {
            attempt: state.attempts + 1,
            takeover: 0,
            failure: withSegments(state, command.failure, command.part),
          },
        },
      ];

    case 'Requeue':
      if (state.status !== 'rate_limited') return [];
      if (state.retryAt > command.now) throw new Rejection('not_due', `It may be retried at ${state.retryAt}.`);
      return [{ type: 'TargetRequeued', data: { by: 'schedule', dueAt: command.now } }];

    case 'Checkpoint': {
      const held = claimed(state, command);
      const isBoundary = command.step === 'boundary';
      if (isBoundary && held.boundary !== null)
        throw new Rejection('boundary_crossed', 'This attempt has made its call already.');
      if (isBoundary !== (command.deadline !== null))
        throw new Rejection('invalid_checkpoint', 'A boundary, and nothing else, has a deadline.');
      const { step, data, deadline, segment = null } = command;
      if ((segment?.index ?? 0) !== held.segments.length) {
        throw new Rejection('segment_out_of_turn', `Segment ${held.segments.length} of the thread is next.`);
      }
      const of = segment === null ? {} : { segment };
      return [{ type: 'TargetPublishCheckpointed', data: { ...publishingClaim(held), step, data, deadline, ...of } }];
    }

    case 'TakeOver': {
      const held = claimed(state, command);
      return [{ type: 'TargetPublishTakenOver', data: { attempt: held.attempts, takeover: held.takeover + 1 } }];
    }

    case 'RecordPublished': {
      const held = claimed(state, command);
      const { externalId, permalink, publishedAt, segment = null } = command;
      if (held.boundary !== null && held.boundary.segment?.index !== segment?.index) {
        throw new Rejection('segment_out_of_turn', 'The boundary was crossed for another part of the thread.');
      }
      const post = { externalId, permalink, publishedAt };
      if (segment === null) return [{ type: 'TargetPublished', data: { ...publishingClaim(held), ...post } }];
      const { out, head } = segmentOut(held, segment, post);
      return head === null ? [out] : [out, { type: 'TargetPublished', data: { ...publishingClaim(held), ...head } }];
    }

    case 'RecordFailed':
      return [failedBy(claimed(state, command), command.failure, command.part)];

    case 'RecordRateLimited': {
      const held = claimed(state, command);
      if (held.rateLimits >= command.policy.maxRateLimits) {
        return [failedBy(held, command.failure)];
      }
      return [
        {
          type: 'TargetRateLimited',
          data: { ...publishingClaim(held), retryAt: command.retryAt, failure: command.failure },
        },
      ];
    }

    case 'RecordDeferred': {
      const held = claimed(state, command);
      if (held.boundary !== null)
        throw new Rejection('boundary_crossed', 'After the call only reconcile may tell its outcome.');
      const delay = command.policy.deferDelaysMs[held.defers];
      if (delay === undefined) return [failedBy(held, command.failure)];
      const retryAt = new Date(Date.parse(command.now) + delay * (1 + command.policy.jitter / 10)).toISOString();
      return [{ type: 'TargetPublishDeferred', data: { ...publishingClaim(held), retryAt, failure: command.failure } }];
    }

    case 'RecordUnknown': {
      const held = claimed(state, command);
      if (held.boundary === null) throw new Rejection('no_boundary', 'Nothing was called, so its outcome is known.');
      return [
        {
          type: 'TargetOutcomeUnknown',
          data: { ...publishingClaim(held), failure: command.failure, reconcileAt: command.reconcileAt },
        },
      ];
    }

    case 'RecordRemoved':
      if (state.status !== 'published' || state.removedAt !== null) return [];
      return [{ type: 'TargetRemovedOnPlatform', data: { observedAt: command.observedAt } }];

    case 'Settle': {
      const now = existing(state);
      if (now.status !== 'outcome_unknown')
        throw new Rejection('target_not_unknown', `A ${now.status} target has a known outcome.`);
      const { outcome, by } = command;
      if (by === 'admin') requireMeant(now, command);
      const settled = { by, externalId: null, permalink: null, publishedAt: null, failure: null };
      if (outcome.kind === 'absent') {
        if (!outcome.proof) return [];
        return [{ type: 'TargetOutcomeSettled', data: { ...settled, outcome: 'absent' } }];
      }
      if (outcome.kind === 'failed') {
        const failure = withSegments(now, outcome.failure);
        return [{ type: 'TargetOutcomeSettled', data: { ...settled, outcome: 'failed', failure } }];
      }
      const { externalId, permalink, publishedAt } = outcome;
      const segment = now.boundary?.segment ?? null;
      const whole = (post: Omit<SegmentPost, 'externalId'> & { readonly externalId: string | null }): TargetEvent => ({
        type: 'TargetOutcomeSettled',
        data: { ...settled, ...post, outcome: 'published' },
      });
      if (segment === null) return [whole({ externalId, permalink, publishedAt })];
      // The next segment replies to this one.
      if (externalId === null)
        throw new Rejection('segment_id_required', 'The id of the segment on its network is needed.');
      const { out, head } = segmentOut(now, segment, { externalId, permalink, publishedAt });
      if (head !== null) return [out, whole(head)];
      return [out, { type: 'TargetRequeued', data: { by: 'schedule', dueAt: command.now } }];
    }
  }
};

/** The members every situation shares, without those of the one it leaves. */
const common = (state: Existing): Common & { readonly dueAt: string } => {
  const {
    targetId,
    accountId,
    clientId,
    platform,
    dueAt,
    scheduledLocal,
    timezone,
    jitterSeconds,
    scheduleMode,
    scheduleModeReason,
  } = state;
  const { postId, postRevision, appliedRevision, attempts, rateLimits, defers } = state;
  const { checkpoints, segments, appliedCommands } = state;
  return {
    targetId,
    accountId,
    clientId,
    platform: platform as Platform,
    dueAt,
    scheduledLocal,
    timezone,
    jitterSeconds,
    scheduleMode,
    scheduleModeReason,
    postId,
    postRevision,
    appliedRevision,
    attempts,
    rateLimits,
    defers,
    checkpoints,
    segments,
    appliedCommands,
  };
};

const evolve = (state: TargetState, event: TargetEvent, fact: Fact): TargetState => {
  if (event.type === 'TargetScheduled') {
    if (state.status !== 'none') return state;
    const { postId, postRevision, ...planned } = event.data;
    return {
      ...planned,
      postId,
      postRevision,
      appliedRevision: postRevision,
      status: 'pending',
      attempts: 0,
      rateLimits: 0,
      defers: 0,
      checkpoints: [],
      segments: [],
      appliedCommands: [],
    };
  }
  if (state.status === 'none') return state;
  const same = common(state);
  const remember = [...same.appliedCommands, fact.commandId];
  switch (event.type) {
    case 'TargetHeld':
      return {
        ...same,
        status: 'awaiting_approval',
        appliedRevision: Math.max(same.appliedRevision, event.data.postRevision),
      };
    case 'TargetReleased':
      return {
        ...same,
        status: 'pending',
        dueAt: event.data.dueAt,
        appliedRevision: Math.max(same.appliedRevision, event.data.postRevision),
      };
    case 'TargetRescheduled': {
      const status = state.status === 'awaiting_approval' ? 'awaiting_approval' : 'pending';
      return { ...same, ...event.data, status, appliedCommands: remember };
    }
    case 'TargetRevised': {
      const status = state.status === 'awaiting_approval' ? 'awaiting_approval' : 'pending';
      return { ...same, ...event.data, status, appliedRevision: event.data.postRevision };
    }
    case 'TargetCanceled':
      return {
        ...same,
        status: 'canceled',
        appliedRevision: Math.max(same.appliedRevision, event.data.postRevision ?? 0),
      };
    case 'TargetPublishStarted':
      return {
        ...same,
        status: 'publishing',
        attempts: event.data.attempt,
        takeover: 0,
        progressAt: 0,
        boundary: null,
      };
    case 'TargetPublishCheckpointed': {
      if (state.status !== 'publishing') return state;
      const { attempt, step, data, deadline, segment = null } = event.data;
      const checkpoint = { attempt, step, data, deadline, segment };
      const boundary = step === 'boundary' ? checkpoint : state.boundary;
      return {
        ...same,
        status: 'publishing',
        takeover: state.takeover,
        progressAt: state.progressAt,
        boundary,
        checkpoints: [...same.checkpoints, checkpoint],
      };
    }
    case 'TargetSegmentPublished': {
      if (state.status !== 'publishing' && state.status !== 'outcome_unknown') return state;
      const { externalId, permalink, publishedAt } = event.data;
      const segments = [...state.segments, { externalId, permalink, publishedAt }];
      // Each segment has all the tries that a post which stands alone has.
      const same = { boundary: null, rateLimits: 0, defers: 0, segments };
      return state.status === 'publishing' ? { ...state, ...same, progressAt: state.takeover } : { ...state, ...same };
    }
    case 'TargetPublishTakenOver':
      if (state.status !== 'publishing') return state;
      return { ...state, takeover: event.data.takeover };
    case 'TargetHandedToPlatform':
    case 'TargetFirstCommentPosted':
    case 'TargetFirstCommentFailed':
      return state;
    case 'TargetRemovedOnPlatform':
      return state.status === 'published' ? { ...state, removedAt: event.data.observedAt } : state;
    case 'TargetPublished': {
      const { externalId, permalink, publishedAt } = event.data;
      return { ...same, status: 'published', externalId, permalink, publishedAt, removedAt: null };
    }
    case 'TargetFailed':
      return { ...same, status: 'failed', attempts: event.data.attempt, failure: event.data.failure };
    case 'TargetRateLimited':
      return { ...same, status: 'rate_limited', retryAt: event.data.retryAt, rateLimits: same.rateLimits + 1 };
    case 'TargetPublishDeferred':
      return { ...same, status: 'pending', dueAt: event.data.retryAt, defers: same.defers + 1 };
    case 'TargetOutcomeUnknown':
      if (state.status !== 'publishing') return state;
      return {
        ...same,
        status: 'outcome_unknown',
        takeover: state.takeover,
        boundary: state.boundary,
        unknownSince: fact.occurredAt,
      };
    case 'TargetOutcomeSettled': {
      const { outcome, externalId, permalink, publishedAt, failure } = event.data;
      if (outcome === 'absent') return { ...same, status: 'pending' };
      if (outcome === 'failed' && failure !== null) return { ...same, status: 'failed', failure };
      return {
        ...same,
        status: 'published',
        externalId: externalId ?? '',
        permalink,
        publishedAt: publishedAt ?? fact.occurredAt,
        removedAt: null,
      };
    }
    case 'TargetRequeued': {
      // A person's retry starts the counts anew; the schedule's does not, or the limit on automatic tries would never bite.
      const counts = event.data.by === 'retry' ? { rateLimits: 0, defers: 0, appliedCommands: remember } : {};
      return { ...same, ...counts, status: 'pending', dueAt: event.data.dueAt };
    }
  }
};

export const target: Decider<TargetState, TargetCommand, TargetEvent> = {
  kind: 'target',
  initial: { status: 'none' },
  decide,
  evolve,
};

import type { Plan, PostBody, PostEvent, PostStatus } from '#schemas/post.ts';
import type { TargetTime } from '#schemas/target.ts';
import { type Decider, type Fact, Rejection } from '../decider.ts';
import {
  type CampaignChange,
  changeCampaign,
  type DecidePost,
  decidePost,
  isAwaited,
  keepsApproval,
  type Submission,
  submit,
  submitted,
  withoutLate,
} from './post-approval.ts';
import * as bodies from './post-bodies.ts';
import { decideRecycle, evolveRecycle, type RecycleCommand } from './post-recycle.ts';
import {
  type CancelReason,
  type Intent,
  isMeant,
  type LivePost,
  openOf,
  type PostState,
  type RecycledFrom,
  type TargetOutcome,
  type TargetProgress,
  type Written,
} from './post-state.ts';

/** What a post as a whole is, from what its targets are. */

const standings = (state: LivePost): readonly TargetProgress[] => Object.values(state.targets);

/**
 * The state of the post that follows from its targets. Settled = published, failed or canceled; canceled targets do not
 * count further.
 */
export const statusOf = (state: PostState): PostStatus | null => {
  if (state.status === 'none') return null;
  if (state.status !== 'live') return state.status;
  const all = standings(state);
  const published = all.filter((one) => one.outcome === 'published').length;
  const failed = all.filter((one) => one.outcome === 'failed').length;
  if (all.some((one) => one.outcome === null)) {
    if (published + failed > 0) return 'publishing';
    return isAwaited(state, (id) => state.targets[id]?.outcome === null) ? 'pending_approval' : 'scheduled';
  }
  if (published + failed === 0) return 'canceled';
  if (failed === 0) return 'published';
  return published === 0 ? 'failed' : 'partially_published';
};

/** Instant the first target went out, null while none has. */
export const publishedAtOf = (state: PostState): string | null => {
  if (state.status !== 'live') return null;
  const instants = standings(state).flatMap((one) => one.publishedAt ?? []);
  return instants.sort()[0] ?? null;
};

/**
 * The outcome of the whole post after a settlement; null where the post has no outcome yet, or the outcome is already
 * recorded.
 */
const wholeFact = (state: LivePost): readonly PostEvent[] => {
  const publishedAt = publishedAtOf(state) ?? '';
  switch (statusOf(state)) {
    case 'published':
      return [{ type: 'PostPublished', data: { publishedAt } }];
    case 'failed':
      return [{ type: 'PostFailed', data: {} }];
    case 'partially_published':
      return state.saidPartial ? [] : [{ type: 'PostPartiallyPublished', data: { publishedAt } }];
    case 'canceled':
      return state.saidCanceled ? [] : [{ type: 'PostCanceled', data: { reason: cancelReason(state) } }];
    default:
      return [];
  }
};

type WholeReason = Extract<PostEvent, { type: 'PostCanceled' }>['data']['reason'];

/** An archived client is the reason for the whole; disconnected accounts are where they are it for every target. */
const cancelReason = ({ intents, targets }: LivePost): WholeReason => {
  const cancels = intents.filter((intent) => intent.kind === 'cancel');
  if (cancels.some(({ reason }) => reason === 'client_archived')) return 'client_archived';
  if (cancels.some(({ reason }) => reason === 'approval_rejected')) return 'approval_rejected';
  if (cancels.some(({ reason }) => reason === 'copy_replaced')) return 'copy_replaced';
  const left = new Set(
    cancels
      .filter(({ reason }) => reason === 'account_disconnected')
      .flatMap(({ targetIds, skipped }) => targetIds.filter((id) => !skipped.includes(id))),
  );
  return Object.keys(targets).every((id) => left.has(id)) ? 'account_disconnected' : 'targets_canceled';
};

/**
 * A post: its content, its plan and its outcome. Its law: only a draft is replaced or discarded; partial and canceled
 * are recorded at most once; this stream alone records the outcome of the whole, and only when every target is settled.
 * Longer than other streams: plan, intents and the tally of targets guard each other in one fold.
 */

export { newestBody } from './post-bodies.ts';
export {
  type Intent,
  isApprovedFor,
  isReleasedFor,
  type LivePost,
  lacksIntent,
  type PostState,
  type RecycledFrom,
  type TargetOutcome,
  type TargetProgress,
} from './post-state.ts';

/** A target that is not settled by its own stream, and how far it has carried out the intents of its post. */
export interface UnsettledTarget {
  readonly targetId: string;
  readonly appliedRevision: number;
}

export type PostCommand =
  | (Written & { readonly type: 'Draft' })
  | { readonly type: 'ReplaceDraft'; readonly body: PostBody }
  | (Written & {
      readonly type: 'Schedule';
      readonly commandId: string;
      readonly plan: Plan;
      /** Absent: no approval is required. */
      readonly submission?: Submission;
      /** Absent: the post is no copy of another. */
      readonly recycledFrom?: RecycledFrom;
    })
  | DecidePost
  | {
      readonly type: 'CancelTargets';
      readonly targetIds: readonly string[];
      readonly reason: CancelReason;
    }
  /**
   * Discards a draft, or cancels the unsettled targets of a post: as their streams say, because the post learns later
   * that one was requeued.
   */
  | { readonly type: 'Delete'; readonly unsettled: readonly UnsettledTarget[] }
  | {
      readonly type: 'Revise';
      readonly commandId: string;
      readonly body: PostBody;
      readonly changed: readonly string[];
      readonly targetIds: readonly string[];
      readonly times: readonly TargetTime[] | null;
      /** Absent: neither the post nor its caller needs an approval. */
      readonly submission?: Submission;
    }
  | {
      readonly type: 'RecordSkipped';
      readonly intentRevision: number;
      readonly targets: readonly { readonly targetId: string; readonly reason: string }[];
    }
  | {
      readonly type: 'RecordTargetOutcome';
      readonly targetId: string;
      readonly targetRevision: number;
      readonly outcome: TargetOutcome;
      readonly publishedAt: string | null;
    }
  | { readonly type: 'ReopenTarget'; readonly targetId: string; readonly targetRevision: number }
  | CampaignChange
  | RecycleCommand
  /** Another post takes a reference that this post claimed and does not have. */
  | { readonly type: 'LapseExternalRefClaim'; readonly externalRef: string }
  /** The places of a quota that the next append of this stream needs are given back. */
  | { readonly type: 'Abandon' };

/** Whether the post has this reference now: a claim holds while its post has the reference. */
export const bearsExternalRef = (state: PostState, externalRef: string): boolean =>
  (state.status === 'draft' || state.status === 'live') && state.body.externalRef === externalRef;

/** Whether no target is left that the newest request is about: a person need not decide about it any more. */
export const isBeyondApproval = (state: PostState): boolean =>
  state.status !== 'live' || (state.approval !== null && openOf(state, state.approval.targetIds).length === 0);

const cancelOf = (targetIds: readonly string[], reason: CancelReason): readonly PostEvent[] =>
  targetIds.length === 0
    ? []
    : [{ type: 'PostTargetsChanged', data: { change: { kind: 'cancel', reason }, targetIds: [...targetIds] } }];

const unknown = (): Rejection => new Rejection('not_found', 'There is no such post.');

const decide = (command: PostCommand, state: PostState): readonly PostEvent[] => {
  switch (command.type) {
    case 'Draft': {
      if (state.status !== 'none') return [];
      const { clientId, createdBy, body } = command;
      return [{ type: 'PostDrafted', data: { clientId, createdBy, body } }];
    }
    case 'ReplaceDraft':
      if (state.status === 'none' || state.status === 'discarded') throw unknown();
      if (state.status !== 'draft') throw new Rejection('post_not_draft', 'Only a draft can be replaced.');
      if (JSON.stringify(state.body) === JSON.stringify(command.body)) return [];
      return [{ type: 'DraftReplaced', data: { body: command.body } }];
    case 'Schedule': {
      if (state.status === 'live') {
        if (state.plannedBy === command.commandId) return [];
        throw new Rejection('post_not_draft', 'The post is scheduled already.');
      }
      if (state.status === 'discarded') throw unknown();
      if (command.plan.number !== (state.status === 'draft' ? state.plans : 0) + 1) {
        throw new Rejection('revision_mismatch', 'Another plan was made meanwhile.');
      }
      const { clientId, createdBy, body, plan, submission, recycledFrom } = command;
      const scheduled = { clientId, createdBy, body, plan, ...(recycledFrom === undefined ? {} : { recycledFrom }) };
      if (submission === undefined) return [{ type: 'PostScheduled', data: scheduled }];
      const requests = state.status === 'draft' ? state.requests : 0;
      const all = plan.targets.map(({ targetId }) => targetId);
      return [{ type: 'PostScheduled', data: { ...scheduled, held: true } }, ...submit(submission, requests, all)];
    }
    case 'Release':
    case 'Reject':
    case 'ReturnToDraft': {
      if (state.status === 'none') throw unknown();
      const live = state.status === 'live' ? state : null;
      const planned = Object.keys(live?.targets ?? {});
      return decidePost(command, live?.approval ?? null, (ids) => (live === null ? [] : openOf(live, ids)), planned);
    }
    case 'CancelTargets': {
      if (state.status !== 'live') return [];
      const { targetIds, reason } = command;
      return cancelOf(openOf(state, targetIds), reason);
    }
    case 'Delete': {
      if (state.status === 'none') throw unknown();
      if (state.status === 'discarded') return [];
      if (state.status === 'draft') return [{ type: 'PostDiscarded', data: {} }];
      const left = command.unsettled.filter((one) => !isMeant(state, one.targetId, one.appliedRevision));
      const targetIds = left.map(({ targetId }) => targetId);
      return cancelOf(targetIds, 'post_canceled');
    }
    case 'Revise': {
      if (state.status === 'none' || state.status === 'discarded') throw unknown();
      if (state.status === 'draft') throw new Rejection('post_not_scheduled', 'A draft is replaced, not revised.');
      const { commandId, body, changed, targetIds, times, submission } = command;
      if (state.intents.some((intent) => intent.kind === 'revise' && intent.commandId === commandId)) return [];
      if (targetIds.length === 0) {
        throw new Rejection('target_not_pending', 'No target of the post can be changed any more.');
      }
      const data = { body, changed: [...changed], targetIds: [...targetIds], times: times && [...times] };
      if (submission === undefined || keepsApproval(state, submission, targetIds)) {
        return [{ type: 'PostRevised', data }];
      }
      return [{ type: 'PostRevised', data: { ...data, held: true } }, ...submit(submission, state.requests, targetIds)];
    }
    case 'RecordSkipped': {
      if (state.status !== 'live') return [];
      const { intentRevision } = command;
      const intent = state.intents.find((one) => one.revision === intentRevision);
      const unrecorded = command.targets.filter(
        ({ targetId }) => intent?.targetIds.includes(targetId) && !intent.skipped.includes(targetId),
      );
      return [...Map.groupBy(unrecorded, ({ reason }) => reason)].map(([reason, targets]) => ({
        type: 'PostTargetsSkipped',
        data: { intentRevision, targetIds: targets.map(({ targetId }) => targetId), reason },
      }));
    }
    case 'RecordTargetOutcome': {
      if (state.status !== 'live') return [];
      const { targetId, targetRevision, outcome, publishedAt } = command;
      const known = state.targets[targetId];
      if (known === undefined || targetRevision <= known.revision) return [];
      const settled: PostEvent = {
        type: 'PostTargetSettled',
        data: { targetId, targetRevision, outcome, publishedAt },
      };
      return [settled, ...wholeFact(settle(state, settled.data))];
    }
    case 'ReopenTarget': {
      if (state.status !== 'live') return [];
      const known = state.targets[command.targetId];
      if (known === undefined || command.targetRevision <= known.revision || known.outcome === null) return [];
      const { targetId, targetRevision } = command;
      return [{ type: 'PostTargetReopened', data: { targetId, targetRevision } }];
    }
    case 'JoinCampaign':
    case 'LeaveCampaign':
      if (state.status === 'none' || state.status === 'discarded') throw unknown();
      return changeCampaign(command, state.body.campaignId);
    case 'LapseExternalRefClaim':
      return [{ type: 'PostExternalRefClaimLapsed', data: { externalRef: command.externalRef } }];
    case 'Abandon':
      return [{ type: 'PostAbandoned', data: {} }];
    default:
      if (state.status === 'none' || state.status === 'discarded') throw unknown();
      return decideRecycle(command, { ...state, status: statusOf(state) });
  }
};

const settle = (
  state: LivePost,
  unrecorded: { targetId: string; targetRevision: number; outcome: TargetOutcome; publishedAt: string | null },
): LivePost => ({
  ...state,
  targets: {
    ...state.targets,
    [unrecorded.targetId]: {
      revision: unrecorded.targetRevision,
      outcome: unrecorded.outcome,
      publishedAt: unrecorded.publishedAt,
    },
  },
});

const evolve = (state: PostState, event: PostEvent, fact: Fact): PostState => {
  const evolved = evolvePost(state, event, fact);
  if (evolved.status === 'none') return evolved;
  const next = evolved.status === 'live' ? withBodies(evolved, event) : evolved;
  const recycle = evolveRecycle(next.recycle, event, fact);
  return recycle === next.recycle ? next : { ...next, recycle };
};

/** What is asked for beside the released body stands while a target waits for it, or failed before the approval. */
const withBodies = (state: LivePost, { type }: PostEvent): LivePost => {
  if (type === 'PostRevised') return state;
  if (state.asked === null) return bodies.settled(state);
  // A cancel may come too late, and leave a target that failed: only its outcome tells.
  const isAwaited = state.approval?.targetIds.some((id) => {
    const { outcome } = state.targets[id] ?? { outcome: 'canceled' };
    return outcome === null || outcome === 'failed';
  });
  return isAwaited ? state : { ...state, asked: null };
};

const evolvePost = (state: PostState, event: PostEvent, fact: Fact): PostState => {
  switch (event.type) {
    case 'PostDrafted': {
      const { clientId, createdBy, body } = event.data;
      const written = { clientId, createdBy, body, recycle: null, recycledFrom: null };
      return { status: 'draft', ...written, plans: 0, requests: 0, returned: null };
    }
    case 'DraftReplaced':
      return state.status === 'draft' ? { ...state, body: event.data.body } : state;
    case 'PostDiscarded':
      return state.status === 'draft' ? { ...state, status: 'discarded' } : state;
    case 'PostScheduled': {
      const { clientId, createdBy, body, plan, recycledFrom = null } = event.data;
      const draft = state.status === 'draft' ? state : null;
      const targets = Object.fromEntries(
        plan.targets.map((one): [string, TargetProgress] => [
          one.targetId,
          { revision: -1, outcome: null, publishedAt: null },
        ]),
      );
      return {
        status: 'live',
        clientId,
        createdBy,
        ...bodies.planned(body, fact, event.data.held === true),
        plan,
        plans: plan.number,
        planRevision: fact.revision,
        planEventId: fact.eventId,
        plannedBy: fact.commandId,
        intents: [],
        targets,
        saidPartial: false,
        saidCanceled: false,
        approval: null,
        requests: draft?.requests ?? 0,
        planHeld: event.data.held === true,
        recycle: draft?.recycle ?? null,
        recycledFrom: recycledFrom ?? draft?.recycledFrom ?? null,
      };
    }
    case 'PostCampaignChanged':
      return state.status === 'none' ? state : bodies.withCampaign(state, event.data.campaignId);
    case 'PostReturnedToDraft':
      return state.status === 'live' ? returnedToDraft(state, fact) : state;
    default:
      return state.status === 'live' ? evolveLive(state, event, fact) : state;
  }
};

/** Every target of the plan is canceled; a new plan is made only after that. */
const returnedToDraft = (state: LivePost, fact: Fact): PostState => {
  const { clientId, createdBy, plans, requests, targets, recycle, recycledFrom } = state;
  const cancel: Intent = { ...aimedAt(Object.keys(targets).sort(), fact), kind: 'cancel', reason: 'changes_requested' };
  const returned: LivePost = { ...state, intents: [...state.intents, cancel] };
  const written = { clientId, createdBy, body: bodies.newestBody(state), recycle, recycledFrom };
  return { status: 'draft', ...written, plans, requests, returned };
};

const aimedAt = (targetIds: readonly string[], { revision, eventId }: Fact) =>
  ({ revision, eventId, targetIds, skipped: [] }) as const;

const evolveLive = (state: LivePost, event: PostEvent, fact: Fact): LivePost => {
  switch (event.type) {
    case 'PostTargetsChanged': {
      const { change, targetIds } = event.data;
      const intents = [...state.intents, { ...aimedAt(targetIds, fact), ...change }];
      if (change.reason !== 'approval_rejected' || state.approval === null) return { ...state, intents };
      return { ...state, intents, approval: { ...state.approval, status: 'rejected' }, asked: null };
    }
    case 'PostSubmittedForApproval': {
      // It follows the plan or the revise right before it, in one append.
      const before = fact.revision - 1;
      const intents = state.intents.map(
        (one): Intent => (one.kind === 'revise' && one.revision === before ? { ...one, held: true } : one),
      );
      return { ...bodies.withSubmission(state), ...submitted(state, event.data, fact), intents };
    }
    case 'PostReleased': {
      const { approval } = state;
      if (approval === null) return state;
      const { occurredAt: decidedAt } = fact;
      const intent: Intent = { ...aimedAt(approval.targetIds, fact), kind: 'release', decidedAt };
      const intents = [...state.intents, intent];
      return { ...bodies.withRelease(state), intents, approval: { ...approval, status: 'released' } };
    }
    case 'PostRevised': {
      const { body, targetIds, times } = event.data;
      const { commandId, occurredAt: decidedAt } = fact;
      const intent: Intent = { ...aimedAt(targetIds, fact), kind: 'revise', commandId, body, decidedAt, times };
      // A failed target is open again from here on: until it is requeued, no outcome of the whole is recorded.
      const reopened = targetIds.flatMap((id): [string, TargetProgress][] => {
        const known = state.targets[id];
        return known?.outcome === 'failed' ? [[id, { ...known, outcome: null }]] : [];
      });
      return {
        ...bodies.withRevise(state, body, fact),
        intents: [...state.intents, intent],
        targets: { ...state.targets, ...Object.fromEntries(reopened) },
      };
    }
    case 'PostTargetsSkipped':
      return {
        ...state,
        approval: withoutLate(state.approval, state.intents, event.data),
        intents: state.intents.map((intent) =>
          intent.revision === event.data.intentRevision
            ? { ...intent, skipped: [...intent.skipped, ...event.data.targetIds] }
            : intent,
        ),
      };
    case 'PostTargetSettled':
      return settle(state, event.data);
    case 'PostTargetReopened': {
      const { targetId, targetRevision } = event.data;
      return {
        ...state,
        targets: { ...state.targets, [targetId]: { revision: targetRevision, outcome: null, publishedAt: null } },
      };
    }
    case 'PostPartiallyPublished':
      return { ...state, saidPartial: true };
    case 'PostCanceled':
      return { ...state, saidCanceled: true };
    default:
      return state;
  }
};

export const post: Decider<PostState, PostCommand, PostEvent> = {
  kind: 'post',
  initial: { status: 'none' },
  fences: ['PostExternalRefClaimLapsed', 'PostAbandoned'],
  decide,
  evolve,
};

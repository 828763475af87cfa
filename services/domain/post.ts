import type { Plan, PostBody, PostEvent, PostStatus } from '#schemas/post.ts';
import type { TargetTime } from '#schemas/target.ts';
import { type Decider, type Fact, Rejection } from './decider.ts';

/**
 * A post: its content, its plan and its outcome. Its law: only a draft is replaced or discarded; partial and canceled
 * are recorded at most once; this stream alone records the outcome of the whole, and only when every target is settled.
 * Longer than other streams: plan, intents and the tally of targets guard each other in one fold.
 */

export type TargetOutcome = 'published' | 'failed' | 'canceled';

interface TargetProgress {
  /** Highest revision of the target that was recorded; older outcomes are ignored. */
  readonly revision: number;
  readonly outcome: TargetOutcome | null;
  readonly publishedAt: string | null;
}

/** Why many targets of a post are canceled at once. */
type CancelReason = 'client_archived' | 'account_disconnected' | 'post_canceled';

/** A change for many targets: decided in the post's stream, then carried out on each target. */
export type Intent = {
  readonly revision: number;
  readonly eventId: string;
  readonly targetIds: readonly string[];
  /** Targets for which the intent came too late. It is never applied to them afterwards. */
  readonly skipped: readonly string[];
} & (
  | { readonly kind: 'cancel'; readonly reason: CancelReason }
  | {
      readonly kind: 'revise';
      readonly commandId: string;
      /** As the post goes out on its targets. */
      readonly body: PostBody;
      /** A failed target whose time has passed by then is due then. */
      readonly decidedAt: string;
      /** One for each of `targetIds`, in their order; null: each target keeps its own time. */
      readonly times: readonly TargetTime[] | null;
    }
);

/** A target that is not settled by its own stream, and how far it has carried out the intents of its post. */
export interface UnsettledTarget {
  readonly targetId: string;
  readonly appliedRevision: number;
}

interface Written {
  readonly clientId: string;
  readonly createdBy: { readonly type: string; readonly id: string };
  readonly body: PostBody;
}

export type PostState =
  | { readonly status: 'none' }
  | (Written & { readonly status: 'draft'; readonly plans: number })
  | (Written & { readonly status: 'discarded'; readonly plans: number })
  | (Written & {
      readonly status: 'live';
      readonly plan: Plan;
      /** Revision of the event that holds the plan in force. */
      readonly planRevision: number;
      readonly planEventId: string;
      /** Command that made the plan: a repeat of it is no second publication. */
      readonly plannedBy: string;
      readonly plans: number;
      readonly intents: readonly Intent[];
      readonly targets: Readonly<Record<string, TargetProgress>>;
      readonly saidPartial: boolean;
      readonly saidCanceled: boolean;
    });

export type LivePost = Extract<PostState, { status: 'live' }>;

export type PostCommand =
  | (Written & { readonly type: 'Draft' })
  | { readonly type: 'ReplaceDraft'; readonly body: PostBody }
  | (Written & { readonly type: 'Schedule'; readonly commandId: string; readonly plan: Plan })
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
  /** Another post takes a reference that this post claimed and does not have. */
  | { readonly type: 'LapseExternalRefClaim'; readonly externalRef: string };

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
  if (all.some((one) => one.outcome === null)) return published + failed > 0 ? 'publishing' : 'scheduled';
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
  const left = new Set(
    cancels
      .filter(({ reason }) => reason === 'account_disconnected')
      .flatMap(({ targetIds, skipped }) => targetIds.filter((id) => !skipped.includes(id))),
  );
  return Object.keys(targets).every((id) => left.has(id)) ? 'account_disconnected' : 'targets_canceled';
};

/** Whether the post has this reference now: a claim holds while its post has the reference. */
export const bearsExternalRef = (state: PostState, externalRef: string): boolean =>
  (state.status === 'draft' || state.status === 'live') && state.body.externalRef === externalRef;

/**
 * Whether a cancel that is still to be carried out names the target. One that came too late for the target is over, and
 * so is one up to `applied` that the target carried out: a new intent may name it while it is open.
 */
const isMeant = (state: LivePost, id: string, applied = -1): boolean =>
  state.intents.some(
    ({ kind, revision, targetIds, skipped }) =>
      kind === 'cancel' && revision > applied && targetIds.includes(id) && !skipped.includes(id),
  );

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
      const { clientId, createdBy, body, plan } = command;
      return [{ type: 'PostScheduled', data: { clientId, createdBy, body, plan } }];
    }
    case 'CancelTargets': {
      if (state.status !== 'live') return [];
      const { targetIds, reason } = command;
      const open = targetIds.filter((id) => state.targets[id]?.outcome === null && !isMeant(state, id));
      return cancelOf(open, reason);
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
      const { commandId, body, changed, targetIds, times } = command;
      if (state.intents.some((intent) => intent.kind === 'revise' && intent.commandId === commandId)) return [];
      if (targetIds.length === 0) {
        throw new Rejection('target_not_pending', 'No target of the post can be changed any more.');
      }
      return [
        {
          type: 'PostRevised',
          data: { body, changed: [...changed], targetIds: [...targetIds], times: times === null ? null : [...times] },
        },
      ];
    }
    case 'RecordSkipped': {
      if (state.status !== 'live') return [];
      const { intentRevision } = command;
      const intent = state.intents.find((one) => one.revision === intentRevision);
      const news = command.targets.filter(
        ({ targetId }) => intent?.targetIds.includes(targetId) && !intent.skipped.includes(targetId),
      );
      return [...Map.groupBy(news, ({ reason }) => reason)].map(([reason, targets]) => ({
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
    case 'LapseExternalRefClaim':
      return [{ type: 'PostExternalRefClaimLapsed', data: { externalRef: command.externalRef } }];
  }
};

const settle = (
  state: LivePost,
  news: { targetId: string; targetRevision: number; outcome: TargetOutcome; publishedAt: string | null },
): LivePost => ({
  ...state,
  targets: {
    ...state.targets,
    [news.targetId]: { revision: news.targetRevision, outcome: news.outcome, publishedAt: news.publishedAt },
  },
});

const evolve = (state: PostState, event: PostEvent, fact: Fact): PostState => {
  switch (event.type) {
    case 'PostDrafted': {
      const { clientId, createdBy, body } = event.data;
      return { status: 'draft', clientId, createdBy, body, plans: 0 };
    }
    case 'DraftReplaced':
      return state.status === 'draft' ? { ...state, body: event.data.body } : state;
    case 'PostDiscarded':
      return state.status === 'draft' ? { ...state, status: 'discarded' } : state;
    case 'PostScheduled': {
      const { clientId, createdBy, body, plan } = event.data;
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
        body,
        plan,
        plans: plan.number,
        planRevision: fact.revision,
        planEventId: fact.eventId,
        plannedBy: fact.commandId,
        intents: [],
        targets,
        saidPartial: false,
        saidCanceled: false,
      };
    }
    default:
      return state.status === 'live' ? evolveLive(state, event, fact) : state;
  }
};

const aimedAt = (targetIds: readonly string[], { revision, eventId }: Fact) =>
  ({ revision, eventId, targetIds, skipped: [] }) as const;

const evolveLive = (state: LivePost, event: PostEvent, fact: Fact): LivePost => {
  switch (event.type) {
    case 'PostTargetsChanged': {
      const { change, targetIds } = event.data;
      return { ...state, intents: [...state.intents, { ...aimedAt(targetIds, fact), ...change }] };
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
        ...state,
        body,
        intents: [...state.intents, intent],
        targets: { ...state.targets, ...Object.fromEntries(reopened) },
      };
    }
    case 'PostTargetsSkipped':
      return {
        ...state,
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
  fences: ['PostExternalRefClaimLapsed'],
  decide,
  evolve,
};

import type { Plan, PostBody, PostEvent } from '#schemas/post.ts';
import type { TargetTime } from '#schemas/target.ts';
import type { PostApproval } from './post-approval.ts';
import type { PostBodies } from './post-bodies.ts';
import type { Recycle } from './post-recycle.ts';

/** A post as its stream's fold knows it. */

export type TargetOutcome = 'published' | 'failed' | 'canceled';

export interface TargetProgress {
  /** Highest revision of the target that was recorded; older outcomes are ignored. */
  readonly revision: number;
  readonly outcome: TargetOutcome | null;
  readonly publishedAt: string | null;
}

/** Why many targets of a post are canceled at once. */
export type CancelReason = 'client_archived' | 'account_disconnected' | 'post_canceled' | 'copy_replaced';
type IntendedReason = CancelReason | 'approval_rejected' | 'changes_requested';

/** A change for many targets: decided in the post's stream, then carried out on each target. */
export type Intent = {
  readonly revision: number;
  readonly eventId: string;
  readonly targetIds: readonly string[];
  /** Targets for which the intent came too late. It is never applied to them afterwards. */
  readonly skipped: readonly string[];
} & (
  | { readonly kind: 'cancel'; readonly reason: IntendedReason }
  /** A target whose time has passed by then is due then. */
  | { readonly kind: 'release'; readonly decidedAt: string }
  | {
      readonly kind: 'revise';
      readonly commandId: string;
      /** As the post goes out on its targets. */
      readonly body: PostBody;
      /** A failed target whose time has passed by then is due then. */
      readonly decidedAt: string;
      /** One for each of `targetIds`, in their order; null: each target keeps its own time. */
      readonly times: readonly TargetTime[] | null;
      /** The revised targets wait for the approval of what they became. */
      readonly held?: true;
    }
);

export interface Written {
  readonly clientId: string;
  readonly createdBy: { readonly type: string; readonly id: string };
  readonly body: PostBody;
}

/** The recycled post of which the service made this one. */
export type RecycledFrom = NonNullable<Extract<PostEvent, { type: 'PostScheduled' }>['data']['recycledFrom']>;

interface Recyclable {
  /** Null: nobody has set it. */
  readonly recycle: Recycle | null;
  /** Null: the post is no copy. */
  readonly recycledFrom: RecycledFrom | null;
}

export interface LivePost extends Written, PostBodies, Recyclable {
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
  /** The newest request under this plan; null: none was needed. */
  readonly approval: PostApproval | null;
  readonly requests: number;
  /** The targets of the plan begin held. */
  readonly planHeld: boolean;
}

/** Whether an intent names the target that was neither applied to it nor came too late. */
export const lacksIntent = ({ intents }: LivePost, targetId: string, appliedRevision: number): boolean =>
  intents.some(
    (intent) =>
      intent.revision > appliedRevision && intent.targetIds.includes(targetId) && !intent.skipped.includes(targetId),
  );

/**
 * Whether a cancel that is still to be carried out names the target. One that came too late for the target is over, and
 * so is one up to `applied` that the target carried out: a new intent may name it while it is open.
 */
export const isMeant = (state: LivePost, id: string, applied = -1): boolean =>
  state.intents.some(
    ({ kind, revision, targetIds, skipped }) =>
      kind === 'cancel' && revision > applied && targetIds.includes(id) && !skipped.includes(id),
  );

/** Those of these targets that are not settled and that no cancel names. */
export const openOf = (state: LivePost, targetIds: readonly string[]): readonly string[] =>
  targetIds.filter((id) => state.targets[id]?.outcome === null && !isMeant(state, id));

/** Revisions at which an approval was asked for: of the plan, and of each revise that is held. */
const asksOf = ({ intents, planRevision, planHeld }: LivePost): readonly number[] => [
  ...(planHeld ? [planRevision] : []),
  ...intents.filter((one) => one.kind === 'revise' && one.held === true).map(({ revision }) => revision),
];

/** Whether what was asked for at this revision was approved, and for this target. An approval is for the newest request before it. */
const isApproved = (state: LivePost, targetId: string, ask: number): boolean => {
  const next = asksOf(state).find((revision) => revision > ask) ?? Number.POSITIVE_INFINITY;
  return state.intents.some(
    ({ kind, revision, targetIds }) =>
      kind === 'release' && revision > ask && revision < next && targetIds.includes(targetId),
  );
};

/** Whether the content that a target has at this revision of the post was released: approved for it, or never held. */
export const isReleasedFor = (state: LivePost, targetId: string, postRevision: number): boolean =>
  !asksOf(state).includes(postRevision) || isApproved(state, targetId, postRevision);

/**
 * Whether the released body was released for the account of this target too: its approver may have been shown that
 * nothing of it goes there. A revise of times alone keeps the approval of the content before it.
 */
export const isApprovedFor = (state: LivePost, targetId: string): boolean => {
  const ask = asksOf(state).findLast((revision) => revision <= state.bodyRevision);
  return ask === undefined || isApproved(state, targetId, ask);
};

interface DraftPost extends Written, Recyclable {
  readonly plans: number;
  readonly requests: number;
  /** The plan that an approver sent back, until its targets are canceled and the draft is published again. */
  readonly returned: LivePost | null;
}

export type PostState =
  | { readonly status: 'none' }
  | (DraftPost & { readonly status: 'draft' })
  | (DraftPost & { readonly status: 'discarded' })
  | LivePost;

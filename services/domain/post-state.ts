import type { Plan, PostBody, PostEvent } from '#schemas/post.ts';
import type { TargetTime } from '#schemas/target.ts';
import type { PostApproval } from './post-approval.ts';
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
export type CancelReason = 'client_archived' | 'account_disconnected' | 'post_canceled';
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

export interface LivePost extends Written, Recyclable {
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

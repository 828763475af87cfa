import { type Static, Type } from 'typebox';
import { Actor, type EventOf, Instant, Nullable, Personal, Uuid } from './common.ts';

/** A request for approval: it asks a person whether a post may go out with exactly this content. */

/** SHA-256 of the content that was asked for, in lower-case hex. */
export const ContentHash = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** Longest name of a guest, in characters. */
export const maxGuestName = 100;
/** Longest comment of an approver, in characters. */
export const maxComment = 2000;
const Comment = Type.String({ maxLength: maxComment });

export const withdrawReasons = ['post_changed', 'post_canceled'] as const;
export type WithdrawReason = (typeof withdrawReasons)[number];

export const approvalEvents = {
  ApprovalRequested: Type.Object({
    postId: Uuid,
    /** The client of the post. */
    clientId: Uuid,
    /** 1 for the first request of the post. */
    request: Type.Integer({ minimum: 1 }),
    /** The post as of this revision is what the request shows. */
    postRevision: Type.Integer({ minimum: 0 }),
    contentHash: ContentHash,
    requestedBy: Actor,
    /** When the first target is due as the post was submitted. */
    scheduledAt: Instant,
  }),
  /** A guest of the client may decide through this link until it expires. */
  ApprovalLinkCreated: Type.Object({
    linkId: Uuid,
    expiresAt: Instant,
    /** Version of the secret key from which its token is derived. */
    keyVersion: Type.String({ minLength: 1, maxLength: 20 }),
  }),
  ApprovalLinkRevoked: Type.Object({ linkId: Uuid }),
  /** In the append of a decision, right before it: who the guest says that they are. */
  ApprovalGuestNamed: Type.Object({ clientId: Uuid, linkId: Uuid, name: Personal(maxGuestName) }),
  ApprovalApproved: Type.Object({ decidedBy: Actor, comment: Nullable(Comment) }),
  ApprovalRejected: Type.Object({ decidedBy: Actor, comment: Comment }),
  ApprovalChangesRequested: Type.Object({ decidedBy: Actor, comment: Comment }),
  /** The request is about a content that no longer goes out: also of one that was approved. */
  ApprovalWithdrawn: Type.Object({ reason: Type.Enum(withdrawReasons) }),
} as const;
export type ApprovalEvent = EventOf<typeof approvalEvents>;
export type ApprovalRequest = Static<typeof approvalEvents.ApprovalRequested>;

export const approvalStatuses = ['pending', 'approved', 'rejected', 'changes_requested', 'withdrawn'] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

/** What the approver is shown, in this order. */
export const shownKinds = [
  ...(['account', 'text', 'title', 'file', 'alt_text', 'cover', 'cover_frame'] as const),
  ...(['first_comment', 'setting', 'ai_label', 'bytes'] as const),
] as const;
export type ShownKind = (typeof shownKinds)[number];

import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Uuid } from '#schemas/common.ts';
import { OpenEnum, said } from '#schemas/published.ts';
import { example, exampleActor, exampleHash, examplePost, instants, postIds, publicEvent } from './common.ts';

/** Events of the approval of a post. */

const ids = { approvalId: said(Uuid, 'Id of the request for approval.'), ...postIds };
const exampleIds = { approvalId: example.approvalId, ...examplePost };
const linkId = said(Uuid, 'Id of the link.');
const decided = {
  ...ids,
  decidedBy: said(ActorRef, 'Who decided.'),
  comment: said(Nullable(Type.String({ maxLength: 2000 })), 'What the approver wrote for the author; null: nothing.'),
};
const exampleDecided = { ...exampleIds, decidedBy: exampleActor };

export const WithdrawReason = OpenEnum(
  'ApprovalWithdrawReason',
  ['requested', 'post_changed', 'post_canceled'],
  'requested: a person withdrew the request; post_changed: a caller changed the post, and the request was for the former content; post_canceled: no target of the post is left to approve.',
);

export const approvalPublic = {
  'approval.requested': publicEvent(
    'A caller submitted a post for approval: it waits for a decision.',
    Type.Object({
      ...ids,
      requestedBy: said(ActorRef, 'Who submitted the post.'),
      contentHash: Type.String({
        maxLength: 100,
        description: 'Hash of the exact content that would be published: a changed content has another hash.',
        examples: [exampleHash],
      }),
      scheduledAt: said(Instant, 'When the first target of the post is due.'),
    }),
    { ...exampleIds, requestedBy: exampleActor, contentHash: exampleHash, scheduledAt: instants.due },
  ),
  'approval.approved': publicEvent('An approver approved a post.', Type.Object(decided), {
    ...exampleDecided,
    comment: null,
  }),
  'approval.rejected': publicEvent(
    'An approver rejected a post: its held targets are canceled.',
    Type.Object(decided),
    {
      ...exampleDecided,
      comment: 'Off brand.',
    },
  ),
  'approval.changes_requested': publicEvent(
    'An approver requested changes: the post is a draft again.',
    Type.Object(decided),
    {
      ...exampleDecided,
      comment: 'Please mention the opening hours.',
    },
  ),
  'approval.withdrawn': publicEvent(
    'A request for approval was withdrawn, by a person or because the post was changed.',
    Type.Object({ ...ids, reason: said(WithdrawReason, 'Why the request was withdrawn.') }),
    { ...exampleIds, reason: 'post_changed' },
  ),
  'approval.link_created': publicEvent(
    'An approver made a link through which a guest of the client decides. The event never holds the link itself.',
    Type.Object({ ...ids, linkId, expiresAt: said(Instant, 'When the link stops working.') }),
    { ...exampleIds, linkId: example.linkId, expiresAt: instants.later },
  ),
  'approval.link_revoked': publicEvent(
    'An approver revoked a link before its end: nobody can decide through it any more.',
    Type.Object({ ...ids, linkId }),
    { ...exampleIds, linkId: example.linkId },
  ),
};

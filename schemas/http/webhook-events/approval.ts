import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Uuid } from '#schemas/common.ts';
import { example, exampleActor, exampleHash, examplePost, instants, postIds, publicEvent } from './common.ts';

/** Events of the approval of a post. */

const ids = { approvalId: Uuid, ...postIds };
const exampleIds = { approvalId: example.approvalId, ...examplePost };
const decided = { ...ids, decidedBy: ActorRef, comment: Nullable(Type.String({ maxLength: 2000 })) };
const exampleDecided = { ...exampleIds, decidedBy: exampleActor };

export const approvalPublic = {
  'approval.requested': publicEvent(
    'A post waits for a decision.',
    Type.Object({
      ...ids,
      requestedBy: ActorRef,
      contentHash: Type.String({ maxLength: 100, description: 'Hash of the exact content that would be published.' }),
      scheduledAt: Instant,
    }),
    { ...exampleIds, requestedBy: exampleActor, contentHash: exampleHash, scheduledAt: instants.due },
  ),
  'approval.approved': publicEvent('A post was approved.', Type.Object(decided), { ...exampleDecided, comment: null }),
  'approval.rejected': publicEvent('A post was rejected: its held targets are canceled.', Type.Object(decided), {
    ...exampleDecided,
    comment: 'Off brand.',
  }),
  'approval.changes_requested': publicEvent(
    'Changes were requested: the post is a draft again.',
    Type.Object(decided),
    {
      ...exampleDecided,
      comment: 'Please mention the opening hours.',
    },
  ),
  'approval.withdrawn': publicEvent(
    'A request was withdrawn, by a person or because the post was changed.',
    Type.Object({ ...ids, reason: Type.Enum(['requested', 'post_changed']) }),
    { ...exampleIds, reason: 'post_changed' },
  ),
};

import { birthOf } from '#domain/decider.ts';
import { isDeleted, media } from '#domain/media.ts';
import { openPostsWith } from '#projections/models/post-bodies.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { IdParams } from '#schemas/http/common.ts';
import { MediaDeletion } from '#schemas/http/media.ts';
import { deletedExample } from '../media/examples.ts';
import { type Call, operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { ownStreamToDelete } from '../rows.ts';

/** Posts that an answer names. */
const maxNamed = 10;

/**
 * The append is the deletion: if we die before it, nothing has happened; after it, the media worker removes the files.
 * A post that takes the asset at the same time, which this call cannot see, keeps the files until it is published.
 */
export const deleteMedia = operation({
  id: 'deleteMedia',
  method: 'DELETE',
  path: '/media/{id}',
  tag: 'media',
  summary: 'Delete an asset that no post needs',
  description:
    'The call is refused while a draft, or a post that is not published yet, needs the asset; `postIds` names such posts. After the deletion every other operation answers 404, and deleting the asset again answers the same. The service removes its files, and gives their bytes back, within some minutes. A failed target that needs the asset fails again when it is retried.',
  scope: 'media.manage',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: MediaDeletion,
  codes: ['media_in_use'],
  example: { data: deletedExample },
  handle: async (call) => {
    const { id } = call.params;
    const { events, ...left } = await call.stream(media).act({
      guard: ownStreamToDelete(call, 'media', isDeleted),
      accept: async ({ state }) => {
        if (!isDeleted(state)) await requireUnused(call, id);
      },
      command: () => ({ type: 'Delete' }),
    });
    const deletion = events.find(({ type }) => type === 'MediaDeleted');
    const deletedAt = deletion?.metadata.occurredAt ?? call.now;
    const createdAt = birthOf(media, events)?.metadata.occurredAt ?? deletedAt;
    const revision = deletion?.revision ?? left.revision;
    return {
      data: { id, object: 'media_deletion', deletedAt, createdAt, updatedAt: deletedAt, revision },
      revision,
    };
  },
});

/** @throws Refusal 409 that names posts which need the asset */
const requireUnused = async (
  { deps, workspaceId, behind, principal }: Pick<Call, 'deps' | 'workspaceId' | 'behind' | 'principal'>,
  id: string,
): Promise<void> => {
  if (await behind(['posts'])) throw new Unavailable('The read model of posts is behind.');
  const posts = await openPostsWith(deps.pool, workspaceId, id, maxNamed);
  if (posts.length > 0) {
    const { clientIds } = principal;
    const postIds = posts.flatMap((one) => (clientIds?.includes(one.clientId) === false ? [] : [one.id]));
    throw new Refusal('media_in_use', 'Posts that are not out yet need it.', { extra: { postIds } });
  }
};

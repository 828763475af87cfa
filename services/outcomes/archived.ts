import type { ClientBase, Pool } from 'pg';
import { invite } from '#domain/invite.ts';
import { post } from '#domain/post.ts';
import { openInvitesOf, openTargetsOf } from '#projections/archived-clients.ts';
import { recycledOfClient } from '#projections/post-recycles.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { cancelTargets } from './cancel-targets.ts';

/**
 * Cancels the open targets of an archived client, stops the recycling of its posts and revokes its open invites. The read
 * models that name them may be behind: so the sweeper searches again, at the claim the publisher cancels a target that
 * both missed, and no copy of a recycled post is made for an archived client.
 */

/** Sorts before every id. */
const lowest = '00000000-0000-0000-0000-000000000000';

export interface Archived {
  readonly clientId: string;
  readonly workspaceId: string;
  readonly correlationId: string;
  readonly causationId: string;
}

export const cleanUpArchived = async (
  store: DomainStore,
  pool: Pool | ClientBase,
  { clientId, ...cause }: Archived,
  now: () => number = Date.now,
): Promise<void> => {
  const context = (): CommandContext => serviceContext('outcomes', cause, now());
  for (let after: string | undefined = lowest; after !== undefined; ) {
    const rows: Awaited<ReturnType<typeof openTargetsOf>> = await openTargetsOf(pool, clientId, after);
    for (const { postId, targetIds } of rows) {
      await cancelTargets(store, postId, { targetIds, reason: 'client_archived' }, context);
    }
    after = rows.at(-1)?.postId;
  }
  for (let after: string | undefined = lowest; after !== undefined; ) {
    const ids: readonly string[] = await recycledOfClient(pool, clientId, after);
    for (const id of ids) {
      await execute(store, post, id, { type: 'StopRecycle', reason: 'client_archived' }, context());
    }
    after = ids.at(-1);
  }
  for (let after: string | undefined = lowest; after !== undefined; ) {
    const ids: readonly string[] = await openInvitesOf(pool, clientId, after);
    for (const id of ids) {
      await execute(store, invite, id, { type: 'Revoke', reason: 'client_archived' }, context());
    }
    after = ids.at(-1);
  }
};

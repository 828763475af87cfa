import type { ClientBase, Pool } from 'pg';
import { invite } from '#domain/invite.ts';
import { post } from '#domain/post.ts';
import { openInvitesOf, openTargetsOf } from '#projections/archived-clients.ts';
import { recycledOfClient } from '#projections/post-recycles.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { cancelTargets } from './cancel-targets.ts';
import { eachOfPage, type WalkedPage } from './clean-up-pages.ts';

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

/** The last post or invite of a step that the walk has seen. */
export interface ArchivedProgress {
  readonly step: 'targets' | 'recycles' | 'invites';
  readonly after: string;
}

const nextSteps = { targets: 'recycles', recycles: 'invites', invites: null } as const;

/** Walks one page. @param progress null: the walk begins */
export const cleanUpArchived = async (
  store: DomainStore,
  pool: Pool | ClientBase,
  { clientId, ...cause }: Archived,
  progress: ArchivedProgress | null,
  now: () => number = Date.now,
): Promise<WalkedPage<ArchivedProgress>> => {
  const context = (): CommandContext => serviceContext('outcomes', cause, now());
  const { step, after } = progress ?? { step: 'targets', after: lowest };
  const reason = 'client_archived';
  let last: string | undefined;
  let fault: unknown = null;
  if (step === 'targets') {
    const posts = await openTargetsOf(pool, clientId, after);
    fault = await eachOfPage(posts, ({ postId, targetIds }) =>
      cancelTargets(store, postId, { targetIds, reason }, context),
    );
    last = posts.at(-1)?.postId;
  } else if (step === 'recycles') {
    const ids = await recycledOfClient(pool, clientId, after);
    fault = await eachOfPage(ids, async (id) => {
      await execute(store, post, id, { type: 'StopRecycle', reason }, context());
    });
    last = ids.at(-1);
  } else {
    const ids = await openInvitesOf(pool, clientId, after);
    fault = await eachOfPage(ids, async (id) => {
      await execute(store, invite, id, { type: 'Revoke', reason }, context());
    });
    last = ids.at(-1);
  }
  if (last !== undefined) return { next: { step, after: last }, fault };
  const following = nextSteps[step];
  return { next: following === null ? null : { step: following, after: lowest }, fault };
};

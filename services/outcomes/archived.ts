import type { ClientBase, Pool } from 'pg';
import { invite } from '#domain/invite.ts';
import { post } from '#domain/post.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { fanOut } from '#services/workflows/fan-out.ts';

/**
 * What an archived client leaves behind: open targets are canceled, open invites revoked. Which they are is read from
 * the read models, which may be behind; the sweeper looks again, and what slips through both is canceled at its claim.
 * If we die between intent and fan-out, the post's stream has the intent and its row says that it is behind.
 */

/** NOTE: one with an id has a part of its thread out; it is ended at its claim. */
const openTargets = `
select post_id::text as "postId", array_agg(id::text order by id) as "targetIds"
from read.post_targets
where client_id = $1 and status in ('awaiting_approval', 'pending', 'rate_limited') and external_id is null
  and post_id > $2
group by post_id order by post_id limit 100`;

const openInvites = `
select id::text as id from read.invites
where client_id = $1 and revoked_at is null and expires_at > now() and id > $2 order by id limit 100`;

interface Open {
  readonly postId: string;
  readonly targetIds: string[];
}

/** Before every id. */
export const lowest = '00000000-0000-0000-0000-000000000000';

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
    const rows: Open[] = (await pool.query<Open>(openTargets, [clientId, after])).rows;
    for (const { postId, targetIds } of rows) {
      const intent = await execute(
        store,
        post,
        postId,
        { type: 'CancelTargets', targetIds, reason: 'client_archived' },
        context(),
      );
      faultPoint('outcomes:after-intent');
      await fanOut(store, postId, context(), { loaded: intent });
    }
    after = rows.at(-1)?.postId;
  }
  for (let after: string | undefined = lowest; after !== undefined; ) {
    const rows: { id: string }[] = (await pool.query<{ id: string }>(openInvites, [clientId, after])).rows;
    for (const { id } of rows) {
      await execute(store, invite, id, { type: 'Revoke', reason: 'client_archived' }, context());
    }
    after = rows.at(-1)?.id;
  }
};

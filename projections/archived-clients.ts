import type { ClientBase, Pool } from 'pg';
import { isOpenTarget } from './open-targets.ts';

/** Open work of archived clients: targets that are not under way, and invites that a guest could still accept. */

const isOpenInvite = (i: string): string => `${i}.revoked_at is null and ${i}.expires_at > now()`;

/** The next clients archived since then that have open work. @param afterId the last one seen */
export const archivedWithOpen = async (
  pool: Pool,
  since: Date,
  afterId: string,
): Promise<readonly { readonly id: string; readonly workspaceId: string; readonly revision: number }[]> => {
  const { rows } = await pool.query<{ id: string; workspaceId: string; revision: number }>(
    `select c.id::text as id, c.workspace_id::text as "workspaceId", c.revision::int as revision from read.clients c
     where c.archived_at > $1 and c.id > $2 and (
       exists (select from read.post_targets t where t.client_id = c.id and ${isOpenTarget('t')})
       or exists (select from read.invites i where i.client_id = c.id and ${isOpenInvite('i')}))
     order by c.id limit 500`,
    [since, afterId],
  );
  return rows;
};

/** Open targets of the next posts, by post. @param afterPostId the last one seen */
export const openTargetsOf = async (
  db: Pool | ClientBase,
  clientId: string,
  afterPostId: string,
): Promise<readonly { readonly postId: string; readonly targetIds: string[] }[]> => {
  const { rows } = await db.query<{ postId: string; targetIds: string[] }>(
    `select t.post_id::text as "postId", array_agg(t.id::text order by t.id) as "targetIds" from read.post_targets t
     where t.client_id = $1 and ${isOpenTarget('t')} and t.post_id > $2
     group by t.post_id order by t.post_id limit 100`,
    [clientId, afterPostId],
  );
  return rows;
};

/** Ids of the next open invites. @param afterId the last one seen */
export const openInvitesOf = async (
  db: Pool | ClientBase,
  clientId: string,
  afterId: string,
): Promise<readonly string[]> => {
  const { rows } = await db.query<{ id: string }>(
    `select i.id::text as id from read.invites i
     where i.client_id = $1 and ${isOpenInvite('i')} and i.id > $2 order by i.id limit 100`,
    [clientId, afterId],
  );
  return rows.map(({ id }) => id);
};

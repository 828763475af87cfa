import type { Knex } from 'knex';
import type { ClientBase, Pool } from 'pg';
import { type PostState, publishedAtOf, type RecycledFrom } from '#domain/post/post.ts';
import { type Recycle, recycleWorkAt } from '#domain/post/post-recycle.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { PostStatus } from '#schemas/post.ts';
import { view } from '../shapes.ts';

/** The recycling of posts: the columns of a post's row, and the searches of the worker that makes the copies. */

export interface RecycleColumns {
  /** Null: nobody has set it. */
  readonly recycle: Recycle | null;
  /** Null: the post is no copy. */
  readonly recycled_from: RecycledFrom | null;
  /** When the worker has work with it next; null: it has none. */
  readonly recycle_at: string | null;
}

export const recycleColumns = { recycle: 'jsonb', recycled_from: 'jsonb', recycle_at: 'timestamptz' } as const;

export const recycleIndexes = [
  { on: '(recycle_at, id) where recycle_at is not null' },
  { on: `(client_id, id) where (recycle ->> 'enabled')::bool` },
];

export const recycleOfState = (state: Exclude<PostState, { status: 'none' }>, status: PostStatus): RecycleColumns => ({
  recycle: state.recycle,
  recycled_from: state.recycledFrom,
  recycle_at: recycleWorkAt(state.recycle, status, publishedAtOf(state)),
});

/** A post that the worker looks at, with the instant from which it does, as Postgres writes it. */
export interface RecycleDue {
  readonly id: string;
  readonly at: string;
  readonly workspaceId: string;
}

const lowest = '00000000-0000-0000-0000-000000000000';
export const beforeAllRecycles: RecycleDue = { id: lowest, at: '-infinity', workspaceId: lowest };

/** The longest due first. `$1`: now, `$2`, `$3`: instant and id of the last one seen. */
export const recyclesDueSql = `
select p.id::text as id, p.recycle_at::text as at, p.workspace_id::text as "workspaceId" from ${view('posts')} p
where p.recycle_at is not null and p.recycle_at <= $1 and (p.recycle_at, p.id) > ($2::timestamptz, $3::uuid)
order by p.recycle_at, p.id limit 100`;

export const recyclesDue = async (pool: Pool, now: Date, after: RecycleDue): Promise<readonly RecycleDue[]> =>
  (await pool.query<RecycleDue>(recyclesDueSql, [now, after.at, after.id])).rows;

/**
 * Those of one workspace, whose clock is ahead: the recycled posts of its clients. `$1`: workspace, `$2`: now by its clock, `$3`:
 * id of the last one seen.
 */
export const recyclesDueOfSql = `
select p.id::text as id, p.recycle_at::text as at, p.workspace_id::text as "workspaceId" from ${view('clients')} c
cross join lateral (
  select id, recycle_at, workspace_id from ${view('posts')} o
  where o.client_id = c.id and (o.recycle ->> 'enabled')::bool and o.id > $3::uuid and o.recycle_at <= $2
  order by o.client_id, o.id limit 100) p
where c.workspace_id = $1 order by p.id limit 100`;

export const recyclesDueOf = (
  pool: Pool,
  workspaceId: string,
  now: Date,
  after: RecycleDue,
): Promise<readonly RecycleDue[]> =>
  inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<RecycleDue>(recyclesDueOfSql, [workspaceId, now, after.id]);
    return { commit: true, result: rows };
  });

/** `$1`: client, `$2`: id of the last one seen. */
export const recycledOfClientSql = `
select p.id::text as id from ${view('posts')} p
where p.client_id = $1 and (p.recycle ->> 'enabled')::bool and p.id > $2 order by p.id limit 100`;

/** Ids of the next posts of a client that are recycled. */
export const recycledOfClient = async (
  db: Pool | ClientBase,
  clientId: string,
  after: string,
): Promise<readonly string[]> =>
  (await db.query<{ id: string }>(recycledOfClientSql, [clientId, after])).rows.map(({ id }) => id);

/** A post as the answers about its recycling need it. */
export interface RecycledPost extends Pick<RecycleColumns, 'recycle'> {
  readonly id: string;
  readonly revision: number;
  readonly status: PostStatus;
}

export const getRecycled = async (knex: Knex, workspaceId: string, id: string): Promise<RecycledPost | null> => {
  const query = knex(`${view('posts')} as posts`).select('id', 'revision', 'status', 'recycle');
  return (await query.where({ id, workspace_id: workspaceId }).first<RecycledPost | undefined>()) ?? null;
};

/** Of a post for which nobody has set it, too. */
export const renderRecycle = ({ id, revision, recycle }: Pick<RecycledPost, 'id' | 'revision' | 'recycle'>) => {
  const { everyDays = null, times = null, until = null } = recycle?.settings ?? {};
  return {
    object: 'recycle' as const,
    postId: id,
    enabled: recycle?.enabled ?? false,
    ...{ everyDays, times, until },
    nextAt: recycle?.next?.dueAt ?? null,
    posted: recycle?.posted ?? 0,
    stoppedReason: recycle?.stoppedReason ?? null,
    revision,
  };
};

import type { Knex } from 'knex';
import { capabilities } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { ofClientsAlone } from './client-posts.ts';
import { bodyAtSql } from './post-bodies.ts';

/** Posts that go, or went, to an account with a given text around a given time. */

export interface TextAt {
  readonly accountId: string;
  /** ISO 8601. */
  readonly dueAt: string;
}

export interface Looked {
  readonly workspaceId: string;
  /** Only posts of these clients that go to no other; absent: of all. */
  readonly clientIds?: readonly string[];
}

export interface SameText {
  readonly accountId: string;
  readonly postId: string;
  /** ISO 8601. */
  readonly dueAt: string;
}

/** Targets of one account that are compared, the nearest before the time and the nearest after it. */
const maxCompared = 20;

/** Within `hours` on either side. Two walks of one index for each account, and each body that they show is read once. */
const query = `
  with asked as (
    select * from unnest(?::uuid[], ?::timestamptz[]) as a (account_id, due_at)
  ), near as (
    select a.account_id, t.post_id, t.post_revision, t.due_at from asked a cross join lateral (
      (select post_id, post_revision, due_at from read.post_targets t
       where t.account_id = a.account_id and t.due_at <= a.due_at
         and t.due_at > a.due_at - ? * interval '1 hour' and t.status not in ('canceled', 'failed')
       order by t.due_at desc, t.id desc limit ${maxCompared})
      union all
      (select post_id, post_revision, due_at from read.post_targets t
       where t.account_id = a.account_id and t.due_at > a.due_at
         and t.due_at < a.due_at + ? * interval '1 hour' and t.status not in ('canceled', 'failed')
       order by t.due_at, t.id limit ${maxCompared})
    ) t
  ), same as (
    select t.post_id, t.post_revision from (select distinct post_id, post_revision from near) t
    join read.posts p on p.id = t.post_id
    cross join lateral (select ${bodyAtSql} as body) b
    where p.workspace_id = ?
      and (?::uuid[] is null or ${ofClientsAlone('p')})
      and coalesce(
        case when ? then b.body #>> '{thread,segments,0,content}' end,
        (select v ->> 'contentOverride' from jsonb_array_elements(b.body -> 'variants') v
         where v ->> 'platform' = ? limit 1),
        b.body ->> 'content') = ?
  )
  select distinct on (n.account_id) n.account_id::text as "accountId", post_id::text as "postId",
    n.due_at as "dueAt"
  from near n join same s using (post_id, post_revision) order by n.account_id, n.due_at desc`;

/** For each account the latest such post, if any. */
export const sameTexts = async (
  knex: Knex,
  { workspaceId, clientIds }: Looked,
  platform: Platform,
  text: string,
  hours: number,
  asked: readonly TextAt[],
): Promise<readonly SameText[]> => {
  const limit = clientIds === undefined ? null : [...clientIds];
  const found = await knex.raw(query, [
    asked.map(({ accountId }) => accountId),
    asked.map(({ dueAt }) => dueAt),
    hours,
    hours,
    workspaceId,
    ...Array(4).fill(limit),
    capabilities(platform).thread,
    platform,
    text,
  ]);
  return found.rows.map((row: { accountId: string; postId: string; dueAt: Date }) => ({
    ...row,
    dueAt: row.dueAt.toISOString(),
  }));
};

import type { Knex } from 'knex';
import { capabilities } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { bodyAtSql } from '../models/post-bodies.ts';
import { ofClientsAlone, threeTimes } from '../models/sql.ts';

/** Posts that go, or went, to an account with a given text around a given time. */

export interface TextAt {
  readonly accountId: string;
  readonly platform: Platform;
  /** ISO 8601. */
  readonly dueAt: string;
}

export interface TextOfNetwork {
  readonly platform: Platform;
  readonly text: string;
}

export interface Looked {
  readonly workspaceId: string;
  /** A post that is not looked at; null: none. */
  readonly postId: string | null;
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

/**
 * Whether a network gets the text: the first segment of a thread, where it takes threads, else its own override, else
 * the content. One expression, because Postgres decompresses a body anew for each member that a statement reads.
 */
const getsText = `
  ($threads == true && $.thread.segments[0].content == $text) ||
  (!($threads == true && exists($.thread.segments[0].content)) && (
    exists($.variants[*] ? (@.platform == $platform && @.contentOverride == $text)) ||
    ($.content == $text && !exists($.variants[*] ? (@.platform == $platform && @.contentOverride != null)))))`;

/**
 * Within `hours` on either side. Two walks of one index for each account; its targets are compared from the latest on,
 * until one has the text of the account's network. Accounts of networks without a text are left out.
 * NOTE: `offset 0` keeps Postgres from an index of workspaces for the post: while it knows nothing of a new table it
 * takes one, keeps that plan, and passes all posts of the workspace for each target.
 */
const searchOf = (among: string): string => `
  with asked as materialized (
    select a.account_id, a.due_at, t.looked
    from unnest(?::uuid[], ?::text[], ?::timestamptz[]) as a (account_id, platform, due_at)
    join unnest(?::text[], ?::jsonb[]) as t (platform, looked) using (platform)
  )
  select a.account_id::text as "accountId", found.post_id::text as "postId", found.due_at as "dueAt"
  from asked a cross join lateral (
    select t.post_id, t.due_at
    from (
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
    cross join lateral (select * from read.posts p where p.id = t.post_id offset 0) p
    where p.workspace_id = ? and p.id is distinct from ?::uuid and jsonb_path_match(${bodyAtSql}, ?::jsonpath, a.looked)${among}
    order by t.due_at desc limit 1
  ) found`;

const search = { name: 'same-texts', sql: searchOf('') };
const searchOfClients = { name: 'same-texts-of-clients', sql: searchOf(` and ${ofClientsAlone('p')}`) };

/** For each account the latest post with the text of its network, if any. */
export const sameTexts = async (
  knex: Knex,
  { workspaceId, postId, clientIds }: Looked,
  texts: readonly TextOfNetwork[],
  hours: number,
  asked: readonly TextAt[],
): Promise<readonly SameText[]> => {
  const { name, sql } = clientIds === undefined ? search : searchOfClients;
  const found = await knex
    .raw(sql, [
      asked.map(({ accountId }) => accountId),
      asked.map(({ platform }) => platform),
      asked.map(({ dueAt }) => dueAt),
      texts.map(({ platform }) => platform),
      texts.map(({ platform, text }) => JSON.stringify({ platform, text, threads: capabilities(platform).thread })),
      hours,
      hours,
      workspaceId,
      postId,
      getsText,
      ...(clientIds === undefined ? [] : threeTimes(clientIds)),
    ])
    .options({ name });
  return found.rows.map((row: { accountId: string; postId: string; dueAt: Date }) => ({
    ...row,
    dueAt: row.dueAt.toISOString(),
  }));
};

import type { Knex } from 'knex';
import { capabilities } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { ofClientsAlone, threeTimes } from './client-posts.ts';
import { bodyAtSql } from './post-bodies.ts';

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
 * Whether a body holds one of the texts anywhere. Postgres decompresses a body anew for each member that it reads, so
 * the members of a body are read only where this says that one can match.
 */
const holdsOneOf = `$ ? (@.content == $texts[*] || @.thread.segments[0].content == $texts[*]
  || @.variants[*].contentOverride == $texts[*])`;
const overrideOfNetwork = '$[*] ? (@.platform == $platform).contentOverride';

/**
 * Within `hours` on either side. Two walks of one index for each account; each body that they show is read once, and
 * compared with the text of the account's network. Accounts of networks without a text are left out.
 */
const searchOf = (among: string): string => `
  with asked as (
    select a.account_id, a.due_at, t.platform, t.threads, t.text
    from unnest(?::uuid[], ?::text[], ?::timestamptz[]) as a (account_id, platform, due_at)
    join unnest(?::text[], ?::bool[], ?::text[]) as t (platform, threads, text) using (platform)
  ), near as (
    select a.account_id, t.post_id, t.post_revision, t.due_at, a.platform, a.threads, a.text
    from asked a cross join lateral (
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
  ), shown as materialized (
    select t.post_id, t.post_revision, b.body ->> 'content' as content,
      b.body #>> '{thread,segments,0,content}' as first_segment, b.body -> 'variants' as variants
    from (select distinct post_id, post_revision from near) t
    join read.posts p on p.id = t.post_id
    cross join lateral (select ${bodyAtSql} as body offset 0) b
    where p.workspace_id = ? and jsonb_path_exists(b.body, ?::jsonpath, ?::jsonb)${among}
  )
  select distinct on (n.account_id) n.account_id::text as "accountId", n.post_id::text as "postId",
    n.due_at as "dueAt"
  from near n join shown s using (post_id, post_revision)
  where coalesce(case when n.threads then s.first_segment end,
    jsonb_path_query_first(s.variants, ?::jsonpath, jsonb_build_object('platform', n.platform)) #>> '{}',
    s.content) = n.text
  order by n.account_id, n.due_at desc`;

const search = { name: 'same-texts', sql: searchOf('') };
const searchOfClients = { name: 'same-texts-of-clients', sql: searchOf(` and ${ofClientsAlone('p')}`) };

/** For each account the latest post with the text of its network, if any. */
export const sameTexts = async (
  knex: Knex,
  { workspaceId, clientIds }: Looked,
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
      texts.map(({ platform }) => capabilities(platform).thread),
      texts.map(({ text }) => text),
      hours,
      hours,
      workspaceId,
      holdsOneOf,
      JSON.stringify({ texts: [...new Set(texts.map(({ text }) => text))] }),
      ...(clientIds === undefined ? [] : threeTimes(clientIds)),
      overrideOfNetwork,
    ])
    .options({ name });
  return found.rows.map((row: { accountId: string; postId: string; dueAt: Date }) => ({
    ...row,
    dueAt: row.dueAt.toISOString(),
  }));
};

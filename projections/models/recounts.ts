import type { Row } from '../engine/model.ts';
import { type PostRow, withTargets } from './posts.ts';
import type { TargetRow } from './targets.ts';

/**
 * Columns of a row that are counted from rows of other streams. The owner's row is locked first (see apply.ts), so two
 * transactions that touch children of one owner run the recount one after the other, and the later one sees both. `$1`
 * holds the owners' ids; `o` and `c` are the tables of owners and of children.
 */

export interface Recount {
  /** Model that has the counted columns. */
  readonly owner: string;
  /** Models whose rows are counted; `by` is the column that names the owner. */
  readonly children: readonly { readonly model: string; readonly by: string }[];
  /**
   * The owner with its columns counted from these children, where no other row is needed: when an owner and all its
   * children are created in one batch, no other row can count. Must agree with the statements.
   */
  readonly countCreated?: (owner: Row<object>, children: readonly Row<object>[]) => Row<object>;
  /** Statements in order. `table` gives the table of a model in the version that is written. */
  readonly statements: (table: (model: string) => string) => readonly string[];
}

/**
 * Recounts a client's accounts and wipes them after an erasure. Accounts are other streams on other partitions, so an
 * account event that was decoded before the key was destroyed may be applied after ClientErased. Both transactions hold
 * the client's row here, so the later one wipes, and a replay ends with the same rows. The work grows with the accounts
 * of one client alone: 10,000 are 217 blocks for each of their events, and one write of them all at the erasure.
 * NOTE: `offset 0`, or Postgres counts a second time for the comparison.
 */
export const clientAccounts: Recount = {
  owner: 'clients',
  children: [{ model: 'accounts', by: 'client_id' }],
  statements: (table) => [
    `update ${table('clients')} o set account_count = c.n
     from (
       select u.id, (
         select count(*)::int from ${table('accounts')} a
         where a.client_id = u.id and a.status in ('connected', 'reauth_required')) as n
       from unnest($1::uuid[]) u(id) offset 0
     ) c
     where o.id = c.id and o.account_count <> c.n`,
    `update ${table('accounts')} a set username = null, display_name = null, avatar_url = null
     from ${table('clients')} o
     where o.id = any($1::uuid[]) and o.erased and a.client_id = o.id
       and (a.username is not null or a.display_name is not null or a.avatar_url is not null)`,
  ],
};

/** Targets that an intent names and can still reach. Only posts with an intent pay for the count. */
const intentLags = (targets: string): string => `
  exists (
    select 1
    from jsonb_array_elements(o.intents) i
    join ${targets} t on t.post_id = o.id and t.post_revision >= coalesce(o.plan_revision, 0)
      and i -> 'targetIds' ? t.id::text and not i -> 'skipped' ? t.id::text
    where t.status = any (case i ->> 'kind'
        when 'release' then array['awaiting_approval']
        when 'revise' then array['awaiting_approval', 'pending', 'failed']
        else array['awaiting_approval', 'pending', 'rate_limited', 'handed_to_platform'] end)
      and t.applied_revision < (i ->> 'revision')::int)`;

/**
 * A post's targets of the plan in force. The same in TypeScript: `withTargets` in posts.ts. NOTE: post by post
 * (lateral): as a join Postgres may read the whole table of targets for each batch, and does so as long as it has no
 * statistics. A post has at most 500 targets.
 */
export const postTargetCounts: Recount = {
  owner: 'posts',
  children: [{ model: 'post_targets', by: 'post_id' }],
  countCreated: (owner, children) => withTargets(owner as PostRow, children as readonly TargetRow[]),
  statements: (table) => [
    `update ${table('posts')} o set
       counts = c.counts, publishing_count = c.publishing, scheduled_at = c.due, platforms = c.platforms,
       target_count = c.total,
       fan_out_behind = c.total < o.planned or (o.intents <> '[]' and ${intentLags(table('post_targets'))})
     from (
       select p.id, counted.*
       from ${table('posts')} p cross join lateral (
         select coalesce(sum(n), 0)::int as total,
           jsonb_build_object('total', coalesce(sum(n), 0)) || coalesce(jsonb_object_agg(status, n), '{}') as counts,
           coalesce(sum(n) filter (where status in ('publishing', 'processing')), 0)::int as publishing,
           coalesce(min(due) filter (where status <> 'canceled'), min(due)) as due,
           coalesce(
             (select array_agg(distinct one order by one) from unnest(string_to_array(string_agg(platforms, ','), ',')) one),
             '{}') as platforms
         from (
           select t.status, count(*) as n, min(t.due_at) as due, string_agg(distinct t.platform, ',') as platforms
           from ${table('post_targets')} t
           where t.post_id = p.id and t.post_revision >= p.plan_revision
           group by t.status
         ) by_status
       ) counted
       where p.id = any($1::uuid[])
     ) c
     where o.id = c.id and o.revision >= 0`,
  ],
};

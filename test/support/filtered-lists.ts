import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import type { PostFilters } from '#projections/queries/post-queries.ts';
import type { TargetFilters } from '#projections/queries/target-queries.ts';
import { platforms } from '#schemas/common.ts';
import { vacuumed } from './vacuum.ts';

/**
 * One workspace with many posts of ten targets each, straight into the read tables, and the values by which its lists
 * are filtered: of each filter one that nearly every row has, a rare one and one that no row has.
 *
 * Half of the posts are of one client. The last twentieth is still to come. No target on linkedin has failed, and only
 * every 5,000th post goes to telegram: a query that walks one index and filters by the other member passes everything.
 */

const uuidOf = (text: string): string => {
  const hex = createHash('md5').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
};
export const workspaceId = uuidOf('workspace');
const clientOf = (number: number): string => uuidOf(`client${number}`);
const accountOf = (client: number, platform: string): string => uuidOf(`account${client}${platform}`);
const campaignOf = (number: number): string => uuidOf(`campaign${number}`);
const nowhere = uuidOf('nowhere');
const [big, tiny] = [0, 99];
const start = Date.UTC(2026, 0, 1);
/** A post each minute. */
const minute = (n: number): string => new Date(start + n * 60_000).toISOString();

/** Posts that one statement inserts with their targets: the pool gives a statement 30 seconds. */
const slice = 10_000;

export const fillLists = async (pool: Pool, posts: number): Promise<void> => {
  const future = Math.floor(posts * 0.95);
  await pool.query(
    `create temporary table made as
     select n, md5('post' || n)::uuid as id, '2026-01-01'::timestamptz + n * interval '1 minute' as at,
       case when n % 10000 = 7 then ${tiny} when n % 2 = 0 then ${big} else 1 + n % 97 end as client
     from generate_series(1, ${posts}) n`,
  );
  for (let after = 0; after < posts; after += slice) {
    await pool.query(
      `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
       platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, published_at, post_revision,
       applied_revision, next_action_at, overdue)
     select md5('target' || n || '-' || j)::uuid, $1, 2, at, at, id, md5('client' || client)::uuid,
       md5('account' || client || platform || case when platform = names[j] then '' else 'second' end)::uuid, platform,
       status, at, 'UTC', 0, 'managed', 1, 0, case when status = 'published' then at end, 0, 0,
       case when status = 'pending' then at end, false
     from made, lateral (select $2::text[] as names) l, generate_series(1, 10) j,
       lateral (select case when names[j] = 'telegram' and n % 5000 <> 0 then 'x' else names[j] end as platform) p,
       lateral (select case
         when n > ${future} then case when n % 50 = 0 then 'awaiting_approval' else 'pending' end
         when platform <> 'linkedin' and (n * 10 + j) % 97 = 0 then 'failed'
         when (n * 10 + j) % 1009 = 0 then 'canceled'
         when n % ${Math.floor(posts / 3)} = 5 then 'outcome_unknown'
         else 'published' end as status) s
     where n > $3 and n <= $4`,
      [workspaceId, platforms, after, after + slice],
    );
  }
  await pool.query(
    `insert into read.posts_v1 (id, workspace_id, revision, created_at, updated_at, client_id, status, body, created_by,
       plan_revision, plans, planned, intents, standings, campaign_id, external_ref, scheduled_at, published_at, counts,
       publishing_count, platforms, target_count, fan_out_behind, searched, searched_revision)
     select m.id, $1, 2, at - interval '1 day', at, md5('client' || client)::uuid,
       case when n > ${future} then case when n % 10 = 0 then 'draft' else 'scheduled' end
         when n % 500 = 0 then 'failed' when n % 11 = 0 then 'partially_published' else 'published' end,
       jsonb_build_object('content', 'A post of ordinary length, number ' || n, 'variants', '[]'::jsonb,
         'targetSelection', jsonb_build_object('accountIds', null)),
       '{}', 0, 1, 10, '[]', '{}',
       case when n % 3 = 0 then md5('campaign0')::uuid when n % 5000 = 1 then md5('campaign9')::uuid end, 'REF-' || n, at,
       case when n <= ${future} then at end, '{"total": 10}', 0, t.platforms, 10, false,
       lower('A post of ordinary length, number ' || n), 2
     from made m join (select post_id, array_agg(distinct platform order by platform) as platforms
       from read.post_targets_v1 group by post_id) t on t.post_id = m.id`,
    [workspaceId],
  );
  await vacuumed(pool, 'read.posts_v1');
  await vacuumed(pool, 'read.post_targets_v1');
};

type Values<Filters> = { readonly [Name in string]: readonly Filters[] };

/** Filters of both lists. */
const valuesOfBoth = (posts: number) => ({
  client: [{ clientId: clientOf(big) }, { clientId: clientOf(tiny) }, { clientId: nowhere }],
  externalRef: [{ externalRef: `REF-${posts >> 1}` }, { externalRef: 'nowhere' }],
  time: [
    { from: minute(0), to: minute(posts + 1) },
    { from: minute(posts >> 1), to: minute((posts >> 1) + 60) },
    { from: minute(posts - 30) },
    { to: minute(0) },
  ],
  limit: [
    { clientIds: [clientOf(big), clientOf(tiny)] },
    { clientIds: [clientOf(tiny)] },
    { clientIds: Array.from({ length: 97 }, (_, n) => clientOf(n + 1)) },
  ],
});

/** By the name of each filter. */
export const targetValues = (posts: number): Values<TargetFilters> => ({
  ...valuesOfBoth(posts),
  status: [
    { statuses: ['published'] },
    { statuses: ['failed'] },
    { statuses: ['outcome_unknown'] },
    { statuses: ['rate_limited'] },
    { statuses: ['failed', 'rate_limited', 'outcome_unknown'] },
  ],
  platform: [
    { platforms: ['x'] },
    { platforms: ['telegram'] },
    { platforms: ['linkedin'] },
    { platforms: ['x', 'telegram'] },
  ],
  account: [
    { accountId: accountOf(big, 'linkedin') },
    { accountId: accountOf(big, 'telegram') },
    { accountId: accountOf(tiny, 'x') },
    { accountId: nowhere },
  ],
  post: [{ postId: uuidOf(`post${posts >> 1}`) }],
});

export const postValues = (posts: number): Values<PostFilters> => ({
  ...valuesOfBoth(posts),
  status: [
    { statuses: ['published'] },
    { statuses: ['failed'] },
    { statuses: ['canceled'] },
    { statuses: ['draft', 'scheduled'] },
    { statuses: ['failed', 'partially_published'] },
  ],
  platform: [{ platforms: ['x'] }, { platforms: ['telegram'] }, { platforms: ['x', 'telegram'] }],
  campaign: [{ campaignId: campaignOf(0) }, { campaignId: campaignOf(9) }, { campaignId: nowhere }],
});

/** Each value of each filter alone, and with each value of each other filter. */
export const singlesAndPairs = <Filters extends object>(
  values: Values<Filters>,
): readonly { readonly name: string; readonly filters: Filters }[] => {
  const all = Object.entries(values).flatMap(([name, some]) => some.map((filters, n) => ({ name, n, filters })));
  const singles = all.map(({ name, n, filters }) => ({ name: `${name} ${n}`, filters }));
  const pairs = all.flatMap((one, at) =>
    all
      .slice(at + 1)
      .filter((other) => other.name !== one.name)
      .map((other) => ({
        name: `${one.name} ${one.n} + ${other.name} ${other.n}`,
        filters: { ...one.filters, ...other.filters },
      })),
  );
  return [...singles, ...pairs];
};

/**
 * SQL of what a credential limited to clients may see of the read model of posts: those of its clients that go to no
 * other. Where targets are not written yet, as of a draft, the accounts that the post names count.
 * NOTE: the targets are not looked up by `not exists`: Postgres may read all of them into a hash for it. Of
 * `(select …) is null` it expects that few rows pass, and sorts all of them for a page.
 */
import type { Knex } from 'knex';
import type { PostKind } from '#domain/best-times.ts';
import { platformsWithUses, useOf } from '#domain/platforms/index.ts';
import { undoClosesMs } from '#domain/post/scheduling.ts';
import { nowSql } from '#runtime/work/sandbox-clocks.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind } from '#schemas/media.ts';
import { ownProjections, view } from '../shapes.ts';
import { bodyAtSql } from './post-bodies.ts';

/**
 * Whether a post goes to accounts of these clients alone. `?`: the clients, twice.
 * @param posts alias of the view of posts
 */
export const goesToClientsAlone = (posts: string): string =>
  `coalesce((
    select false from ${view('post_targets')} o where o.post_id = ${posts}.id and o.client_id <> all(?::uuid[]) limit 1), true)
  and ((${posts}.status <> 'draft' and not ${posts}.fan_out_behind)
    or ${posts}.body #> '{targetSelection,accountIds}' = 'null' or not exists (
      select from jsonb_array_elements_text(${posts}.body #> '{targetSelection,accountIds}') named
      join ${view('accounts')} a on a.id = named::uuid where a.client_id <> all(?::uuid[])))`;

/** The post is also of one of them. `?`: the clients, three times. */
export const ofClientsAlone = (posts: string): string =>
  `${posts}.client_id = any(?::uuid[]) and ${goesToClientsAlone(posts)}`;

/** What `goesToClientsAlone` is bound to. */
export const twice = (clientIds: readonly string[]): readonly string[][] => [[...clientIds], [...clientIds]];

/** What `ofClientsAlone` is bound to. */
export const threeTimes = (clientIds: readonly string[]): readonly string[][] => [[...clientIds], ...twice(clientIds)];

/**
 * Targets that a change of many may still cancel. A target with an external id has published a part of its thread; the
 * publisher ends it at its claim. One that its network has, or that is being handed over to it, is open until the network
 * publishes it too soon to take it back.
 */
export const isOpenTarget = (t: string): string =>
  `(${t}.status in ('awaiting_approval', 'pending', 'rate_limited') and ${t}.external_id is null
    or (${t}.status = 'handed_to_platform'
        or ${t}.status in ('publishing', 'outcome_unknown') and ${t}.schedule_mode = 'native' and ${t}.external_id is null)
      and ${t}.undo is distinct from 'pending'
      and ${t}.due_at >= ${nowSql(`${t}.workspace_id`)} + ${undoClosesMs} * interval '1 millisecond')`;

/**
 * Whether the network of a target is asked what became of it.
 * @param t alias of the view of targets; absent: columns alone, as in an index
 */
export const isAskedSql = (t?: string): string =>
  `(${t === undefined ? '' : `${t}.`}status = any ('{outcome_unknown,processing}'::text[]))`;

/**
 * SQL of the campaign that a post shows: none once the campaign is deleted. The row keeps it, as the events do.
 * NOTE: not as `exists`: Postgres may read all deleted campaigns into a hash for it.
 * @param posts name or alias of the view of posts
 */
export const shownCampaignOf = (posts: string): string =>
  `case when ${posts}.campaign_id is not null
     and (select c.deleted_at from ${view('campaigns')} c where c.id = ${posts}.campaign_id) is null
   then ${posts}.campaign_id end`;

interface Row {
  readonly id: string;
  readonly platform: Platform;
  readonly requestedType: string | null;
  readonly files: number;
  /** Kind of the first file; null where the post has no file or the file's row is gone. */
  readonly kind: MediaKind | null;
}

const kindOf = ({ platform, requestedType, files, kind }: Row): PostKind => {
  const kinds = Array.from({ length: files }, () => kind ?? 'image');
  const use = useOf(platform, { contentType: requestedType ?? undefined }, kinds);
  return use === 'reel' || use === 'story' ? use : 'feed';
};

/**
 * The kind as which each published target went out. A target that is absent from the result went to the feed. No
 * network that has reels or stories has threads. Postgres picks the few values from each body, since a body may hold
 * the texts of all networks.
 * @param targetIds bounded by the caller: each id costs three reads by key
 */
export const postKinds = async (
  knex: Knex,
  workspaceId: string,
  targetIds: readonly string[],
): Promise<ReadonlyMap<string, PostKind>> => {
  if (targetIds.length === 0) return new Map();
  const found = await knex.raw<{ rows: readonly Row[] }>(
    `select t.id, t.platform, v.variant -> 'overrides' ->> 'contentType' as "requestedType",
       coalesce(jsonb_array_length(f.ids), 0)::int4 as files, m.kind
     from ${view('post_targets')} t
     join ${view('posts')} p on p.id = t.post_id
     cross join lateral (select ${bodyAtSql} as body) b
     left join lateral (
       select one as variant from jsonb_array_elements(b.body -> 'variants') one
       where one ->> 'platform' = t.platform limit 1) v on true
     cross join lateral (
       select coalesce(nullif(v.variant -> 'mediaIdsOverride', 'null'), b.body -> 'mediaIds') as ids) f
     left join ${view('media')} m on m.id = (f.ids ->> 0)::uuid and m.workspace_id = t.workspace_id
     where t.workspace_id = ? and t.id = any(?::uuid[]) and t.platform = any(?)`,
    [workspaceId, [...targetIds], [...platformsWithUses]],
  );
  return new Map(found.rows.map((row) => [row.id, kindOf(row)]));
};

/**
 * SQL: whether power may have been taken that the read model of workspaces, keys and grants does not show, so that the
 * streams decide. It is so while the row of a withdrawal stands, and of a stream of which the live tables have parked or
 * skipped an event: their row shows the state before that event, however fresh the others are.
 * @param subjects SQL of the ids, by the kind of their streams
 */
export const isWithdrawnSql = (subjects: Readonly<Record<string, string>>): string => {
  const ids = Object.values(subjects).join(', ');
  const streams = Object.entries(subjects)
    .map(([kind, id]) => `'${kind}-' || ${id}`)
    .join(', ');
  const setAside = (table: string): string => `exists (
      select from ${ownProjections} l join ops.${table} e on e.consumer_group = 'projection-' || l.name || '-v' || l.live
      where l.name = 'workspaces' and e.stream in (${streams}))`;
  return `(exists (select from auth.withdrawals t where t.subject in (${ids}))
    or ${setAside('parked_events')} or ${setAside('skipped_events')})`;
};

/**
 * The instant that counts. What was published counts from its publication, what its network will publish from its time.
 * While an attempt is under way it counts from its last step, and while its outcome is unknown from the time of the first
 * question, which is just behind the call. A thread that has ended, or waits, with segments out counts from its last
 * change, and what its network processes from the acceptance.
 */
export const slotAtSql = `(case when published_at is not null then published_at
  when schedule_mode = 'native' then due_at
  when status in ('publishing', 'outcome_unknown') then next_action_at
  when segments is not null or status = 'processing' then updated_at
  else coalesce(retry_at, due_at) end)`;

/**
 * How a target's row counts against the limits of its account. Indexes are made of these expressions, and a query uses
 * them only where it has the same text.
 */
export const countedSql = `(status <> all ('{failed,canceled}'::text[]) or segments is not null)`;

/** Deferred, for whatever reason. */
export const waitingSql = `status = 'pending' and failure is not null`;

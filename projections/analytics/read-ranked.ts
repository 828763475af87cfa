import { interactionParts } from '#domain/engagement.ts';
import type { Platform } from '#schemas/common.ts';
import { counters } from '#schemas/insights.ts';
import { instantsOf } from './instants.ts';
import { paramsOf, whereOf } from './read-grains.ts';
import type { Filters, Ranked, RankedAfter, RankedPosts, SortMetric, TopPost, Window } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import { columnOf, type TableName } from './tables.ts';

/** Posts ranked by a figure: the newest observation of each target counts, as in the reads of posts. */

const parts = interactionParts.map(columnOf);
/** Must equal `interactionsOf`. */
const interactions = `coalesce(if(coalesce(${parts.join(', ')}) is null, null,
    ${parts.map((one) => `ifNull(${one}, 0)`).join(' + ')}), total_interactions)`;
const isRated = `(${interactions}) is not null and impressions is not null`;

/** The figure of a target and its divisor: a target that lacks either has no rate. */
const ofTarget = (sort: SortMetric): string =>
  sort === 'engagementRate'
    ? `tuple(if(${isRated}, ${interactions}, null), if(${isRated}, impressions, null))`
    : `tuple(${columnOf(sort)})`;

const ofPost = (sort: SortMetric): string =>
  sort === 'engagementRate' ? 'if(sum(held.2) > 0, sum(held.1) / sum(held.2), null)' : 'sum(held.1)';

/** A tuple keeps a null: a bare `argMax` would skip an observation that lacks the figure. */
const ranked =
  (sort: SortMetric, filters: Filters, isNarrowed: boolean, after: RankedAfter | null) =>
  (name: (table: TableName) => string): string => {
    const type = sort === 'engagementRate' ? 'Float64' : 'Int64';
    return `
  select toString(post_id) as id, ${ofPost(sort)} as value, toUnixTimestamp64Milli(min(published))
  from (
    select post_id, target_id, any(published_at) as published,
      argMax(${ofTarget(sort)}, (observed_at, version)) as held
    from ${name('post_days')}
    where ${['workspace_id = {workspace:UUID}', ...whereOf(filters)].join(' and ')}
      and published_at >= fromUnixTimestamp64Milli({first:Int64}, 'UTC')
      and day between toDate(fromUnixTimestamp64Milli({first:Int64}, 'UTC')) - 1 and {to:Date}
      and observed_at <= fromUnixTimestamp64Milli({seen:Int64}, 'UTC')
      ${isNarrowed ? 'and post_id in {posts:Array(UUID)}' : ''}
    group by post_id, target_id
  )
  group by post_id
  having value is not null ${after === null ? '' : `and (value, id) < ({value:${type}}, {id:String})`}
  order by value desc, id desc limit {limit:UInt32}`;
  };

export const sortMetrics: readonly SortMetric[] = [...counters, 'engagementRate'];

/**
 * Posts with a target published since the window began, the highest figure first. Posts without the figure are left
 * out.
 */
export const readRanked = async (
  store: AnalyticsStore,
  workspaceId: string,
  { since, to, seenBy, filters, posts }: RankedPosts,
  sort: SortMetric,
  { after, limit }: { readonly after: RankedAfter | null; readonly limit: number },
): Promise<readonly Ranked[]> => {
  const rows = await readRows(store, ranked(sort, filters, posts !== undefined, after), {
    ...paramsOf(workspaceId, { from: to, to }, filters),
    first: String(Date.parse(since)),
    seen: String(Date.parse(seenBy)),
    limit,
    ...(posts === undefined ? {} : { posts }),
    ...(after === null ? {} : { value: after.value, id: after.id }),
  });
  return rows.map(([id, value, publishedAt]) => ({
    id: String(id),
    value: String(value),
    publishedAt: isoOf(publishedAt) ?? '',
  }));
};

const topOf =
  (filters: Filters) =>
  (name: (table: TableName) => string): string =>
    `
  select toString(post_id), toUnixTimestamp64Milli(min(published)), arraySort(groupUniqArray(network)),
    sum(held.1), sum(held.2) as interactions, if(sum(held.4) > 0, sum(held.3) / sum(held.4), null)
  from (
    select post_id, target_id, any(published_at) as published, any(platform) as network,
      argMax(tuple(impressions, ${interactions}, if(${isRated}, ${interactions}, null), if(${isRated}, impressions, null)),
        (observed_at, version)) as held
    from ${name('post_days')}
    where ${['workspace_id = {workspace:UUID}', ...whereOf(filters)].join(' and ')}
      and published_at >= fromUnixTimestamp64Milli({first:Int64}, 'UTC')
      and published_at < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
      and day between {from:Date} - 1 and {to:Date}
    group by post_id, target_id
  )
  group by post_id
  having interactions is not null
  order by interactions desc, sum(held.1) desc nulls last, toString(post_id)
  limit {limit:UInt32}`;

export const readTop = async (
  store: AnalyticsStore,
  workspaceId: string,
  window: Window,
  timezone: string,
  filters: Filters,
  limit: number,
): Promise<readonly TopPost[]> => {
  const { from, to } = instantsOf(window, timezone);
  const rows = await readRows(store, topOf(filters), {
    ...paramsOf(workspaceId, window, filters),
    ...{ first: String(Date.parse(from)), end: String(Date.parse(to)), limit },
  });
  return rows.map(([id, publishedAt, platforms, impressions, held, rate]) => ({
    postId: String(id),
    publishedAt: isoOf(publishedAt) ?? '',
    platforms: platforms as Cell | readonly Platform[] as readonly Platform[],
    impressions: numberOf(impressions),
    interactions: numberOf(held),
    engagementRate: numberOf(rate),
  }));
};

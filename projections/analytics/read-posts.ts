import { interactionsOf } from '#domain/engagement.ts';
import type { Platform } from '#schemas/common.ts';
import { counters, type PostFigures } from '#schemas/metrics.ts';
import type { Filters, PostFiguresRow, WentOut } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import { columnOf, type TableName } from './tables.ts';
import { rateOf } from './totals.ts';

/** Reads of single posts: lifetime figures of each target, of its newest observation. */

/**
 * Rows of each target's newest day alone. Which day that is is read first, from the key: the other columns are many, and
 * the days before it too.
 * @param where names the rows; it stands in both reads
 */
const newestDay = (columns: string, table: string, where: string): string => `
  select ${columns} from ${table}
  where ${where} and (target_id, day) in (
    select target_id, argMax(day, observed_at) from ${table} where ${where} group by target_id)
  order by post_id, target_id, version desc limit 1 by post_id, target_id`;

const lifetime = (name: (table: TableName) => string): string =>
  newestDay(
    `post_id, target_id, platform, day, toUnixTimestamp64Milli(observed_at), toUnixTimestamp64Milli(removed_at),
      fetched, more, ${counters.map(columnOf).join(', ')}`,
    name('post_days'),
    // A zone that was changed may have put the first look a day before the post went out.
    `workspace_id = {workspace:UUID} and post_id in {posts:Array(UUID)}
      and published_at between fromUnixTimestamp64Milli({first:Int64}, 'UTC') and fromUnixTimestamp64Milli({last:Int64}, 'UTC')
      and day between toDate(fromUnixTimestamp64Milli({first:Int64}, 'UTC')) - 1 and {to:Date}
      and observed_at <= fromUnixTimestamp64Milli({seen:Int64}, 'UTC')`,
  );

/** Absent where nobody asked, null where the network does not tell. */
const figuresOf = (fetched: number, more: string, cells: readonly Cell[]): PostFigures => {
  const told = counters.flatMap((counter, bit) =>
    Math.floor(fetched / 2 ** bit) % 2 === 1 ? [[counter, numberOf(cells[bit])] as const] : [],
  );
  return { ...Object.fromEntries(told), ...(JSON.parse(more) as PostFigures) };
};

const rowOf = (cells: readonly Cell[]): PostFiguresRow => {
  const [postId, targetId, platform, day, observedAt, removedAt, fetched, more, ...counts] = cells;
  const figures = figuresOf(numberOf(fetched) ?? 0, String(more), counts);
  return {
    postId: String(postId),
    targetId: String(targetId),
    platform: platform as Platform,
    figures: { ...figures, platformRemovedAt: isoOf(removedAt) },
    engagementRate: rateOf(interactionsOf(figures), figures.impressions ?? null),
    fetchedAt: isoOf(observedAt) ?? '',
    day: String(day),
  };
};

const endOfTime = '2200-01-01T00:00:00.000Z';

export const readPosts = async (
  store: AnalyticsStore,
  workspaceId: string,
  posts: readonly WentOut[],
  to: string,
  seenBy = endOfTime,
): Promise<readonly PostFiguresRow[]> => {
  if (posts.length === 0) return [];
  const rows = await readRows(store, lifetime, {
    workspace: workspaceId,
    posts: posts.map(({ id }) => id),
    first: String(Math.min(...posts.map(({ first }) => Date.parse(first)))),
    last: String(Math.max(...posts.map(({ last }) => Date.parse(last)))),
    to,
    seen: String(Date.parse(seenBy)),
  });
  return rows.map(rowOf);
};

/** What became of a published post on one of its accounts. */
export interface Engaged {
  readonly postId: string;
  readonly accountId: string;
  readonly platform: Platform;
  /** ISO 8601. */
  readonly publishedAt: string;
  readonly interactions: number | null;
  readonly impressions: number | null;
}

/** The newest so many are enough to tell times apart. */
const mostEngaged = 5_000;

const engagement = [
  'impressions',
  'totalInteractions',
  'likes',
  'comments',
  'shares',
  'saves',
  'reposts',
  'quotes',
] as const;

/** Targets whose last observation is a day after they went out, or later: younger ones have not got what they will get. */
const engaged =
  ({ clientId, platforms }: Filters) =>
  (name: (table: TableName) => string): string =>
    `
  select post_id, account_id, platform, toUnixTimestamp64Milli(published_at), ${engagement.map(columnOf).join(', ')}
  from (${newestDay(
    `post_id, target_id, account_id, platform, published_at, observed_at, ${engagement.map(columnOf).join(', ')}`,
    name('post_days'),
    `workspace_id = {workspace:UUID} and published_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
      and day >= toDate(fromUnixTimestamp64Milli({since:Int64}, 'UTC')) - 1
      ${clientId === undefined ? '' : 'and client_id = {client:UUID}'}
      ${platforms === undefined ? '' : 'and platform in {platforms:Array(String)}'}`,
  )})
  where observed_at >= published_at + interval 1 day
  order by published_at desc, target_id limit ${mostEngaged}`;

/** Of targets published since an instant, the newest first. */
export const readEngaged = async (
  store: AnalyticsStore,
  workspaceId: string,
  since: string,
  filters: Pick<Filters, 'clientId' | 'platforms'>,
): Promise<readonly Engaged[]> => {
  const { clientId, platforms } = filters;
  const rows = await readRows(store, engaged(filters), {
    workspace: workspaceId,
    since: String(Date.parse(since)),
    ...(clientId === undefined ? {} : { client: clientId }),
    ...(platforms === undefined ? {} : { platforms }),
  });
  return rows.map(([postId, accountId, platform, publishedAt, ...cells]) => {
    const figures = Object.fromEntries(engagement.map((name, at) => [name, numberOf(cells[at])])) as PostFigures;
    return {
      postId: String(postId),
      accountId: String(accountId),
      platform: platform as Platform,
      publishedAt: isoOf(publishedAt) ?? '',
      interactions: interactionsOf(figures),
      impressions: figures.impressions ?? null,
    };
  });
};

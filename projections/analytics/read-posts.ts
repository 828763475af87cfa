import { interactionParts, interactionsOf } from '#domain/engagement.ts';
import type { Platform } from '#schemas/common.ts';
import { counters, type PostFigures } from '#schemas/insights.ts';
import type { Filters, PostFiguresRow, WentOut } from './rollup.ts';
import { type AnalyticsStore, type Cell, isoOf, numberOf, readRows } from './store.ts';
import { columnOf, type TableName } from './tables.ts';
import { isFetched, rateOf } from './totals.ts';

/** Reads of single posts: lifetime figures of each target, from its newest observation. */

/**
 * Rows of each target's newest day only. The query first finds that day by the key: the other columns are many, and so
 * are the earlier days.
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
    // After a change of zone the first observation may lie a day before the publication.
    `workspace_id = {workspace:UUID} and post_id in {posts:Array(UUID)}
      and published_at between fromUnixTimestamp64Milli({first:Int64}, 'UTC') and fromUnixTimestamp64Milli({last:Int64}, 'UTC')
      and day between toDate(fromUnixTimestamp64Milli({first:Int64}, 'UTC')) - 1 and {to:Date}
      and observed_at <= fromUnixTimestamp64Milli({seen:Int64}, 'UTC')`,
  );

/** Absent where the figure was not fetched, null where the network does not report it. */
const figuresOf = (fetched: number, more: string, cells: readonly Cell[]): PostFigures => {
  const fetchedFigures = counters.flatMap((counter, bit) =>
    isFetched(fetched, bit) ? [[counter, numberOf(cells[bit])] as const] : [],
  );
  return { ...Object.fromEntries(fetchedFigures), ...(JSON.parse(more) as PostFigures) };
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

/** The engagement of a published post on one account at the age at which posts are compared. */
export interface Engaged {
  readonly postId: string;
  readonly targetId: string;
  readonly accountId: string;
  readonly platform: Platform;
  /** ISO 8601. */
  readonly publishedAt: string;
  /** ISO 8601. */
  readonly observedAt: string;
  readonly interactions: number | null;
}

/** Enough of the newest targets to compare times of the week. */
const maxEngaged = 5_000;

const engagement = ['totalInteractions', ...interactionParts] as const;

/**
 * Each target's newest observation up to an age. The query chooses the targets before it reads a figure, so that a
 * workspace of many targets costs no more than one of `maxEngaged`. A day may hold two versions of its row, the newer
 * one past the age; the condition on the age stands in both reads, or the newer one would be taken.
 */
const engaged =
  ({ clientId, platforms }: Filters) =>
  (name: (table: TableName) => string): string => {
    const where = `workspace_id = {workspace:UUID}
      and published_at between fromUnixTimestamp64Milli({since:Int64}, 'UTC') and fromUnixTimestamp64Milli({until:Int64}, 'UTC')
      and day >= toDate(fromUnixTimestamp64Milli({since:Int64}, 'UTC')) - 1
      and toUnixTimestamp64Milli(observed_at) <= toUnixTimestamp64Milli(published_at) + {age:Int64}
      ${clientId === undefined ? '' : 'and client_id = {client:UUID}'}
      ${platforms === undefined ? '' : 'and platform in {platforms:Array(String)}'}`;
    return `
  select post_id, target_id, account_id, platform, toUnixTimestamp64Milli(published_at), toUnixTimestamp64Milli(observed_at),
    ${engagement.map(columnOf).join(', ')}
  from ${name('post_days')}
  where ${where} and (target_id, day) in (
    select target_id, argMax(day, observed_at) from ${name('post_days')} where ${where}
    group by target_id order by max(published_at) desc, target_id limit ${maxEngaged})
  order by published_at desc, target_id, version desc limit 1 by target_id`;
  };

/**
 * Targets published in a range of time, the newest first.
 * @param range instants in ISO 8601, and the greatest age of an observation
 */
export const readEngaged = async (
  store: AnalyticsStore,
  workspaceId: string,
  range: { readonly since: string; readonly until: string; readonly ageMs: number },
  filters: Pick<Filters, 'clientId' | 'platforms'>,
): Promise<readonly Engaged[]> => {
  const { clientId, platforms } = filters;
  const rows = await readRows(store, engaged(filters), {
    workspace: workspaceId,
    since: String(Date.parse(range.since)),
    until: String(Date.parse(range.until)),
    age: String(range.ageMs),
    ...(clientId === undefined ? {} : { client: clientId }),
    ...(platforms === undefined ? {} : { platforms }),
  });
  return rows.map(([postId, targetId, accountId, platform, publishedAt, observedAt, ...cells]) => ({
    postId: String(postId),
    targetId: String(targetId),
    accountId: String(accountId),
    platform: platform as Platform,
    publishedAt: isoOf(publishedAt) ?? '',
    observedAt: isoOf(observedAt) ?? '',
    interactions: interactionsOf(
      Object.fromEntries(engagement.map((name, at) => [name, numberOf(cells[at])])) as PostFigures,
    ),
  }));
};

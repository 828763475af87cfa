import type { Knex } from 'knex';
import { instantsOf } from '#projections/analytics/instants.ts';
import type { AnalyticsReader, Filters, RankedAfter, RankedPosts, SortMetric } from '#projections/analytics/rollup.ts';
import {
  listPublished,
  type PublishedFirst,
  type PublishedPost,
  publishedByIds,
} from '#projections/models/published.ts';
import { publishedFilters, type Question } from './read.ts';

/**
 * Pages of posts in the order of a figure. ClickHouse sorts the posts that have the figure, Postgres says which of them
 * were published in the window. Then come posts without the figure or without an observation, the newest first. All
 * pages use the observations from before the first page, so that a night of new observations in between moves nothing.
 * A post that was observed again on the same day is an exception: its figures are those of the day before, and it may
 * be shown twice or left out.
 */

/** Where a page ends. `seenBy`: when the caller requested the first page, ISO 8601. */
export type SortedAfter = { readonly seenBy: string } & (
  | { readonly ranked: RankedAfter | null }
  | { readonly rest: PublishedFirst | null }
);

export interface SortedPost {
  readonly post: PublishedPost;
  readonly after: SortedAfter;
}

/**
 * Queries to each store for one page. After that many the page ends, and may have fewer posts than the caller asked
 * for.
 */
const maxRounds = 4;
const restAtOnce = 200;

interface Walk {
  readonly reader: Pick<AnalyticsReader, 'ranked'>;
  readonly knex: Knex;
  readonly workspaceId: string;
  readonly question: Question;
  readonly sort: SortMetric;
  readonly limit: number;
}

interface Found {
  readonly rows: readonly SortedPost[];
  /** Null: the search has seen all posts. */
  readonly next: SortedAfter | null;
}

const askedOf = ({ question }: Walk, seenBy: string, filters: Filters): RankedPosts => ({
  since: instantsOf(question.window, question.timezone).from,
  to: question.window.to,
  seenBy,
  filters,
});

const rankedPosts = async (walk: Walk, seenBy: string, from: RankedAfter | null): Promise<Found> => {
  const { reader, knex, workspaceId, question, sort, limit } = walk;
  const { window, timezone, filters } = question;
  const range = instantsOf(window, timezone);
  const rows: SortedPost[] = [];
  let after = from;
  for (let round = 0; round < maxRounds && rows.length < limit; round += 1) {
    const found = await reader.ranked(workspaceId, askedOf(walk, seenBy, filters), sort, { after, limit });
    const ids = found.map(({ id }) => id);
    const posts = await publishedByIds(knex, workspaceId, ids, range, publishedFilters(filters));
    const byId = new Map(posts.map((post) => [post.id, post]));
    for (const { id, value } of found) {
      const post = byId.get(id);
      if (post !== undefined) rows.push({ post, after: { seenBy, ranked: { value, id } } });
    }
    const last = found.at(-1);
    if (last === undefined || found.length < limit) return { rows, next: { seenBy, rest: null } };
    after = { value: last.value, id: last.id };
  }
  return { rows, next: { seenBy, ranked: after } };
};

const restOfPosts = async (walk: Walk, seenBy: string, from: PublishedFirst | null, limit: number): Promise<Found> => {
  const { reader, knex, workspaceId, question, sort } = walk;
  const { window, timezone, filters } = question;
  const range = instantsOf(window, timezone);
  const rows: SortedPost[] = [];
  let after = from;
  for (let round = 0; round < maxRounds && rows.length < limit; round += 1) {
    const page = { after, limit: restAtOnce };
    const found = await listPublished(knex, workspaceId, range, publishedFilters(filters), page);
    const ids = found.rows.map(({ id }) => id);
    const asked = { ...askedOf(walk, seenBy, filters), posts: ids };
    const ranked =
      ids.length === 0 ? [] : await reader.ranked(workspaceId, asked, sort, { after: null, limit: restAtOnce });
    const known = new Set(ranked.map(({ id }) => id));
    for (const post of found.rows) {
      const key = { publishedAt: post.published_at ?? '', id: post.id };
      after = key;
      if (!known.has(post.id)) rows.push({ post, after: { seenBy, rest: key } });
    }
    if (!found.hasMore) return { rows, next: null };
  }
  return { rows, next: { seenBy, rest: after } };
};

/** @param now when the caller requests the first page, ISO 8601 */
export const sortedPage = async (walk: Walk, from: SortedAfter | null, now: string) => {
  const start = from ?? { seenBy: now, ranked: null };
  const { seenBy } = start;
  // The search takes one post more than the page shows, to learn whether a next page exists.
  const wanted = { ...walk, limit: walk.limit + 1 };
  const first: Found = 'ranked' in start ? await rankedPosts(wanted, seenBy, start.ranked) : { rows: [], next: start };
  const left = wanted.limit - first.rows.length;
  const goesOn = left > 0 && first.next !== null && 'rest' in first.next ? first.next : null;
  const then = goesOn === null ? null : await restOfPosts(walk, seenBy, goesOn.rest, left);
  const rows = [...first.rows, ...(then?.rows ?? [])];
  const next = then === null ? first.next : then.next;
  const shown = rows.slice(0, walk.limit);
  // The next page begins behind the last post shown if the search found more, else where the search ended.
  if (rows.length > walk.limit) return { rows: shown, hasMore: true, next: shown.at(-1)?.after };
  return { rows: shown, hasMore: next !== null, next: next ?? undefined };
};

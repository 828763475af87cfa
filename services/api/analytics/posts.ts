import type { PostFiguresRow, WentOut, Window } from '#projections/analytics/rollup.ts';
import type { PublishedPost } from '#projections/models/published.ts';
import { combined } from './combine.ts';

/** Posts with their figures, as an answer shows them. */

/** Posts with at least one published target among those shown. */
export const wentOut = (posts: readonly PublishedPost[]): readonly WentOut[] =>
  posts.flatMap(({ id, published_at: first, last_published_at: last }) =>
    first === null || last === null ? [] : [{ id, first, last }],
  );

const freshest = (rows: readonly PostFiguresRow[]): string | null =>
  rows
    .map(({ fetchedAt }) => fetchedAt)
    .sort()
    .at(-1) ?? null;

/** Rows of the targets that are shown: a filter may have left some of a post's out. */
const shownRows = ({ targets }: PublishedPost, rows: readonly PostFiguresRow[]): readonly PostFiguresRow[] => {
  const shown = new Set(targets.map(({ id }) => id));
  return rows.filter(({ targetId }) => shown.has(targetId));
};

/** Where the post is on its network. Some networks name the address only beside the figures. */
const permalinkOf = (
  { id, permalink }: PublishedPost['targets'][number],
  rows: readonly PostFiguresRow[],
): string | null => permalink ?? rows.find(({ targetId }) => targetId === id)?.figures.permalink ?? null;

export const renderPostAnalytics = (
  post: PublishedPost,
  all: readonly PostFiguresRow[],
  excerpts: ReadonlyMap<string, string>,
  window: Window,
) => {
  const rows = shownRows(post, all);
  const [only, ...others] = post.targets;
  const single = others.length === 0 ? only : undefined;
  return {
    object: 'post_analytics' as const,
    ...window,
    asOf: freshest(rows.filter(({ day }) => day >= window.from)),
    postId: post.id,
    clientId: post.client_id,
    accountId: single?.accountId ?? null,
    excerpt: excerpts.get(post.id) ?? '',
    permalink: single === undefined ? null : permalinkOf(single, rows),
    platforms: [...new Set(post.targets.map(({ platform }) => platform))],
    publishedAt: post.published_at,
    metrics: combined(rows),
    fetchedAt: freshest(rows),
  };
};

export const renderTargetAnalytics = (post: PublishedPost, rows: readonly PostFiguresRow[]) =>
  post.targets.map((target) => {
    const { id, platform, clientId, accountId } = target;
    const row = rows.find(({ targetId }) => targetId === id);
    return {
      ...{ targetId: id, platform, clientId, accountId, permalink: permalinkOf(target, rows) },
      metrics: combined(row === undefined ? [] : [row]),
      fetchedAt: row?.fetchedAt ?? null,
    };
  });

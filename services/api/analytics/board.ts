import { Temporal } from 'temporal-polyfill';
import { instantsOf } from '#projections/analytics/instants.ts';
import { noBoard } from '#projections/analytics/read-boards.ts';
import type { Beside, Board, Compared, Window } from '#projections/analytics/rollup.ts';
import { noTotals } from '#projections/analytics/totals.ts';
import { type LiveAccount, liveAccounts } from '#projections/models/accounts.ts';
import { countPublished, type PublishedCount } from '#projections/models/published.ts';
import type { Platform } from '#schemas/common.ts';
import type { Call } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { publishedFilters, type Question, readerOf } from './read.ts';

/** What a dashboard shows of a workspace or a client: figures, followers, posts, and how fresh all of it is. */

/** An account whose last observation is older than this missed a night. Hours. */
export const staleHours = 36;

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now'>;

/** Null when the query takes too long: the figures do not wait for it. */
const countsOf = async (
  { deps, workspaceId, principal }: Asking,
  { window, previous, filters, timezone }: Question,
): Promise<{ readonly current: PublishedCount | null; readonly previous: PublishedCount | null }> => {
  const before = previous === null ? null : instantsOf(previous, timezone);
  try {
    return await deps.lists.run(principal.liveWorkspaceId, {}, (knex) =>
      countPublished(knex, workspaceId, instantsOf(window, timezone), before, publishedFilters(filters)),
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { current: null, previous: null };
  }
};

/**
 * An account whose last observation is before this instant missed a night, up to now or up to the end of the window.
 * ISO 8601.
 */
const minOf = ({ window, timezone }: Question, now: string): string => {
  const end = Math.min(Date.parse(now), Date.parse(instantsOf(window, timezone).to));
  return new Date(end - staleHours * 3_600_000).toISOString();
};

type Looks = Board['accounts'];

/**
 * The last observations since `least`, for a window that begins later and so lacks some of them. Null: the window has
 * them all.
 */
const looksBefore = async (
  call: Asking,
  { window, filters, timezone }: Question,
  least: string,
): Promise<Looks | null> => {
  const from = Temporal.Instant.from(least).toZonedDateTimeISO(timezone).toPlainDate().toString();
  return from < window.from ? readerOf(call).looks(call.workspaceId, { from, to: window.to }, filters) : null;
};

/** The oldest of the last observations of live accounts; without live accounts, the newest observation of all. */
const freshnessOf = (live: readonly LiveAccount[], board: Board, before: Looks | null, least: string) => {
  const looks = live.flatMap(({ id }) => board.accounts.get(id) ?? []);
  const lastOf = ({ id, created_at }: LiveAccount): string => (before ?? board.accounts).get(id) ?? created_at;
  return {
    asOf: looks.sort()[0] ?? board.asOf,
    staleAccounts: live.filter((one) => lastOf(one) < least).length,
  };
};

/** For a network with published posts and no observation yet. */
const unseen = (platform: Platform, { series }: Board, networks: boolean) => {
  const none = { ...noTotals, followerCount: null };
  const days = series.map(({ day }) => ({ day, ...none, provisional: false }));
  return { platform, ...none, ...(networks ? { series: days } : {}) };
};

const shownOf = (board: Board, posts: PublishedCount | null, networks: boolean) => {
  const observed = new Map(board.byPlatform.map((one) => [one.platform, one]));
  const platforms = [...new Set([...observed.keys(), ...(posts?.byPlatform.keys() ?? [])])].sort();
  return {
    totals: { ...board.totals, posts: posts?.all ?? null },
    byPlatform: platforms.map((platform) => ({
      ...(observed.get(platform) ?? unseen(platform, board, networks)),
      posts: posts === null ? null : (posts.byPlatform.get(platform) ?? 0),
    })),
    series: board.series,
  };
};

/** @param read null: nothing fits the filters */
export const boardOf = async (
  call: Asking,
  question: Question,
  networks: boolean,
  read: ((window: Window, beside: Beside) => Promise<Compared<Board>>) | null,
) => {
  const { window, previous, filters } = question;
  const beside = { previous, networks };
  const least = minOf(question, call.now);
  const [board, live, before, posts] = await Promise.all([
    read === null ? noBoard(window, beside) : read(window, beside),
    read === null ? [] : liveAccounts(call.deps.knex, call.workspaceId, publishedFilters(filters)),
    read === null ? null : looksBefore(call, question, least),
    read === null ? { current: nothing, previous: nothing } : countsOf(call, question),
  ]);
  return {
    ...window,
    ...freshnessOf(live, board, before, least),
    ...shownOf(board, posts.current, networks),
    ...(previous === null || board.previous === null
      ? {}
      : { previous: { ...previous, ...shownOf(board.previous, posts.previous, networks) } }),
  };
};

const nothing: PublishedCount = { all: 0, byPlatform: new Map() };

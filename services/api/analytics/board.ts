import { Temporal } from 'temporal-polyfill';
import { instantsOf } from '#projections/analytics/instants.ts';
import { noBoard } from '#projections/analytics/read-boards.ts';
import type { AccountRollup, Beside, Board, Compared, Window } from '#projections/analytics/rollup.ts';
import { noAccountRollup, noTotals } from '#projections/analytics/totals.ts';
import { getAccount, type LiveAccount, liveAccounts } from '#projections/models/accounts.ts';
import { getClient } from '#projections/models/clients.ts';
import { countPublished, type PublishedCount } from '#projections/models/published.ts';
import type { Platform } from '#schemas/common.ts';
import {
  AccountAnalytics,
  AccountAnalyticsQuery,
  BoardQuery,
  ClientAnalytics,
  WorkspaceAnalytics,
} from '#schemas/http/analytics.ts';
import { IdParams } from '#schemas/http/common.ts';
import { type Call, operation } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { readRow } from '../call/rows.ts';
import { accountAnalyticsExample, analyticsTag, clientAnalyticsExample, overviewExample } from './examples.ts';
import { publishedFilters, type Question, questionOf, readerOf } from './read.ts';

/** What a dashboard shows of a workspace or a client: figures, followers, posts, and how fresh all of it is. */

/** An account whose last observation is older than this missed a night. Hours. */
const staleHours = 36;

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
const boardOf = async (
  call: Asking,
  question: Question,
  networks: boolean,
  read: ((window: Window, beside: Beside) => Promise<Compared<Board>>) | null,
) => {
  const { window, previous, filters, now } = question;
  const beside = { previous, networks, now };
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

/** Absent when it was never fetched. */
const demographicsOf = ({ demographics }: AccountRollup) => (demographics === undefined ? {} : { demographics });

const figuresOf = ({ totals, series, audience }: AccountRollup) => ({ totals, series, audience });

export const getAccountAnalytics = operation({
  id: 'getAccountAnalytics',
  method: 'GET',
  path: '/analytics/accounts/{id}',
  tag: analyticsTag,
  noun: 'account',
  summary: 'Figures of an account: totals, by day, audience',
  description:
    'What the posts of the account gained in the window, its followers by the last snapshot of each day, and its audience. Gains, null, 0 and provisional days mean what they mean in GET /analytics/overview. The days of `audience` are those of the network, which reports a day after its end. `demographics` is the newest snapshot not after `to`, also one from before the window. With filters that the account does not fit every figure is null.',
  scope: 'analytics.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: AccountAnalyticsQuery,
  answer: AccountAnalytics,
  codes: [],
  example: { data: accountAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const account = await readRow(call, 'account', ['workspace'], (id) => getAccount(deps.knex, workspaceId, id));
    const { window, previous, filters, now } = await questionOf(call);
    const { clientId, socialAccountId, platforms } = filters;
    const fits =
      (clientId ?? account.client_id) === account.client_id &&
      (socialAccountId ?? account.id) === account.id &&
      (platforms?.includes(account.platform) ?? true);
    const reader = readerOf(call);
    const found = fits
      ? await reader.account(workspaceId, account.id, window, { previous, now })
      : { ...noAccountRollup(window), previous: previous === null ? null : noAccountRollup(previous) };
    return {
      data: {
        object: 'account_analytics',
        socialAccountId: account.id,
        platform: account.platform,
        ...window,
        asOf: found.asOf,
        ...figuresOf(found),
        ...demographicsOf(found),
        ...(previous === null || found.previous === null
          ? {}
          : { previous: { ...previous, ...figuresOf(found.previous) } }),
      },
    };
  },
});

export const getAnalyticsOverview = operation({
  id: 'getAnalyticsOverview',
  method: 'GET',
  path: '/analytics/overview',
  tag: analyticsTag,
  summary: 'Figures of the workspace: totals, by network, by day',
  description:
    'What all posts gained in the window, by default the last 30 days: in total, on each network, on each day. A counter is absent while it is not fetched yet, null where no network reported it, and 0 where the networks reported that nothing was gained. The gain of a day is the difference between its two midnights in the workspace’s zone, each interpolated between the observations around it. Where more than 36 hours pass without an observation, the days in between have no counters and the later day has the whole gain. A gain is negative where a network corrected its count downward. The service asks the networks every night for 90 days after a publication; some report late, youtube 48 to 72 hours. A day is `provisional` while a later observation may still change it. `compare` adds the figures of an earlier window, and `breakdown=platform` the days of each network.',
  scope: 'analytics.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  query: BoardQuery,
  answer: WorkspaceAnalytics,
  codes: [],
  example: { data: overviewExample },
  handle: async (call) => {
    const question = await questionOf(call);
    const reader = readerOf(call);
    const board = await boardOf(call, question, call.query.breakdown === 'platform', (window, beside) =>
      reader.overview(call.workspaceId, window, question.filters, beside),
    );
    return { data: { object: 'workspace_analytics', ...board } };
  },
});

export const getClientAnalytics = operation({
  id: 'getClientAnalytics',
  method: 'GET',
  path: '/analytics/clients/{id}',
  tag: analyticsTag,
  noun: 'client',
  summary: 'Figures of a client: totals, by network, by day',
  description:
    'What the posts on the client’s accounts gained in the window: in total, on each network, on each day. Gains, null, 0 and provisional days mean what they mean in GET /analytics/overview. With a `clientId` of another client every figure is null.',
  scope: 'analytics.read',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: BoardQuery,
  answer: ClientAnalytics,
  codes: [],
  example: { data: clientAnalyticsExample },
  handle: async (call) => {
    const { deps, workspaceId } = call;
    const { id: clientId } = await readRow(call, 'client', ['workspace'], (id) =>
      getClient(deps.knex, workspaceId, id),
    );
    const asked = await questionOf(call);
    const question = { ...asked, filters: { ...asked.filters, clientId } };
    const reader = readerOf(call);
    // A filter for another client matches nothing within this client.
    const fits = (asked.filters.clientId ?? clientId) === clientId;
    const board = await boardOf(
      call,
      question,
      call.query.breakdown === 'platform',
      fits ? (window, beside) => reader.client(workspaceId, clientId, window, question.filters, beside) : null,
    );
    return { data: { object: 'client_analytics', clientId, ...board } };
  },
});

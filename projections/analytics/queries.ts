import { readAccount } from './read-account.ts';
import { readBoard } from './read-boards.ts';
import { readLooks } from './read-followers.ts';
import { readPosts } from './read-posts.ts';
import { readRanked, readTop } from './read-ranked.ts';
import type { AnalyticsReader } from './rollup.ts';
import type { AnalyticsStore } from './store.ts';

/** The queries of the analytics, over ClickHouse. Every query begins with the workspace. */
export const analyticsReader = (store: AnalyticsStore): AnalyticsReader => ({
  overview: (workspaceId, window, filters, beside) => readBoard(store, workspaceId, window, filters, beside),
  client: async (workspaceId, clientId, window, filters, beside) =>
    readBoard(store, workspaceId, window, { ...filters, clientId }, beside),
  account: (workspaceId, accountId, window, beside) => readAccount(store, workspaceId, accountId, window, beside),
  looks: async (workspaceId, window, filters) =>
    (await readLooks(store, workspaceId, window, filters, null)).current.accounts,
  posts: (workspaceId, posts, to, seenBy) => readPosts(store, workspaceId, posts, to, seenBy),
  ranked: (workspaceId, request, sort, page) => readRanked(store, workspaceId, request, sort, page),
  top: (workspaceId, window, timezone, filters, limit) => readTop(store, workspaceId, window, timezone, filters, limit),
});

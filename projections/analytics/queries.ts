import { readAccount, readRollup } from './read-grains.ts';
import { readPosts } from './read-posts.ts';
import type { AnalyticsReader } from './rollup.ts';
import type { AnalyticsStore } from './store.ts';

/** What is read of the analytics, over ClickHouse. Every query begins with the workspace. */
export const analyticsReader = (store: AnalyticsStore): AnalyticsReader => ({
  overview: (workspaceId, window, filters) => readRollup(store, workspaceId, window, filters),
  client: async (workspaceId, clientId, window, filters) =>
    readRollup(store, workspaceId, window, { ...filters, clientId }),
  account: (workspaceId, accountId, window) => readAccount(store, workspaceId, accountId, window),
  posts: (workspaceId, posts, to) => readPosts(store, workspaceId, posts, to),
});

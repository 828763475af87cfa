import { AnalyticsQuery, WorkspaceAnalytics } from '#schemas/http/analytics.ts';
import { overviewExample } from '../analytics/examples.ts';
import { questionOf, readerOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';

export const getAnalyticsOverview = operation({
  id: 'getAnalyticsOverview',
  method: 'GET',
  path: '/analytics/overview',
  tag: 'analytics',
  summary: 'The workspace: totals, by network, by day',
  description:
    'Gains of all posts in the window. A day without observation is null, and its gain falls on the next observed day; corrections may be negative.',
  scope: 'analytics.read',
  idempotent: 'none',
  cost: 1,
  query: AnalyticsQuery,
  answer: WorkspaceAnalytics,
  codes: [],
  example: { data: overviewExample },
  handle: async (call) => {
    const { window, filters } = await questionOf(call);
    const { asOf, totals, byPlatform, series } = await readerOf(call).overview(call.workspaceId, window, filters);
    return { data: { object: 'workspace_analytics', ...window, asOf, totals, byPlatform, series } };
  },
});

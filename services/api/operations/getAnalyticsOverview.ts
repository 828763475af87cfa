import { BoardQuery, WorkspaceAnalytics } from '#schemas/http/analytics.ts';
import { boardOf } from '../analytics/board.ts';
import { overviewExample } from '../analytics/examples.ts';
import { questionOf, readerOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';

export const getAnalyticsOverview = operation({
  id: 'getAnalyticsOverview',
  method: 'GET',
  path: '/analytics/overview',
  tag: 'analytics',
  summary: 'Figures of the workspace: totals, by network, by day',
  description:
    'Gains of all posts in the window. The gain of a day is the difference between its two midnights in the workspace’s zone, each interpolated between the observations around it. If 36 hours or more pass without an observation, the days in between are null and the later day has the whole gain. A correction by a network may be negative. A day is `provisional` while the next observation may change it.',
  scope: 'analytics.read',
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

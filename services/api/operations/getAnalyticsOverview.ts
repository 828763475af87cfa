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
  summary: 'The workspace: totals, by network, by day',
  description:
    'Gains of all posts in the window. A day’s gain is the difference of its midnights in the workspace’s zone, interpolated between the looks around them; over 36 h without a look the days between are null and the gain is of the later day. Corrections may be negative. A day that the next look may change is `provisional`.',
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

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
    'What all posts gained in the window, by default the last 30 days: in total, on each network, on each day. A counter is absent while it is not fetched yet, null where no network reported it, and 0 where the networks reported that nothing was gained. The gain of a day is the difference between its two midnights in the workspace’s zone, each interpolated between the observations around it. Where more than 36 hours pass without an observation, the days in between have no counters and the later day has the whole gain. A gain is negative where a network corrected its count downward. The service asks the networks every night for 90 days after a publication; some report late, youtube 48 to 72 hours. A day is `provisional` while a later observation may still change it. `compare` adds the figures of an earlier window, and `breakdown=platform` the days of each network.',
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

import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';

/** Fresh figures on demand. */

export const maxRefreshed = 10_000;

export const AnalyticsRefresh = Type.Object({
  accountIds: Type.Optional(
    Type.Array(Uuid, {
      minItems: 1,
      maxItems: maxRefreshed,
      description: 'Default: every account of the workspace that is connected.',
    }),
  ),
});

export const AnalyticsRefreshing = Type.Object({
  requested: Type.Integer({
    minimum: 0,
    description: 'Accounts whose figures, and those of their posts, are fetched.',
  }),
  refreshId: Type.Unsafe<string>({
    ...Uuid,
    description: 'The webhook `analytics.refreshed` names it when it is done.',
  }),
});

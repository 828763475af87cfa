import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { Named } from '#schemas/published.ts';

/** Requests for fresh figures. */

export const maxRefreshed = 10_000;

export const AnalyticsRefreshCreate = Named(
  'AnalyticsRefreshCreate',
  Type.Object({
    accountIds: Type.Optional(
      Type.Array(Uuid, {
        minItems: 1,
        maxItems: maxRefreshed,
        description: 'Default: every connected account of the workspace.',
      }),
    ),
  }),
);

export const AnalyticsRefresh = Named(
  'AnalyticsRefresh',
  Type.Object({
    requested: Type.Integer({
      minimum: 0,
      description: 'Accounts that are fetched, with their posts.',
    }),
    refreshId: Type.Unsafe<string>({
      ...Uuid,
      description: 'The webhook event `analytics.refreshed` carries this id when the refresh is done.',
    }),
  }),
);

import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { grouped, Named, said } from '#schemas/published.ts';
import { Maybe, UuidInput } from './common.ts';

/** Requests for fresh figures. */

export const maxRefreshed = 10_000;

export const AnalyticsRefreshCreate = Named(
  'AnalyticsRefreshCreate',
  Type.Object(
    {
      accountIds: Maybe(
        Type.Array(UuidInput, {
          minItems: 1,
          maxItems: maxRefreshed,
          description: `The accounts whose figures are fetched; one that is listed twice counts once. Absent: every connected account of the workspace; where more than ${grouped(maxRefreshed)} are connected, it is required.`,
        }),
      ),
    },
    { description: 'Which accounts are refreshed. The body may be left out: then all connected ones are.' },
  ),
);

export const AnalyticsRefresh = Named(
  'AnalyticsRefresh',
  Type.Object(
    {
      requested: Type.Integer({
        minimum: 0,
        description: 'Accounts that are fetched, with their posts. 0: none is connected, and the refresh is complete.',
      }),
      refreshId: said(
        Uuid,
        'Id of the refresh. The event `analytics.refreshed` carries it when the refresh is complete.',
      ),
    },
    {
      description:
        'A refresh that was accepted. Its figures come later: the event `analytics.refreshed` ends it, with the number of accounts that failed.',
    },
  ),
);

import type { refreshPublic } from '#schemas/http/webhook-events/analytics.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import type { Publisher } from '../../engine/publisher.ts';

/** A refresh of figures. */

type Payloads = Pick<typeof refreshPublic, 'analytics.refreshed'>;

export const refreshPublisher: Publisher<Payloads, RefreshEvent, null> = {
  rules: {
    AnalyticsRefreshRequested: 'the caller has the answer; analytics.refreshed reports the result',
    AnalyticsRefreshed: [
      {
        type: 'analytics.refreshed',
        ofEvent: ({ id, data, occurredAt }) => ({
          refreshId: id,
          clientId: null,
          asOf: occurredAt,
          accounts: data.accountIds.length + data.failedAccountIds.length,
          failedAccounts: data.failedAccountIds.length,
        }),
      },
    ],
  },
  evolve: () => null,
};

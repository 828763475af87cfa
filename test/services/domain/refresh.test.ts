import { equal } from 'node:assert/strict';
import { refresh } from '#domain/refresh.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

suite('a refresh of figures', (t) => {
  const { given, state } = deciding(refresh);
  const request = { type: 'Request', accountIds: ['a', 'b'] } as const;
  const requested: RefreshEvent = { type: 'AnalyticsRefreshRequested', data: { accountIds: ['a', 'b'] } };
  const complete = { type: 'Complete', accountIds: ['a'], failedAccountIds: ['b'] } as const;
  const refreshed: RefreshEvent = {
    type: 'AnalyticsRefreshed',
    data: { accountIds: ['a'], failedAccountIds: ['b'] },
  };

  t('is requested once, also when it is complete by then', () => {
    given([]).when(request).then([requested]);
    given([requested]).when(request).then([]);
    given([requested, refreshed]).when(request).then([]);
    equal(state([requested]).status, 'open');
  });

  t('is completed once, after it was requested', () => {
    given([requested]).when(complete).then([refreshed]);
    given([requested, refreshed]).when(complete).then([]);
    given([]).when(complete).refused('not_found');
  });

  t('of no account is complete with its request', () =>
    given([])
      .when({ ...request, accountIds: [] })
      .then([
        { type: 'AnalyticsRefreshRequested', data: { accountIds: [] } },
        { type: 'AnalyticsRefreshed', data: { accountIds: [], failedAccountIds: [] } },
      ]),
  );
});

import type { RefreshEvent } from '#schemas/refresh.ts';
import { type Decider, Rejection } from './decider.ts';

/** A refresh of figures. Its law: it is requested once and completed once. */

export type RefreshState = { readonly status: 'none' } | { readonly status: 'open' } | { readonly status: 'done' };

export type RefreshCommand =
  | { readonly type: 'Request'; readonly accountIds: readonly string[] }
  | { readonly type: 'Complete'; readonly accountIds: readonly string[]; readonly failedAccountIds: readonly string[] };

const decide = (command: RefreshCommand, { status }: RefreshState): readonly RefreshEvent[] => {
  switch (command.type) {
    case 'Request': {
      if (status !== 'none') return [];
      const { accountIds } = command;
      const requested: RefreshEvent = { type: 'AnalyticsRefreshRequested', data: { accountIds: [...accountIds] } };
      if (accountIds.length > 0) return [requested];
      // A refresh without accounts is complete at once: no worker would report one.
      return [requested, { type: 'AnalyticsRefreshed', data: { accountIds: [], failedAccountIds: [] } }];
    }
    case 'Complete': {
      if (status === 'none') throw new Rejection('not_found', 'There is no such refresh.');
      if (status === 'done') return [];
      const { accountIds, failedAccountIds } = command;
      return [
        {
          type: 'AnalyticsRefreshed',
          data: { accountIds: [...accountIds], failedAccountIds: [...failedAccountIds] },
        },
      ];
    }
  }
};

export const refresh: Decider<RefreshState, RefreshCommand, RefreshEvent> = {
  kind: 'refresh',
  initial: { status: 'none' },
  decide,
  evolve: (_state, { type }) => ({ status: type === 'AnalyticsRefreshed' ? 'done' : 'open' }),
};

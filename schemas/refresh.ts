import { Type } from 'typebox';
import { type EventOf, Uuid } from './common.ts';

/** Figures that somebody wants fresh: a stream for each request. */

const AccountIds = Type.Array(Uuid, { maxItems: 10_000 });

export const refreshEvents = {
  /** Of these accounts and their posts. */
  AnalyticsRefreshRequested: Type.Object({ accountIds: AccountIds }),
  /** Every account of the request was asked; what could be had is in the log before this. */
  AnalyticsRefreshed: Type.Object({
    /** Those that answered. An account of the request is here or among the failed ones, so that the event stays storable. */
    accountIds: AccountIds,
    /** Those that did not answer, or may not be asked now. */
    failedAccountIds: AccountIds,
  }),
} as const;
export type RefreshEvent = EventOf<typeof refreshEvents>;

import { Type } from 'typebox';
import { type EventOf, Uuid } from './common.ts';

/** A requested refresh of figures: one stream for each request. */

const AccountIds = Type.Array(Uuid, { maxItems: 10_000 });

export const refreshEvents = {
  /** The figures of these accounts and of their posts. */
  AnalyticsRefreshRequested: Type.Object({ accountIds: AccountIds }),
  /** Every account of the request was asked; the fetched figures precede this event in the log. */
  AnalyticsRefreshed: Type.Object({
    /**
     * Accounts that answered. Each account of the request is here or among the failed ones, so the event stays
     * storable.
     */
    accountIds: AccountIds,
    /** Accounts that did not answer, or may not be asked now. */
    failedAccountIds: AccountIds,
  }),
} as const;
export type RefreshEvent = EventOf<typeof refreshEvents>;

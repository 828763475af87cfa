/**
 * What limits an operator's whole app at a network, shared by all processes: how long the network refuses it, and what it
 * may read in a month. `app-limits.suite.ts` proves implementations.
 */
import type { Failure } from '#schemas/target.ts';

/** A refusal that is about the app. */
export interface AppRefusal {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly failure: Failure;
}

/** A network may cap what an app reads apart from what it posts. */
export type AppRestScope = 'all' | 'reads';

export interface AppLimits {
  /**
   * The refusal that holds; null: the app may call. Another process's refusal is seen within a second.
   * @param app network and app: `x:client-id`
   * @param now milliseconds since the epoch
   */
  restOf(app: string, isRead: boolean, now: number): Promise<AppRefusal | null>;
  /** The later of this refusal and the known one stays. Resolves also where it could not be stored. */
  rest(app: string, what: AppRestScope, refusal: AppRefusal): Promise<void>;
  /**
   * Takes reads of the calendar month (UTC), all or none. A process that dies before it reads has spent them.
   * @param monthly what the app may read in the month
   * @throws where it cannot be stored: then nothing may be read
   */
  take(app: string, reads: number, monthly: number, now: number): Promise<boolean>;
  /** Gives reads back that the network provably did not bill. Not repeated where it fails: the count stays too high. */
  giveBack(app: string, reads: number, now: number): Promise<void>;
}

export const monthOf = (now: number): string => new Date(now).toISOString().slice(0, 7);

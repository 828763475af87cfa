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

/** Whose reads are counted. */
export interface AppReader {
  /** Network and app: `x:client-id`. */
  readonly app: string;
  readonly workspaceId: string;
}

/** `share_spent`: the month has reads left, and this workspace has had its share of them for now. */
export type ReadsAnswer = 'taken' | 'share_spent' | 'month_spent';

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
   * Takes reads of the calendar month (UTC), all or none. A process that dies before it reads has spent them. What a
   * workspace has taken in all may not exceed what the month has left then, plus the part of the month's reads that
   * belongs to the time gone by. So the first to come finds half of them, leaves the others something at any time, and
   * may read all of them by the end of a month in which nobody else wants any.
   * @param monthly what the app may read in the month
   * @throws where it cannot be stored: then nothing may be read
   */
  take(reader: AppReader, reads: number, monthly: number, now: number): Promise<ReadsAnswer>;
  /** Gives reads back that the network provably did not bill. Not repeated where it fails: the count stays too high. */
  giveBack(reader: AppReader, reads: number, now: number): Promise<void>;
}

export const monthOf = (now: number): string => new Date(now).toISOString().slice(0, 7);

/** What a workspace and all together may have taken, added up: the month's reads, and those of the time gone by. */
export const openReads = (monthly: number, now: number): number => {
  const day = new Date(now);
  const [begins, ends] = [0, 1].map((more) => Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + more)) as [
    number,
    number,
  ];
  return Math.ceil(monthly * (1 + (now - begins) / (ends - begins)));
};

import type { Members } from '../shared/members.ts';
import { namedInstant, nextDay } from '../shared/outcomes.ts';
import type { XResult } from './api.ts';
import { appOf, type XOptions } from './options.ts';

/**
 * What X bills of reads: a post $0.005, a person $0.010 (docs.x.com, "Pricing", August 2026). They are counted in reads of
 * posts, so a person is two, and an operator bounds what the app may read in a month. A tenth of it is kept for what is not
 * optional: to look for a post whose answer was lost, and to know whose account it is. Figures rest before.
 */

export const readsOfPerson = 2;

export interface Read {
  /** Whose reads they are. */
  readonly workspaceId: string;
  /** Reads of posts that the answer may cost. */
  readonly reads: number;
  readonly isOptional: boolean;
}

/** X was not asked. */
export interface Spent {
  readonly kind: 'spent';
  readonly reason: string;
  /** ISO 8601, when there are reads again; null: what may be read could not be counted. */
  readonly until: string | null;
}

export type Counting = Pick<XOptions, 'app' | 'appLimits' | 'clock' | 'monthlyReads'>;

const kept = (monthly: number): number => Math.ceil(monthly / 10);

/**
 * Takes the reads, asks, and gives back what X did not bill. If we die in between, they count as spent.
 * @param shown how many reads the answer cost; default: all that it may cost
 */
export const billed = async <Result extends { readonly kind: string }>(
  { app, appLimits, clock, monthlyReads }: Counting,
  { workspaceId, reads, isOptional }: Read,
  ask: () => Promise<Result>,
  shown: (result: Result) => number = costs(reads),
): Promise<Result | Spent> => {
  if (monthlyReads === undefined) return ask();
  const [reader, now] = [{ app: appOf({ app }), workspaceId }, clock()];
  const open = isOptional ? monthlyReads - kept(monthlyReads) : monthlyReads;
  const taken = await appLimits.take(reader, reads, open, now).catch(() => null);
  if (taken === null) return spent('what may be read this month could not be counted', null);
  if (taken === 'month_spent') return spent('the reads of this month (X_MONTHLY_READS) are used up', nextMonth(now));
  // The share of a workspace grows as the month goes by.
  if (taken === 'share_spent') {
    return spent('the share of this month’s reads is used up for today', namedInstant(nextDay(now)));
  }
  const result = await ask();
  const unbilled = reads - Math.min(shown(result), reads);
  if (unbilled > 0) await appLimits.giveBack(reader, unbilled, now);
  return result;
};

/** Only an answer that may have shown something is billed. */
const costs =
  (reads: number) =>
  ({ kind }: { readonly kind: string }): number =>
    kind === 'ok' || kind === 'silent' ? reads : 0;

/** Of a list that may have held so many posts. */
export const costOfList =
  (reads: number) =>
  (result: XResult): number =>
    result.kind === 'ok' ? lengthOf(result.body) : costs(reads)(result);

const lengthOf = ({ data }: Members): number => (Array.isArray(data) ? data.length : 0);

const spent = (reason: string, until: string | null): Spent => ({ kind: 'spent', reason, until });

const nextMonth = (now: number): string => {
  const day = new Date(now);
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1)).toISOString();
};

/** What looking through one file's parts may cost, whatever the file says of itself, and who may end it. */
import { bomb, interrupted } from './failures.ts';

export interface Budget {
  left: number;
  readonly signal: AbortSignal;
}

/**
 * Parts that are looked at, of all of a file together. More than any honest film has: a fragmented one of 12 hours has
 * some 20,000 fragments.
 */
const most = 200_000;

export const budgetOf = (signal: AbortSignal): Budget => ({ left: most, signal });

/** Paid before each look. @throws TranscodeError when nothing is left, or `interrupted` */
export const spend = (budget: Budget, cost = 1): void => {
  if (budget.signal.aborted) throw interrupted(budget.signal.reason);
  budget.left -= cost;
  if (budget.left < 0) throw bomb('The file has more parts than any honest file has.');
};

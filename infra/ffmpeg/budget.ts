/**
 * Bounds the cost of a walk through one file's parts, even if the file claims endless ones, and carries the signal that
 * ends the walk.
 */
import { bomb, interrupted } from './failures.ts';

export interface Budget {
  left: number;
  readonly signal: AbortSignal;
}

/** Parts read of one file. No honest film has more: a fragmented one of 12 hours has some 20,000 fragments. */
const maxReads = 200_000;

export const budgetOf = (signal: AbortSignal): Budget => ({ left: maxReads, signal });

/** Call it before each read. @throws TranscodeError when the budget is used up, or `interrupted` */
export const spend = (budget: Budget, cost = 1): void => {
  if (budget.signal.aborted) throw interrupted(budget.signal.reason);
  budget.left -= cost;
  if (budget.left < 0) throw bomb('The file has more parts than any honest file has.');
};

import type { AppBudget, AppCaller, AppLimits } from '#contracts/ports/app-limits.ts';
import { type AppBudgetRule, windowAt } from '#domain/platforms/index.ts';
import { namedInstant, nextDay } from './outcomes.ts';

/** What an operator's app may do in a day or month of a network, taken before the call that the network counts. */

/** There was no call. */
export interface BudgetSpent {
  readonly kind: 'spent';
  readonly reason: string;
  /** ISO 8601, when there is something left again; null: what is left could not be counted. */
  readonly until: string | null;
}

type Rule = Omit<AppBudgetRule, 'counts'> & Partial<Pick<AppBudgetRule, 'counts'>> & Pick<AppBudget, 'isShared'>;

export const budgetAt = ({ name, limit, isShared, zone, every }: Rule, now: number): AppBudget => ({
  ...{ name, limit, ...windowAt({ zone, every }, now) },
  ...(isShared === true ? { isShared } : {}),
});

const hourMs = 3_600_000;

/** A share grows as the window goes by: within a day it is asked for again after an hour, within a month after a day. */
const shareGrows = ({ every }: Rule, { ends }: AppBudget, now: number): number =>
  Math.min(ends, every === 'month' ? nextDay(now) : now + hourMs);

interface Counted extends AppCaller {
  /** Whose call it is, where the network counts accounts. */
  readonly accountId: string;
  /** Default 1. */
  readonly amount?: number;
}

/**
 * Right before the call. If we die in between, it counts as made. A call that provably left nothing behind at the network is
 * given back by `giveBack` of the port.
 * @returns null: it may be made
 */
export const takeBudget = async (
  { appLimits, clock }: { readonly appLimits: AppLimits; readonly clock: () => number },
  rule: Rule,
  { app, workspaceId, accountId, amount = 1 }: Counted,
): Promise<BudgetSpent | null> => {
  const now = clock();
  const budget = budgetAt(rule, now);
  const taken = await (rule.counts === 'accounts'
    ? appLimits.admit(app, accountId, budget)
    : appLimits.take({ app, workspaceId }, amount, budget, now)
  ).catch(() => null);
  const of = `${rule.name} of this ${rule.every} (${rule.zone})`;
  if (taken === 'taken') return null;
  if (taken === null) return { kind: 'spent', reason: `the app’s ${of} could not be counted`, until: null };
  if (taken === 'spent') {
    return { kind: 'spent', reason: `the app’s ${of} are used up`, until: namedInstant(budget.ends) };
  }
  const until = namedInstant(shareGrows(rule, budget, now));
  return { kind: 'spent', reason: `the share of the app’s ${of} is used up for now`, until };
};

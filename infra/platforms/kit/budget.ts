import type { AppBudget } from '#contracts/ports/app-limits.ts';
import { type AppBudgetRule, rulesOf } from '#domain/platforms/index.ts';
import { budgetAt, takeBudget } from '../shared/app-budgets.ts';
import { namedInstant, nextDay } from '../shared/outcomes.ts';
import type { NetworkAnswer, NotOk } from './errors.ts';
import { appName, type Kit, type NetworkRequest } from './tables.ts';

/**
 * What an operator's app may ask for of what a network bills: it is taken before the call, for all processes, and what the
 * network did not bill is given back. A tenth is kept for what is not optional: to look for a post whose answer was lost,
 * and to know whose account it is. Figures rest before.
 */

export interface Cost {
  /** Whose reads they are. */
  readonly workspaceId: string;
  /** That the answer may cost. */
  readonly reads: number;
  readonly isOptional: boolean;
  /** What an answer that shows something cost. Default: all. */
  readonly shown?: (answer: Extract<NetworkAnswer, { readonly kind: 'ok' }>) => number;
}

type SpentAnswer = Extract<NotOk, { readonly kind: 'spent' }>;

const kept = (monthly: number): number => Math.ceil(monthly / 10);
const spent = (reason: string, until: string | null): SpentAnswer => ({ kind: 'spent', reason, until });

/** Networks bill what was read in a month of UTC. */
const readsOf = (limit: number, now: number) =>
  budgetAt({ name: 'reads', limit, zone: 'UTC', every: 'month', isShared: true }, now);

/** Only an answer that may have shown something is billed. */
const billedOf = ({ reads, shown }: Cost, answer: NetworkAnswer): number => {
  if (answer.kind === 'ok') return Math.min(shown?.(answer) ?? reads, reads);
  return answer.kind === 'silent' ? reads : 0;
};

/** A budget of calls is no workspace's. */
const nobody = { workspaceId: '00000000-0000-0000-0000-000000000000', accountId: '' };

interface Taken {
  readonly rule: AppBudgetRule;
  readonly amount: number;
}

/** What a call takes, and of which budget; null: it is not counted. @param ask null: of a call that is not known yet */
const takenBy = ({ app, tables }: Kit, ask: NetworkRequest | null): Taken | null => {
  const { appBudget, appUnits } = rulesOf(tables.platform);
  const units = tables.units === undefined ? 'budget' : ask === null ? 0 : tables.units(ask);
  const [rule, limit] = units === 'budget' ? [appBudget, app.budget] : [appUnits, app.units];
  const amount = units === 'budget' ? 1 : units;
  // Accounts are counted where one of them posts.
  if (rule === undefined || limit === undefined || amount === 0 || rule.counts === 'accounts') return null;
  return { rule: { ...rule, limit }, amount };
};

/**
 * Where the network counts calls of an app: right before each. Posts may use all of them, and what is optional half.
 * @returns null: the call may be made
 */
export const counted = async (
  kit: Kit,
  isOptional: boolean,
  ask: NetworkRequest | null = null,
): Promise<SpentAnswer | null> => {
  const taken = takenBy(kit, ask);
  if (taken === null) return null;
  const { rule, amount } = taken;
  const limit = isOptional ? Math.floor(rule.limit / 2) : rule.limit;
  return takeBudget(kit, { ...rule, limit }, { app: appName(kit), ...nobody, amount });
};

/** The network says that what the call took from has nothing left. */
export const exhaust = async (kit: Kit, ask: NetworkRequest): Promise<void> => {
  const taken = takenBy(kit, ask);
  if (taken === null) return;
  const budget: AppBudget = budgetAt(taken.rule, kit.clock());
  await kit.appLimits.exhaust(appName(kit), budget);
};

/** Takes, asks, and gives back. If we die in between, they count as spent. */
export const billed = async (kit: Kit, cost: Cost, ask: () => Promise<NetworkAnswer>): Promise<NetworkAnswer> => {
  const { app, appLimits, clock, tables } = kit;
  const { monthlyReads } = app;
  if (monthlyReads === null) return ask();
  const [reader, now] = [{ app: appName(kit), workspaceId: cost.workspaceId }, clock()];
  const budget = readsOf(cost.isOptional ? monthlyReads - kept(monthlyReads) : monthlyReads, now);
  const taken = await appLimits.take(reader, cost.reads, budget, now).catch(() => null);
  if (taken === null) return spent('what may be read this month could not be counted', null);
  const setting = `${tables.platform.toUpperCase()}_MONTHLY_READS`;
  if (taken === 'spent') return spent(`the reads of this month (${setting}) are used up`, namedInstant(budget.ends));
  // The share of a workspace grows as the month goes by.
  if (taken === 'share_spent') {
    return spent('the share of this month’s reads is used up for today', namedInstant(nextDay(now)));
  }
  const answer = await ask();
  const unbilled = cost.reads - billedOf(cost, answer);
  if (unbilled > 0) await appLimits.giveBack(reader, unbilled, budget);
  return answer;
};

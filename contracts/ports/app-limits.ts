/**
 * What limits an operator's whole app at a network, shared by all processes: how long the network refuses it, and what it
 * may do in a day or month of the network's calendar. `app-limits.suite.ts` proves implementations.
 */
import type { Failure } from '#schemas/target.ts';

/** A refusal that is about the app. */
export interface AppRefusal {
  /** Milliseconds since the epoch. */
  readonly until: number;
  readonly failure: Failure;
}

/** For whom the app calls. */
export interface AppCaller {
  /** Network and app: `x:client-id`. */
  readonly app: string;
  readonly workspaceId: string;
}

/** What the app may do in one window. Each window has a count of its own: none begins with what another left. */
export interface AppBudget {
  /** In the network's words: `reads`, `videos.insert`. */
  readonly name: string;
  readonly limit: number;
  /** Milliseconds since the epoch, exclusive its end: a day or month of the network's zone. */
  readonly begins: number;
  readonly ends: number;
  /** Each workspace has a share of it, which grows as the window goes by. Absent: whoever comes first may take it all. */
  readonly isShared?: true;
}

/** `share_spent`: the window has some left, and this workspace has had its share of it for now. */
export type BudgetAnswer = 'taken' | 'share_spent' | 'spent';

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
   * Takes from a budget, all or none. A process that dies before it calls has spent it. Of a shared budget, what a
   * workspace has taken in all may not exceed what the window has left then, plus the part of it that belongs to the time
   * gone by. So the first to come finds half of it, leaves the others something at any time, and may have all of it by the
   * end of a window in which nobody else wants any.
   * @throws where it cannot be stored: then the network may not be called
   */
  take(caller: AppCaller, amount: number, budget: AppBudget, now: number): Promise<BudgetAnswer>;
  /**
   * Takes one for a member that has none in this window yet, and nothing for one that has: where a network counts the
   * accounts for which an app is active.
   * @param member id of the account
   * @throws where it cannot be stored
   */
  admit(app: string, member: string, budget: AppBudget): Promise<Exclude<BudgetAnswer, 'share_spent'>>;
  /** Gives back what the network provably did not count. Not repeated where it fails: the count stays too high. */
  giveBack(caller: AppCaller, amount: number, budget: AppBudget): Promise<void>;
  /**
   * The network says that the window has nothing left, which it knows better: after a restore from an older copy, or where
   * something else calls with the same app. Resolves also where it could not be stored: then the network says so again.
   */
  exhaust(app: string, budget: AppBudget): Promise<void>;
}

/** What a workspace and all together may have taken of a shared budget, added up: all of it, and the part of the time gone by. */
export const openShare = ({ limit, begins, ends }: AppBudget, now: number): number =>
  Math.ceil(limit * (1 + Math.min(Math.max((now - begins) / (ends - begins), 0), 1)));

import {
  type AppBudget,
  type AppCaller,
  type AppLimits,
  type AppRefusal,
  type AppRestScope,
  type BudgetAnswer,
  openShare,
} from '#contracts/ports/app-limits.ts';

/** Limits of apps for tests of adapters: one process, nothing kept. */
export class MemoryAppLimits implements AppLimits {
  readonly #rests = new Map<string, AppRefusal>();
  readonly #used = new Map<string, number>();

  async restOf(app: string, isRead: boolean, now: number): Promise<AppRefusal | null> {
    const rests = (isRead ? ['all', 'reads'] : ['all']).map((what) => this.#rests.get(`${what} ${app}`));
    return rests.find((rest) => rest !== undefined && rest.until > now) ?? null;
  }

  async rest(app: string, what: AppRestScope, refusal: AppRefusal): Promise<void> {
    const name = `${what} ${app}`;
    if (refusal.until > (this.#rests.get(name)?.until ?? 0)) this.#rests.set(name, refusal);
  }

  async take({ app, workspaceId }: AppCaller, amount: number, budget: AppBudget, now: number): Promise<BudgetAnswer> {
    const window = windowOf(app, budget);
    const share = `${window} ${workspaceId}`;
    const [ofAll, own] = [window, share].map((name) => (this.#used.get(name) ?? 0) + amount) as [number, number];
    if (ofAll > budget.limit) return 'spent';
    if (budget.isShared === true && ofAll + own > openShare(budget, now)) return 'share_spent';
    this.#used.set(window, ofAll).set(share, own);
    return 'taken';
  }

  async admit(app: string, member: string, budget: AppBudget): Promise<'taken' | 'spent'> {
    const window = windowOf(app, budget);
    const [ofAll, own] = [this.#used.get(window) ?? 0, `${window} ${member}`];
    if (this.#used.has(own)) return 'taken';
    if (ofAll >= budget.limit) return 'spent';
    this.#used.set(window, ofAll + 1).set(own, 1);
    return 'taken';
  }

  async giveBack({ app, workspaceId }: AppCaller, amount: number, budget: AppBudget): Promise<void> {
    const window = windowOf(app, budget);
    for (const name of [window, `${window} ${workspaceId}`]) {
      this.#used.set(name, Math.max(0, (this.#used.get(name) ?? 0) - amount));
    }
  }

  async exhaust(app: string, budget: AppBudget): Promise<void> {
    const window = windowOf(app, budget);
    this.#used.set(window, Math.max(budget.limit, this.#used.get(window) ?? 0));
  }
}

const windowOf = (app: string, { name, begins }: AppBudget): string => `${app} ${name} ${begins}`;

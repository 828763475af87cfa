import { type AppLimits, type AppRefusal, type AppRestScope, monthOf } from '#contracts/ports/app-limits.ts';

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

  async take(app: string, reads: number, monthly: number, now: number): Promise<boolean> {
    const name = `${monthOf(now)} ${app}`;
    const used = (this.#used.get(name) ?? 0) + reads;
    if (used > monthly) return false;
    this.#used.set(name, used);
    return true;
  }

  async giveBack(app: string, reads: number, now: number): Promise<void> {
    const name = `${monthOf(now)} ${app}`;
    this.#used.set(name, Math.max(0, (this.#used.get(name) ?? 0) - reads));
  }
}

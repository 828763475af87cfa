import {
  type AppLimits,
  type AppReader,
  type AppRefusal,
  type AppRestScope,
  monthOf,
  openReads,
  type ReadsAnswer,
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

  async take({ app, workspaceId }: AppReader, reads: number, monthly: number, now: number): Promise<ReadsAnswer> {
    const month = `${monthOf(now)} ${app}`;
    const share = `${month} ${workspaceId}`;
    const [ofAll, own] = [month, share].map((name) => (this.#used.get(name) ?? 0) + reads) as [number, number];
    if (ofAll > monthly) return 'month_spent';
    if (ofAll + own > openReads(monthly, now)) return 'share_spent';
    this.#used.set(month, ofAll).set(share, own);
    return 'taken';
  }

  async giveBack({ app, workspaceId }: AppReader, reads: number, now: number): Promise<void> {
    const month = `${monthOf(now)} ${app}`;
    for (const name of [month, `${month} ${workspaceId}`]) {
      this.#used.set(name, Math.max(0, (this.#used.get(name) ?? 0) - reads));
    }
  }
}

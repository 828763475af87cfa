/** Posts that may be read for figures in a calendar month (UTC): X bills each. A restart begins to count anew. */
export class ReadBudget {
  readonly #monthly: number;
  #month = '';
  #used = 0;

  constructor(monthly: number) {
    this.#monthly = monthly;
  }

  /** All or none. @param now milliseconds since the epoch */
  take(posts: number, now: number): boolean {
    const month = new Date(now).toISOString().slice(0, 7);
    if (month !== this.#month) {
      this.#month = month;
      this.#used = 0;
    }
    if (this.#used + posts > this.#monthly) return false;
    this.#used += posts;
    return true;
  }

  /** When the next month begins. */
  renewsAt(now: number): string {
    const day = new Date(now);
    return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1)).toISOString();
  }
}

/**
 * When a worker last searched for work, for /readyz. A loop that hangs throws no error, so only a search that is too
 * old shows the fault.
 */
export class Liveness {
  readonly #limitMs: number;
  #searchedAt = performance.now();

  /** @param limitMs age of the last search from which the worker is not ready */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Monotonic milliseconds. */
  get searchedAt(): number {
    return this.#searchedAt;
  }

  searched(): void {
    this.#searchedAt = performance.now();
  }

  /**
   * The line for /readyz.
   * @param detail further figures of the worker, such as its running jobs
   * @throws when the last search is too old
   */
  check(detail?: string): string {
    const ageMs = performance.now() - this.#searchedAt;
    if (ageMs > this.#limitMs) throw new Error(`has not looked for work for ${Math.round(ageMs)} ms`);
    const line = `looked ${Math.round(ageMs)} ms ago`;
    return detail === undefined ? line : `${line}, ${detail}`;
  }
}

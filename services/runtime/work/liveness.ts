/**
 * When a worker looked for work last, for /readyz: a loop that hangs reports no error by itself, and only the missing
 * look shows it.
 */
export class Liveness {
  readonly #limitMs: number;
  #lookedAt = performance.now();

  /** @param limitMs a worker that has not looked for so long is not well */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Monotonic milliseconds. */
  get lookedAt(): number {
    return this.#lookedAt;
  }

  looked(): void {
    this.#lookedAt = performance.now();
  }

  /**
   * The line for /readyz.
   * @param detail what else the worker says of itself, such as how much is under way
   * @throws when the last look is too old
   */
  check(detail?: string): string {
    const ageMs = performance.now() - this.#lookedAt;
    if (ageMs > this.#limitMs) throw new Error(`has not looked for work for ${Math.round(ageMs)} ms`);
    const looked = `looked ${Math.round(ageMs)} ms ago`;
    return detail === undefined ? looked : `${looked}, ${detail}`;
  }
}

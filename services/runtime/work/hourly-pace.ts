const hourMs = 3_600_000;

/** Starts that are spread evenly over each hour, so that a budget of calls is never spent in a burst. */
export class HourlyPace {
  readonly #gapMs: number;
  readonly #now: () => number;
  #nextAt = Number.NEGATIVE_INFINITY;

  /** @param now monotonic, milliseconds */
  constructor(perHour: number, now: () => number = () => performance.now()) {
    if (!(perHour > 0)) throw new RangeError('a pace is a number of starts per hour above 0');
    this.#gapMs = hourMs / perHour;
    this.#now = now;
  }

  /** Takes the next place. @returns milliseconds until it begins */
  take(): number {
    const now = this.#now();
    const at = Math.max(now, this.#nextAt);
    this.#nextAt = at + this.#gapMs;
    return at - now;
  }
}

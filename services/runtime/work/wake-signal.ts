/** Ends a loop's wait early. A signal that comes while nobody waits ends the next wait at once. */
export class WakeSignal {
  #woken = false;
  #end: () => void = () => undefined;

  wake(): void {
    this.#woken = true;
    this.#end();
  }

  /** Until the next signal or the end of the time; returns at once when `holds`. */
  async wait(ms: number, holds: () => boolean): Promise<void> {
    if (!this.#woken && !holds()) await this.#sleep(ms);
    this.#woken = false;
  }

  /** Until `holds` or the end of the time: signals only make it ask `holds` again. */
  async waitUntil(ms: number, holds: () => boolean): Promise<void> {
    const end = performance.now() + ms;
    for (let left = ms; left > 0 && !holds(); left = end - performance.now()) await this.#sleep(left);
    this.#woken = false;
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#end = () => undefined;
  }
}

/** Poll intervals that a loop waits at most between two looks that find nothing. */
const usualMaxPolls = 4;

/**
 * How long a loop waits for its signal: longer after each look that found nothing, because the next look finds something
 * only where a signal was lost or a time has come.
 */
export class Rest {
  readonly #pollMs: number;
  readonly #maxMs: number;
  #ms = 0;

  constructor(pollMs: number, maxPolls = usualMaxPolls) {
    this.#pollMs = pollMs;
    this.#maxMs = maxPolls * pollMs;
  }

  /** The wait that was answered last. */
  get ms(): number {
    return this.#ms;
  }

  /** Makes the next wait short again, because something has come. */
  reset(): void {
    this.#ms = this.#pollMs;
  }

  /** Milliseconds until the next look. */
  after(busy: boolean): number {
    this.#ms = busy ? this.#pollMs : Math.min(Math.max(2 * this.#ms, this.#pollMs), this.#maxMs);
    return this.#ms;
  }
}

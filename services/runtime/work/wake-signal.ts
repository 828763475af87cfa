/** Ends a loop's wait early. A signal that arrives between two waits ends the next wait at once. */
export class WakeSignal {
  #woken = false;
  #end: () => void = () => undefined;

  wake(): void {
    this.#woken = true;
    this.#end();
  }

  /** Waits until the next signal or the end of the time; returns at once if `holds` is true. */
  async wait(ms: number, holds: () => boolean): Promise<void> {
    if (!this.#woken && !holds()) await this.#sleep(ms);
    this.#woken = false;
  }

  /** Waits until `holds` is true or the time ends; a signal only causes another check of `holds`. */
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

/** Longest wait between two searches that find nothing, in poll intervals. */
const usualMaxPolls = 4;

/**
 * How long a loop waits for its signal: longer after each search that found nothing, because the next search finds work
 * only if a signal was lost or a due time has come.
 */
export class Rest {
  readonly #pollMs: number;
  readonly #maxMs: number;
  #ms = 0;

  constructor(pollMs: number, maxPolls = usualMaxPolls) {
    this.#pollMs = pollMs;
    this.#maxMs = maxPolls * pollMs;
  }

  /** The last wait returned. */
  get ms(): number {
    return this.#ms;
  }

  /** Makes the next wait short again, because something has come. */
  reset(): void {
    this.#ms = this.#pollMs;
  }

  /** Milliseconds until the next search. */
  after(busy: boolean): number {
    this.#ms = busy ? this.#pollMs : Math.min(Math.max(2 * this.#ms, this.#pollMs), this.#maxMs);
    return this.#ms;
  }
}

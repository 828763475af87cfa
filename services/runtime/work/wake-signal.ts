/** Wakes one who waits. A ring while nobody waits ends the next wait at once. */
export class WakeSignal {
  #rung = false;
  #wake: () => void = () => undefined;

  ring(): void {
    this.#rung = true;
    this.#wake();
  }

  /** Until it rings, or the time is over; at once when `holds`. */
  async wait(ms: number, holds: () => boolean): Promise<void> {
    if (!this.#rung && !holds()) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#rung = false;
    this.#wake = () => undefined;
  }
}

/** Poll intervals that a loop waits at most between two looks that find nothing. */
const maxPolls = 4;

/** How long a loop waits beside its bell: longer after each look that found nothing, since only a lost ring makes the next one find something. */
export class Rest {
  readonly #pollMs: number;
  #ms = 0;

  constructor(pollMs: number) {
    this.#pollMs = pollMs;
  }

  /** Milliseconds until the next look. */
  after(busy: boolean): number {
    this.#ms = busy ? this.#pollMs : Math.min(Math.max(2 * this.#ms, this.#pollMs), maxPolls * this.#pollMs);
    return this.#ms;
  }
}

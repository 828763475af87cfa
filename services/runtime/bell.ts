/** Wakes one who waits. A ring while nobody waits ends the next wait at once. */
export class Bell {
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

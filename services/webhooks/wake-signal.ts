/** Wakes one who waits. */
export class WakeSignal {
  #wake: () => void = () => undefined;

  ring(): void {
    this.#wake();
  }

  /** Until the time is over, or until `holds`, which is asked at the beginning and at each ring. */
  async wait(ms: number, holds: () => boolean): Promise<void> {
    const end = performance.now() + ms;
    for (let left = ms; left > 0 && !holds(); left = end - performance.now()) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = () => undefined;
  }
}

/** Runs at most `width` pieces of work at once. Keys take turns, so that one key cannot starve another. */
export class FairQueue {
  readonly #width: number;
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(width: number) {
    this.#width = width;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    // A finished run hands its slot to the next waiter below, and frees the slot only if none waits.
    if (this.#running < this.#width) this.#running += 1;
    else await this.#turn(key);
    try {
      return await work();
    } finally {
      const next = this.#next();
      if (next === null) this.#running -= 1;
      else next();
    }
  }

  #turn(key: string): Promise<void> {
    return new Promise((resolve) => {
      const line = this.#waiting.get(key);
      if (line === undefined) this.#waiting.set(key, [resolve]);
      else line.push(resolve);
    });
  }

  #next(): (() => void) | null {
    const [first] = this.#waiting;
    if (first === undefined) return null;
    const [key, line] = first;
    const next = line.shift();
    // A key with more waiting work goes to the end of the round.
    this.#waiting.delete(key);
    if (line.length > 0) this.#waiting.set(key, line);
    return next ?? null;
  }
}

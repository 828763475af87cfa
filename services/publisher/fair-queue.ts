/** At most `width` pieces of work at once; what waits is taken from the keys in turn, so that one cannot starve another. */
export class FairQueue {
  readonly #width: number;
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(width: number) {
    this.#width = width;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    // A place that is given up is handed on below, never freed while somebody waits.
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
    // Back to the end of the round, if it still waits.
    this.#waiting.delete(key);
    if (line.length > 0) this.#waiting.set(key, line);
    return next ?? null;
  }
}

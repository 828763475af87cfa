import { backOff } from '#contracts/base/back-off.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';

/** The sweep passes over a failed subject, after each failure for twice as long. */

const firstMs = 60_000;
const maxMs = 3_600_000;
/** Failed subjects kept in memory. The sweep retries a forgotten one at once, which costs one more failure. */
const maxSubjects = 10_000;

interface Rest {
  readonly failures: number;
  readonly until: number;
}

export class Resting {
  readonly #now: () => number;
  readonly #rests = new BoundedMap<string, Rest>(maxSubjects);
  #endedAt: string | null = null;

  /** @param now monotonic, milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  has(subject: string): boolean {
    return (this.#rests.get(subject)?.until ?? Number.NEGATIVE_INFINITY) > this.#now();
  }

  /** @returns milliseconds that the subject rests */
  failed(subject: string): number {
    const failures = (this.#rests.get(subject)?.failures ?? 0) + 1;
    const restMs = backOff(failures - 1, { firstMs, maxMs });
    this.#rests.set(subject, { failures, until: this.#now() + restMs });
    return restMs;
  }

  succeeded(subject: string): void {
    this.#rests.delete(subject);
    if (this.#endedAt === subject) this.#endedAt = null;
  }

  /**
   * Notes that a sweep ended at this subject, because a dependency did not answer.
   * @returns whether the sweep before ended at the same subject: then the subject itself may be the cause, and all
   *   subjects behind it would wait for ever
   */
  endsAgain(subject: string): boolean {
    const again = this.#endedAt === subject;
    this.#endedAt = again ? null : subject;
    return again;
  }
}

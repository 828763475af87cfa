import { pause } from '#contracts/base/pause.ts';

/** Milliseconds after which a wait reads the clock again, because the database's clock may have been measured anew. */
const lookMs = 250;

/** Resolves when the clock `now` has reached the instant (never before), or when the signal aborts. */
export const until = async (instant: number, now: () => number, signal: AbortSignal): Promise<void> => {
  for (let left = instant - now(); left > 0 && !signal.aborted; left = instant - now()) {
    await pause(Math.min(Math.max(1, left), lookMs), signal);
  }
};

/** An instant by which something must end, on the monotonic clock. */
export class Deadline {
  readonly #at: number;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly signal: AbortSignal;

  constructor(ms: number) {
    this.#at = performance.now() + ms;
    this.#timer = setTimeout(() => this.#abort(), ms);
    const { signal } = this.#controller;
    // A process that resumes after a stop reads `aborted` before its timers run, so the getter checks the clock.
    Object.defineProperty(signal, 'aborted', {
      get: () => {
        if (this.leftMs() <= 0) this.#abort();
        return Reflect.get(AbortSignal.prototype, 'aborted', signal);
      },
    });
    this.signal = signal;
  }

  leftMs(): number {
    return this.#at - performance.now();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  #abort(): void {
    clearTimeout(this.#timer);
    this.#controller.abort(new Error('the deadline has passed'));
  }
}

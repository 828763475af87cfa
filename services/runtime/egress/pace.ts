export interface PaceLimits {
  /**
   * Milliseconds that a server may make us wait for the body; each `minRate` bytes earn a second more. So a server that
   * drips holds its slot for little longer than this, and a large file takes as long as it needs. Default 120,000.
   */
  readonly headStartMs: number;
  /** Bytes a second; default 256 KiB. */
  readonly minRate: number;
  /**
   * The window of waiting for the body in which the rate may not fall below `minWindowRate`, milliseconds; default
   * 30,000.
   */
  readonly windowMs: number;
  /** Bytes a second; default 64 KiB. */
  readonly minWindowRate: number;
}

/** Marks in a window: its beginning is known to within a thirtieth of it. */
const WINDOW_MARKS = 30;

/** Whether a file comes fast enough for the slot that it takes. Times count waiting for the server, milliseconds. */
export class Pace {
  readonly #limits: PaceLimits;
  /**
   * Bytes received by instant, the oldest first: the first mark is as old as the window, or as the body. Empty: no body
   * has begun.
   */
  #marks: { readonly at: number; readonly bytes: number }[] = [];

  constructor(limits: PaceLimits) {
    this.#limits = limits;
  }

  /** A body begins, or goes on after a break. */
  begin(bytes: number, at: number): void {
    this.#marks = [{ at, bytes }];
  }

  isTooSlow(bytes: number, at: number): boolean {
    const { headStartMs, minRate } = this.#limits;
    return at >= headStartMs + (bytes * 1_000) / minRate || this.#hasSlowWindow(bytes, at);
  }

  #hasSlowWindow(bytes: number, at: number): boolean {
    const { windowMs, minWindowRate } = this.#limits;
    const last = this.#marks.at(-1);
    if (last === undefined) return false;
    if (at - last.at >= windowMs / WINDOW_MARKS) this.#marks.push({ at, bytes });
    while ((this.#marks[1]?.at ?? Number.POSITIVE_INFINITY) <= at - windowMs) this.#marks.shift();
    const [first = last] = this.#marks;
    return at - first.at >= windowMs && (bytes - first.bytes) * 1_000 < minWindowRate * (at - first.at);
  }
}

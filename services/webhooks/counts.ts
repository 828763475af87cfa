/** The counts of `ConcurrencyLimiter`, and the credit of a host whose endpoints fail. */

export interface Limits {
  /** Requests under way to one endpoint, to one host of a tenant, for one tenant, and in all. */
  readonly endpoint: number;
  readonly host: number;
  readonly tenant: number;
  readonly total: number;
  /** Requests a second to one host of a tenant by endpoints whose last request failed. */
  readonly failuresPerSecond: number;
}

export interface Count {
  underWay: number;
  /** Of those, retries and replays. */
  later: number;
  waiting: number;
  waitingLater: number;
  reserved: number;
}

export const zeroCount = (): Count => ({ underWay: 0, later: 0, waiting: 0, waitingLater: 0, reserved: 0 });
export const busy = ({ underWay, waiting, reserved }: Count): number => underWay + waiting + reserved;
export const half = (limit: number): number => Math.max(1, limit >> 1);

/** The growth of each count by a claim that is being composed. */
export class PendingCounts {
  readonly #counts = new Map<Count, number>();

  of(count: Count): number {
    return this.#counts.get(count) ?? 0;
  }

  add(count: Count, by: number): void {
    this.#counts.set(count, this.of(count) + by);
  }
}

/** A bucket of requests that starts full. Time refills it, and each success adds one. */
export class Credit {
  readonly #burst: number;
  readonly #perMs: number;
  #left: number;
  #at = performance.now();

  constructor(burst: number, perSecond: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1_000;
    this.#left = burst;
  }

  /** Whole requests. */
  get now(): number {
    if (this.#left < this.#burst) {
      const at = performance.now();
      this.#left = Math.min(this.#burst, this.#left + (at - this.#at) * this.#perMs);
      this.#at = at;
    }
    return Math.floor(this.#left);
  }

  get isFull(): boolean {
    return this.now >= this.#burst;
  }

  take(): void {
    if (this.#left >= this.#burst) this.#at = performance.now();
    this.#left -= 1;
  }

  give(): void {
    this.#left = Math.min(this.#burst, this.#left + 1);
  }
}

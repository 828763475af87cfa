/** What `Places` counts, and what a host may still be sent that does not take it. */

export interface Limits {
  /** Under way of one endpoint, of one host of a tenant, of one tenant, and of all. */
  readonly endpoint: number;
  readonly host: number;
  readonly tenant: number;
  readonly total: number;
  /** Requests a second to one host of a tenant from endpoints that do not take what they are sent. */
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

export const nobody = (): Count => ({ underWay: 0, later: 0, waiting: 0, waitingLater: 0, reserved: 0 });
export const busy = ({ underWay, waiting, reserved }: Count): number => underWay + waiting + reserved;
export const half = (limit: number): number => Math.max(1, limit >> 1);

/** What is about to be taken in, while it is put together: of each count, how much. */
export class PendingCounts {
  readonly #counts = new Map<Count, number>();

  of(count: Count): number {
    return this.#counts.get(count) ?? 0;
  }

  add(count: Count, by: number): void {
    this.#counts.set(count, this.of(count) + by);
  }
}

/** A bucket that is full at first and fills again by time; what is taken well fills it too. */
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

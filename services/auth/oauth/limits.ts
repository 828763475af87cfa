/** How often owners may do something, counted in this process; an owner is a caller's address. */

export interface Rate {
  readonly perMinute: number;
  /** At once. */
  readonly burst: number;
}

/** The most owners that are remembered: the one that came first is forgotten first, and begins anew. */
const maxOwners = 20_000;

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** A bucket of `burst` drops for each owner, which fills with `perMinute`. */
export class Quota {
  readonly #rate: Rate;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  /** @param now monotonic milliseconds */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
  }

  /** 0: spent one. Else the whole seconds after which the owner has one again. */
  take(owner: string): number {
    const { perMinute, burst } = this.#rate;
    const now = this.#now();
    const bucket = this.#buckets.get(owner) ?? { left: burst, at: now };
    const left = Math.min(burst, bucket.left + ((now - bucket.at) / 60_000) * perMinute);
    if (left < 1) return Math.max(1, Math.ceil(((1 - left) / perMinute) * 60));
    this.#buckets.delete(owner);
    this.#buckets.set(owner, { left: left - 1, at: now });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > maxOwners && oldest !== undefined) this.#buckets.delete(oldest);
    return 0;
  }
}

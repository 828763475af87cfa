import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { networkOf } from '#runtime/identity/proxies.ts';

/** How often owners may do something, counted in this process; an owner is a caller's address, or its network. */

export interface Rate {
  readonly perMinute: number;
  /** At once. */
  readonly burst: number;
}

/** The most owners that are remembered: the one that spent longest ago is forgotten first, and begins anew. */
const maxOwners = 20_000;

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** A bucket of `burst` drops for each owner, which fills with `perMinute`. */
export class Quota {
  readonly #rate: Rate;
  readonly #now: () => number;
  readonly #buckets = new BoundedMap<string, Bucket>(maxOwners);

  /** @param now monotonic milliseconds */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#now = now;
  }

  /** 0: spent one. Else the whole seconds after which the owner has one again. */
  take(owner: string): number {
    const wait = this.wait(owner);
    if (wait === 0) this.spend(owner);
    return wait;
  }

  /** Seconds until the owner has one again beyond those that are kept back; 0: it has, and none was spent. */
  wait(owner: string, keptBack = 0): number {
    const left = this.#left(owner) - keptBack;
    return left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) / this.#rate.perMinute) * 60));
  }

  /** After `wait` said 0. */
  spend(owner: string): void {
    this.#buckets.set(owner, { left: this.#left(owner) - 1, at: this.#now() });
  }

  /** Whether the owner has spent nothing for so many milliseconds. */
  isNew(owner: string, ms: number): boolean {
    const bucket = this.#buckets.get(owner);
    return bucket === undefined || this.#now() - bucket.at > ms;
  }

  #left(owner: string): number {
    const { perMinute, burst } = this.#rate;
    const bucket = this.#buckets.get(owner);
    return bucket === undefined
      ? burst
      : Math.min(burst, bucket.left + ((this.#now() - bucket.at) / 60_000) * perMinute);
  }
}

export interface RegistrationRates {
  /** Of one address. Default 20 an hour. */
  readonly address?: Rate;
  /** Of one network. Default 50 at once, and 150 an hour. */
  readonly network?: Rate;
  /** Of all together. Default 200 at once, and 600 an hour. */
  readonly all?: Rate;
}

/** A network that has registered nothing for so long is a new one, milliseconds. */
const newAfterMs = 3_600_000;
/** Part of those of all that only new networks may take. */
const reserve = 0.25;

/**
 * How many apps may register. The addresses of a network share one limit, since a tenant of a network has thousands of
 * addresses; whatever networks take, a reserve is left, of which each new network gets one registration an hour.
 */
export class Registrations {
  readonly #address: Quota;
  readonly #network: Quota;
  readonly #all: Quota;
  readonly #reserved: number;

  /** @param now monotonic milliseconds */
  constructor(rates: RegistrationRates = {}, now?: () => number) {
    const all = rates.all ?? { perMinute: 10, burst: 200 };
    this.#address = new Quota(rates.address ?? { perMinute: 20 / 60, burst: 20 }, now);
    this.#network = new Quota(rates.network ?? { perMinute: 2.5, burst: 50 }, now);
    this.#all = new Quota(all, now);
    this.#reserved = Math.floor(all.burst * reserve);
  }

  /** 0: spent one. Else the seconds after which one may be registered from there. @param address as `readCaller` gives it */
  take(address: string): number {
    const network = networkOf(address);
    const keptBack = this.#network.isNew(network, newAfterMs) ? 0 : this.#reserved;
    const waits = [this.#address.wait(address), this.#network.wait(network), this.#all.wait('', keptBack)];
    const wait = Math.max(...waits);
    if (wait > 0) return wait;
    this.#address.spend(address);
    this.#network.spend(network);
    this.#all.spend('');
    return 0;
  }
}

import { pickFairly, RunningCounts } from './fair-pick.ts';

/**
 * Slots of one kind of work in this process, shared between customers; a workspace and its sandbox twin are one
 * customer. No customer gets more than its share, so that many or slow files of one do not delay the only file of
 * another.
 */
export class Slots {
  readonly #total: number;
  readonly #share: number;
  readonly #counts = new RunningCounts();

  /** @param share slots that one customer may take */
  constructor(total: number, share: number) {
    this.#total = total;
    this.#share = share;
  }

  get running(): number {
    return this.#counts.total;
  }

  get free(): number {
    return this.#total - this.#counts.total;
  }

  hasRoom(customer: string): boolean {
    return this.free > 0 && this.#counts.of(customer) < this.#share;
  }

  take(customer: string): void {
    this.#counts.add([customer]);
  }

  leave(customer: string): void {
    this.#counts.remove([customer]);
  }

  /**
   * The jobs that get a slot. Customers with the fewest slots go first, and the jobs of one customer go in their order.
   */
  fairly<T extends { readonly customer: string }>(wanted: readonly T[]): readonly T[] {
    return pickFairly(wanted, this.#counts, {
      slots: this.#total,
      keysOf: ({ customer }) => [customer],
      shares: [({ customer }, running) => running.of(customer) < this.#share],
    });
  }
}

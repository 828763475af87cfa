/**
 * Slots of one kind of work in this process, shared out among customers: a workspace and its sandbox twin are one. Nobody
 * gets more than a share, so that many files of one, or slow ones, do not hold up the one file of another.
 */
export class Slots {
  readonly #total: number;
  readonly #share: number;
  readonly #taken = new Map<string, number>();
  #running = 0;

  /** @param share slots that one customer may take */
  constructor(total: number, share: number) {
    this.#total = total;
    this.#share = share;
  }

  get running(): number {
    return this.#running;
  }

  get free(): number {
    return this.#total - this.#running;
  }

  hasRoom(customer: string): boolean {
    return this.free > 0 && this.#of(customer) < this.#share;
  }

  take(customer: string): void {
    this.#taken.set(customer, this.#of(customer) + 1);
    this.#running += 1;
  }

  leave(customer: string): void {
    const left = this.#of(customer) - 1;
    if (left > 0) this.#taken.set(customer, left);
    else this.#taken.delete(customer);
    this.#running -= 1;
  }

  /** Those that there is room for: customers with the fewest slots go first, of one the first named. */
  fairly<T extends { readonly customer: string }>(wanted: readonly T[]): readonly T[] {
    const turns = new Map<string, number>();
    const ranked = wanted.map((one) => {
      const turn = turns.get(one.customer) ?? this.#of(one.customer);
      turns.set(one.customer, turn + 1);
      return { one, turn };
    });
    return ranked
      .filter(({ turn }) => turn < this.#share)
      .sort((a, b) => a.turn - b.turn)
      .slice(0, Math.max(0, this.free))
      .map(({ one }) => one);
  }

  #of(customer: string): number {
    return this.#taken.get(customer) ?? 0;
  }
}

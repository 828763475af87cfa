export interface BoundedMapOptions<Key, Value> {
  /** What an entry counts of the bound. Default: 1. It must not change while the entry is kept. */
  readonly weigh?: (value: Value) => number;
  /** Receives each entry that the bound pushes out; none that is deleted, replaced or cleared. */
  readonly onForget?: (key: Key, value: Value) => void;
}

/**
 * A map that forgets the oldest: the entries that were set longest ago go until the rest is within the bound. Setting a
 * key again makes it the newest; reading it does not. An entry that alone is over the bound pushes out all, itself too.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number;
  readonly #weigh: (value: Value) => number;
  readonly #onForget: ((key: Key, value: Value) => void) | undefined;
  #weight = 0;

  constructor(max: number, { weigh = () => 1, onForget }: BoundedMapOptions<Key, Value> = {}) {
    super();
    this.#max = max;
    this.#weigh = weigh;
    this.#onForget = onForget;
  }

  /** Of all entries together. */
  get weight(): number {
    return this.#weight;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    this.#weight += this.#weigh(value);
    for (const [oldest, former] of this) {
      if (this.#weight <= this.#max) break;
      this.delete(oldest);
      this.#onForget?.(oldest, former);
    }
    return this;
  }

  override delete(key: Key): boolean {
    if (!this.has(key)) return false;
    this.#weight -= this.#weigh(this.get(key) as Value);
    return super.delete(key);
  }

  override clear(): void {
    super.clear();
    this.#weight = 0;
  }
}

/** Lookups by key share queries: those that arrive while a query runs are answered together by the next one. */

const defaultMaxKeys = 64;
/** Queries at once: a slow one does not hold up all others. */
const maxOut = 2;

interface Lookup<Value, Key> {
  readonly key: Key;
  readonly found: (value: Value | null) => void;
  readonly failed: (error: unknown) => void;
}

export class Batches<Value, Key = string> {
  readonly #load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>;
  readonly #maxKeys: number;
  #waiting: Lookup<Value, Key>[] = [];
  #out = 0;

  /**
   * @param load one query for several different keys, of which objects differ by identity; its answer lacks keys that it
   * does not find
   * @param maxKeys in one query. Fewer where each key is much work: the database then runs one query while this process
   * handles the answer of another.
   */
  constructor(load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>, maxKeys: number = defaultMaxKeys) {
    this.#load = load;
    this.#maxKeys = maxKeys;
  }

  /** Null when there is none. Its query begins after the call, so it sees everything committed before. */
  get(key: Key): Promise<Value | null> {
    return new Promise((found, failed) => {
      this.#waiting.push({ key, found, failed });
      if (this.#out === maxOut) return;
      this.#out += 1;
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    // Requests of the same turn share a query.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#maxKeys);
      try {
        const values = await this.#load([...new Set(batch.map(({ key }) => key))]);
        for (const { key, found } of batch) found(values.get(key) ?? null);
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.#out -= 1;
  }
}

/** One set of batches for each source (a pool), made at the first lookup. */
export const batchesOf = <Source extends object, Value, Key = string>(
  load: (source: Source, keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>,
  maxKeys?: number,
): ((source: Source, key: Key) => Promise<Value | null>) => {
  const known = new WeakMap<Source, Batches<Value, Key>>();
  return (source, key) => {
    const batches = known.get(source) ?? new Batches<Value, Key>((keys) => load(source, keys), maxKeys);
    known.set(source, batches);
    return batches.get(key);
  };
};

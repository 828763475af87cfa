/** Random choices in tests come from a printed seed, so that a failure can be repeated. */

export interface Random {
  readonly seed: number;
  /** A number in [0, 1). */
  next(): number;
  /** A whole number in [low, high], both included. */
  int(low: number, high: number): number;
  /** One of the items. Throws on an empty list. */
  pick<T>(items: readonly T[]): T;
  /** The items in a random order; the given list stays unchanged. */
  shuffle<T>(items: readonly T[]): T[];
}

/** A generator seeded by `SEED` from the environment, else at random; prints `<label>: SEED=<n>`. */
export function seeded(label: string): Random {
  const given = process.env.SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32)
    throw new RangeError(`SEED must be a whole number below 2^32`);
  process.stdout.write(`${label}: SEED=${seed}\n`);
  return random(seed);
}

/** The same generator (mulberry32) from a seed in [0, 2^32), silent. */
export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  return {
    seed,
    next,
    int,
    pick: <T>(items: readonly T[]): T => {
      if (items.length === 0) throw new RangeError('nothing to pick from');
      return items[int(0, items.length - 1)] as T;
    },
    shuffle: (items) => {
      const copy = [...items];
      for (let last = copy.length - 1; last > 0; last -= 1) {
        const other = int(0, last);
        [copy[last], copy[other]] = [copy[other] as (typeof copy)[number], copy[last] as (typeof copy)[number]];
      }
      return copy;
    },
  };
}

/** A run draws one part of so many. */
export const PARTS = 4;

/** One of each few neighbours, `PARTS` or about so many, by chance; never none of a list that has any. */
export const drawnOf = <T>(items: readonly T[], random: Random): readonly T[] => {
  const count = Math.min(items.length, Math.max(1, Math.round(items.length / PARTS)));
  const begin = (n: number): number => Math.floor((n * items.length) / count);
  return Array.from({ length: count }, (_, n) => random.pick(items.slice(begin(n), begin(n + 1))));
};

/** One of parts of about equal cost, which are mixed anew each time: the dearest first, each to the part that is least. */
export const partOf = <T>(items: readonly T[], costOf: (item: T) => number, random: Random): readonly T[] => {
  const parts = Array.from({ length: PARTS }, () => ({ cost: 0, items: [] as T[] }));
  const order = items.map((item) => ({ item, at: costOf(item) * (1 + random.next()) })).sort((a, b) => b.at - a.at);
  for (const { item } of order) {
    const least = parts.reduce((one, other) => (other.cost < one.cost ? other : one));
    least.items.push(item);
    least.cost += costOf(item);
  }
  return random.pick(parts).items;
};

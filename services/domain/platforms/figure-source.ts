/**
 * How one figure is read from what a network told. Told: the value; null: the network says that it does not tell;
 * undefined: the member is not there. Anything else than the shape the network documents is nonsense.
 */

/** What a network told cannot be a figure. The message names the member, never its value. */
export class ImpossibleFigure extends Error {
  override readonly name = 'Nonsense';
}

export type Told<T> = T | null | undefined;

export interface Source<T> {
  /** As the network names it. */
  readonly name: string;
  /** Computed, not told as it is. */
  readonly derived: boolean;
  /** Told of posts with a video only. */
  readonly ofVideo: boolean;
  read(raw: unknown): Told<T>;
}

const refuse = (name: string, what: string): never => {
  throw new ImpossibleFigure(`${name} is not ${what}`);
};

export const plain = <T>(name: string, read: (raw: unknown) => Told<T>): Source<T> => ({
  name,
  derived: false,
  ofVideo: false,
  read,
});

/** Checks of values; null and undefined pass. */
export const checking =
  <T>(check: (value: unknown, name: string) => T) =>
  (value: unknown, name: string): Told<T> =>
    value === null || value === undefined ? value : check(value, name);

const asCount = (value: unknown, name: string): number =>
  // -0 + 0 is 0.
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value + 0 : refuse(name, 'a count');

/** A count that the network may write as a decimal string. */
const asDigits = (value: unknown, name: string): number =>
  typeof value === 'string'
    ? asCount(/^(0|[1-9]\d{0,15})$/.test(value) ? Number(value) : Number.NaN, name)
    : asCount(value, name);

const asAmount = (value: unknown, name: string): number =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value + 0 : refuse(name, 'an amount');

const asUrl = (value: unknown, name: string): string =>
  typeof value === 'string' && value.length <= 2000 && /^https?:\/\/[^\p{Cc}\p{Cs} ]+$/u.test(value)
    ? value
    : refuse(name, 'an address');

const maxItems = 1000;

export type Members = { readonly [member: string]: unknown };

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const asObject = (value: unknown, name: string): Members => (isObject(value) ? value : refuse(name, 'an object'));

const asList = (value: unknown, name: string): readonly unknown[] =>
  Array.isArray(value) && value.length <= maxItems ? value : refuse(name, `a list of at most ${maxItems}`);

/** `__proto__` would name the prototype wherever a record is copied member by member. */
const asLabel = (value: unknown, name: string): string =>
  typeof value === 'string' && value.length <= 100 && !/[\p{Cc}\p{Cs}]/u.test(value) && value !== '__proto__'
    ? value
    : refuse(name, 'a label of at most 100 characters');

export type Counted = Readonly<Record<string, number>>;

const counted = (entries: Iterable<readonly [label: string, value: number]>): Counted => {
  const sums = new Map<string, number>();
  for (const [label, value] of entries) sums.set(label, (sums.get(label) ?? 0) + value);
  return Object.fromEntries(sums);
};

const asCounts = (value: unknown, name: string): Counted => {
  const entries = Object.entries(asObject(value, name));
  if (entries.length > maxItems) refuse(name, `an object of at most ${maxItems} members`);
  return Object.fromEntries(entries.map(([label, one]) => [asLabel(label, name), asCount(one, `${name}.${label}`)]));
};

/** A member of an object, by a path of names and places: `elements.0.count`. */
export const dig = (raw: unknown, path: string): unknown => {
  let value: unknown = raw;
  let name = '';
  for (const step of path.split('.')) {
    if (value === null || value === undefined) return value;
    if (/^\d+$/.test(step) && Array.isArray(value)) value = asList(value, name)[Number(step)];
    else {
      const inside = asObject(value, name === '' ? 'the answer' : name);
      value = Object.hasOwn(inside, step) ? inside[step] : undefined;
    }
    name = name === '' ? step : `${name}.${step}`;
  }
  return value;
};

const at =
  <T>(check: (value: unknown, name: string) => T) =>
  (path: string): Source<T> =>
    plain(path, (raw) => checking(check)(dig(raw, path), path));

export const count = at(asCount);
export const digits = at(asDigits);
export const amount = at(asAmount);
export const url = at(asUrl);
export const counts = at(asCounts);

/** Items of a list inside; undefined where there is no list. */
export const items = (raw: unknown, path: string): Told<readonly Members[]> => {
  const list = dig(raw, path);
  if (list === null || list === undefined) return list;
  return asList(list, path).map((one, place) => asObject(one, `${path}.${place}`));
};

/** The item whose `member` is `value`, in a list that has one for each of its metrics. What else is in the list is no concern of its. */
export const itemOf = (raw: unknown, path: string, member: string, value: string) => {
  const list = dig(raw, path);
  if (list === null || list === undefined) return list;
  const found = asList(list, path).find((one) => isObject(one) && one[member] === value);
  return found as Members | undefined;
};

/** A list with one item for each metric: `elements[{metricType, count}]`. */
export const element = (path: string, member: string, metric: string, value: string): Source<number> =>
  plain(metric, (raw) => {
    const one = itemOf(raw, path, member, metric);
    return one === null ? null : checking(asCount)(one?.[value], metric);
  });

/** The first of several names that is there. */
export const first = <T>(...sources: readonly Source<T>[]): Source<T> => ({
  ...plain(sources.map(({ name }) => name).join(' or '), (raw) => {
    let told: Told<T>;
    for (const source of sources) {
      told = source.read(raw) ?? told;
      if (told !== undefined && told !== null) return told;
    }
    return told;
  }),
  derived: sources.some(({ derived }) => derived),
});

/** The network leaves the member out where it does not tell it. */
export const orNull = <T>(source: Source<T>): Source<T> => ({ ...source, read: (raw) => source.read(raw) ?? null });

/** The network leaves the member out of the object at `inside` where it is zero. */
export const orZero = (source: Source<number>, inside: string): Source<number> => ({
  ...source,
  read: (raw) => {
    const told = source.read(raw);
    if (told !== undefined) return told;
    const there = dig(raw, inside);
    return there === null || there === undefined ? undefined : 0;
  },
});

export const ofVideo = <T>(source: Source<T>): Source<T> => ({ ...source, ofVideo: true });

export const derived = <T>(name: string, read: (raw: unknown) => Told<T>): Source<T> => ({
  ...plain(name, read),
  derived: true,
});

export const mapped = <A, B>(source: Source<A>, change: (told: A) => B): Source<B> => ({
  ...source,
  derived: true,
  read: (raw) => {
    const told = source.read(raw);
    if (told === null || told === undefined) return told === null ? null : undefined;
    return change(told);
  },
});

/** Whole minutes and seconds, of milliseconds: a running total never falls by rounding. */
export const minutesOf = (source: Source<number>) => mapped(source, (ms) => Math.floor(ms / 60_000));
export const secondsOf = (source: Source<number>) => mapped(source, (ms) => Math.floor(ms / 1000));

/** All of them, or nothing: half a sum is no figure. */
export const sumOf = (...sources: readonly Source<number>[]): Source<number> =>
  derived(sources.map(({ name }) => name).join(' + '), (raw) => {
    let sum = 0;
    for (const source of sources) {
      const told = source.read(raw);
      if (told === null || told === undefined) return told;
      sum += told;
    }
    return asCount(sum, 'the sum');
  });

/** The named members under our own names; what is not among them is left out. */
export const renamed = <N extends string>(
  source: Source<Readonly<Record<string, unknown>>>,
  names: Readonly<Record<N, string>>,
): Source<{ readonly [K in N]?: number }> => ({
  ...source,
  read: (raw) => {
    const told = source.read(raw);
    if (told === null || told === undefined) return told;
    const found: { [K in N]?: number } = {};
    for (const [ours, theirs] of Object.entries(names) as [N, string][]) {
      const value = Object.hasOwn(told, theirs) ? told[theirs] : undefined;
      if (value !== undefined) found[ours] = asCount(value, `${source.name}.${theirs}`);
    }
    return found;
  },
});

export { asAmount, asCount, asCounts, asDigits, asLabel, asList, asObject, counted };

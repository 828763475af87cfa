/**
 * How one figure is read from the answer of a network. A value: the network reported it; null: the network says that it
 * does not report it; undefined: the member is missing. A value of another shape than the documented one is impossible.
 */

/** The answer holds something that cannot be the figure. The message names the member, never its value. */
export class ImpossibleFigure extends Error {
  override readonly name = 'Nonsense';
}

export type Reading<T> = T | null | undefined;

export interface FigureSource<T> {
  /** The network's own name of it. */
  readonly name: string;
  /** Computed from other members. */
  readonly derived: boolean;
  /** Reported of posts with a video only. */
  readonly ofVideo: boolean;
  read(raw: unknown): Reading<T>;
}

const refuse = (name: string, what: string): never => {
  throw new ImpossibleFigure(`${name} is not ${what}`);
};

export const plain = <T>(name: string, read: (raw: unknown) => Reading<T>): FigureSource<T> => ({
  name,
  derived: false,
  ofVideo: false,
  read,
});

/** Checks a value; null and undefined pass. */
export const checking =
  <T>(check: (value: unknown, name: string) => T) =>
  (value: unknown, name: string): Reading<T> =>
    value === null || value === undefined ? value : check(value, name);

const asCount = (value: unknown, name: string): number =>
  // -0 becomes 0.
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

export type RawMembers = { readonly [member: string]: unknown };

const isObject = (value: unknown): value is RawMembers =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const asObject = (value: unknown, name: string): RawMembers => (isObject(value) ? value : refuse(name, 'an object'));

const asList = (value: unknown, name: string): readonly unknown[] =>
  Array.isArray(value) && value.length <= maxItems ? value : refuse(name, `a list of at most ${maxItems}`);

/** A member `__proto__` would set the prototype of every record that is copied member by member. */
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
  (path: string): FigureSource<T> =>
    plain(path, (raw) => checking(check)(dig(raw, path), path));

export const count = at(asCount);
export const digits = at(asDigits);
export const amount = at(asAmount);
export const url = at(asUrl);
export const counts = at(asCounts);

/** Items of a list inside; undefined where there is no list. */
export const items = (raw: unknown, path: string): Reading<readonly RawMembers[]> => {
  const list = dig(raw, path);
  if (list === null || list === undefined) return list;
  return asList(list, path).map((one, place) => asObject(one, `${path}.${place}`));
};

/** The item whose `member` is `value`, in a list with one item per metric. Other items are not checked. */
export const itemOf = (raw: unknown, path: string, member: string, value: string) => {
  const list = dig(raw, path);
  if (list === null || list === undefined) return list;
  const found = asList(list, path).find((one) => isObject(one) && one[member] === value);
  return found as RawMembers | undefined;
};

/** A count in a list with one item per metric: `elements[{metricType, count}]`. */
export const element = (path: string, member: string, metric: string, value: string): FigureSource<number> =>
  plain(metric, (raw) => {
    const one = itemOf(raw, path, member, metric);
    return one === null ? null : checking(asCount)(one?.[value], metric);
  });

/** The first of several sources that has a value. */
export const first = <T>(...sources: readonly FigureSource<T>[]): FigureSource<T> => ({
  ...plain(sources.map(({ name }) => name).join(' or '), (raw) => {
    let reported: Reading<T>;
    for (const source of sources) {
      const one = source.read(raw);
      if (one !== undefined && one !== null) return one;
      if (one === null) reported = null;
    }
    return reported;
  }),
  derived: sources.some(({ derived }) => derived),
});

/** For members that the network leaves out where it does not report them. */
export const orNull = <T>(source: FigureSource<T>): FigureSource<T> => ({
  ...source,
  read: (raw) => source.read(raw) ?? null,
});

/** For members that the network leaves out of the object at `inside` where they are zero. */
export const orZero = (source: FigureSource<number>, inside: string): FigureSource<number> => ({
  ...source,
  read: (raw) => {
    const reported = source.read(raw);
    if (reported !== undefined) return reported;
    const there = dig(raw, inside);
    return there === null || there === undefined ? undefined : 0;
  },
});

export const ofVideo = <T>(source: FigureSource<T>): FigureSource<T> => ({ ...source, ofVideo: true });

export const derived = <T>(name: string, read: (raw: unknown) => Reading<T>): FigureSource<T> => ({
  ...plain(name, read),
  derived: true,
});

export const mapped = <A, B>(source: FigureSource<A>, change: (reported: A) => B): FigureSource<B> => ({
  ...source,
  derived: true,
  read: (raw) => {
    const reported = source.read(raw);
    if (reported === null || reported === undefined) return reported === null ? null : undefined;
    return change(reported);
  },
});

/** Whole minutes or seconds of milliseconds, rounded down so that a running total never falls. */
export const minutesOf = (source: FigureSource<number>) => mapped(source, (ms) => Math.floor(ms / 60_000));
export const secondsOf = (source: FigureSource<number>) => mapped(source, (ms) => Math.floor(ms / 1000));

/** The sum of all; missing as soon as one is missing. */
export const sumOf = (...sources: readonly FigureSource<number>[]): FigureSource<number> =>
  derived(sources.map(({ name }) => name).join(' + '), (raw) => {
    let sum = 0;
    for (const source of sources) {
      const reported = source.read(raw);
      if (reported === null || reported === undefined) return reported;
      sum += reported;
    }
    return asCount(sum, 'the sum');
  });

/** The listed members under our own names; the others are dropped. */
export const renamed = <N extends string>(
  source: FigureSource<Readonly<Record<string, unknown>>>,
  names: Readonly<Record<N, string>>,
): FigureSource<{ readonly [K in N]?: number }> => ({
  ...source,
  read: (raw) => {
    const reported = source.read(raw);
    if (reported === null || reported === undefined) return reported;
    const found: { [K in N]?: number } = {};
    for (const [ours, theirs] of Object.entries(names) as [N, string][]) {
      const value = Object.hasOwn(reported, theirs) ? reported[theirs] : undefined;
      if (value !== undefined) found[ours] = asCount(value, `${source.name}.${theirs}`);
    }
    return found;
  },
});

export { asAmount, asCount, asCounts, asDigits, asLabel, asList, asObject, counted };

import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

/** What differs between two states of a thing, member by member. Everything that a stream can make longer has a bound. */

export interface Change {
  /** JSON Pointer into the thing. */
  readonly field: string;
  /** Null: there was none. */
  readonly old: unknown;
  /** Null: there is none any more. */
  readonly new: unknown;
}

/** Members within members that are compared one by one; deeper ones are compared as a whole. */
const maxDepth = 5;
/** Of one event. */
export const maxChanges = 100;
/** Of a text, or of the JSON of another value, before it is cut. */
const maxCharacters = 2_000;

/** Without half a character at the end. */
const beginningOf = (text: string): string => {
  const last = text.charCodeAt(maxCharacters - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? maxCharacters - 1 : maxCharacters);
};

/** The value; of a long one its beginning, its length and the SHA-256 of the whole, by which it can be compared. */
export const bounded = (value: unknown): unknown => {
  if (value === undefined) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length <= maxCharacters) return value;
  return { $cut: beginningOf(text), characters: text.length, sha256: hash('sha256', text, 'hex') };
};

type Members = Readonly<Record<string, unknown>>;

const membersOf = (value: unknown): Members | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : null;

const areLists = (a: unknown, b: unknown): boolean =>
  Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((one) => membersOf(one) !== null);

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** @param before null: the thing did not exist, so each of its members is new */
export const changesOf = (
  before: Members | null,
  after: Members | null,
): { readonly changes: readonly Change[]; readonly more: number } => {
  const found: Change[] = [];
  let more = 0;
  const add = (field: string, old: unknown, next: unknown): void => {
    if (found.length < maxChanges) found.push({ field, old: bounded(old), new: bounded(next) });
    else more += 1;
  };
  const compare = (old: unknown, next: unknown, field: string, depth: number): void => {
    // States share what an event leaves as it is, so that most of a large thing is never looked into.
    if (Object.is(old, next) || (old ?? null) === (next ?? null)) return;
    const both = areLists(old, next) ? [old as Members, next as Members] : [membersOf(old), membersOf(next)];
    const [a, b] = both;
    if (a && b && depth < maxDepth) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        compare(a[name], b[name], `${field}/${escaped(name)}`, depth + 1);
      }
    } else if (!isDeepStrictEqual(old, next)) add(field, old, next);
  };
  compare(before ?? {}, after ?? {}, '', 0);
  return { changes: found, more };
};

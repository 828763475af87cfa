import type { TSchema } from 'typebox';
import { nearestName, sameName } from '#schemas/nearest.ts';
import { issuesOf, pointerTo } from '#schemas/validator.ts';
import type { Cleaned } from './common.ts';

interface Shape {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly uuidKeys?: boolean;
  readonly countsFor?: string;
  readonly onlyWith?: { readonly member: string; readonly values: readonly string[] };
  readonly unread?: Readonly<Record<string, string>>;
  readonly default?: unknown;
  readonly additionalProperties?: unknown;
}

/** The alternative of a union that a valid value matches. */
const meantOf = (shape: Shape, value: unknown): Shape => {
  if (shape.anyOf === undefined) return shape;
  // An optional member that is not null has one alternative: validating the whole value again is not necessary.
  const [only, ...more] = shape.anyOf.filter(({ type }) => type !== 'null');
  if (only !== undefined && more.length === 0 && value !== null) return only;
  // Validation has passed, so one alternative matches; the first match is the right one (unions carry a discriminator).
  return shape.anyOf.find((one) => issuesOf(one as TSchema, value).length === 0) ?? shape;
};

const copyOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null ? structuredClone(value) : value;

/** A member of a body that nothing reads, or that changes nothing where it stands. */
export interface BodyNote {
  readonly code: 'unknown_member' | 'member_without_effect';
  /** A JSON Pointer into the body. */
  readonly path: string;
  readonly message: string;
}

/** As many as one answer tells. */
const maxNotes = 20;

/** What `clean` drops of a body, for its caller: the first notes, and the number of the others. */
export class BodyNotes {
  readonly found: BodyNote[] = [];
  /** Notes beyond the first. */
  more = 0;
  /** Members of the body itself that are read and have a value. */
  readonly given = new Set<string>();
  /** Where the body stands in what the caller sent. */
  readonly base: readonly string[];

  constructor(base: readonly string[] = []) {
    this.base = base;
  }

  /** The words are made only for a note that is kept: a body may hold 10,000 members that nothing reads. */
  add(code: BodyNote['code'], steps: readonly string[], words: () => string): void {
    if (this.found.length === maxNotes) {
      this.more += 1;
      return;
    }
    const { path, isCut } = pointerTo([...this.base, ...steps]);
    this.found.push({ code, path, message: isCut ? `below a member with a long name: ${words()}` : words() });
  }
}

/** Members of a schema by name, each with the first place where it is read, as `schedule.scheduledAt`. */
const placesOf = (shape: Shape, above = '', found: Map<string, string> = new Map()): ReadonlyMap<string, string> => {
  const members = Object.entries(shape.properties ?? {});
  for (const [name] of members) if (!found.has(name)) found.set(name, `${above}${name}`);
  for (const [name, member] of members) {
    const inner = member.anyOf?.find(({ type }) => type !== 'null') ?? member;
    placesOf(inner.items ?? inner, `${above}${name}${inner.items === undefined ? '' : '[]'}.`, found);
  }
  return found;
};

const known = new WeakMap<object, ReadonlyMap<string, string>>();
const placesIn = (root: Shape): ReadonlyMap<string, string> => {
  const places = known.get(root) ?? placesOf(root);
  known.set(root, places);
  return places;
};

/** Words about a member that the object does not have. */
const unknownWords = (name: string, shape: Shape, root: Shape): string => {
  const members = Object.keys(shape.properties ?? {});
  const places = placesIn(root);
  const elsewhere = sameName(name, members) === null ? sameName(name, places.keys()) : null;
  if (elsewhere !== null) return `nothing reads it here; \`${places.get(elsewhere)}\` is read`;
  const here = nearestName(name, members);
  return here === null ? 'nothing reads it' : `nothing reads it; did you mean \`${here}\`?`;
};

interface Walk {
  readonly merge: boolean;
  readonly root: Shape;
  readonly notes: BodyNotes | null;
  readonly steps: readonly string[];
}

const into = (walk: Walk, step: string): Walk =>
  walk.notes === null ? { ...walk, merge: false } : { ...walk, merge: false, steps: [...walk.steps, step] };

/** Notes the members of one object that change nothing. */
const noteUnread = (shape: Shape, given: Readonly<Record<string, unknown>>, { root, notes, steps }: Walk): void => {
  if (notes === null) return;
  for (const [name, value] of Object.entries(given)) {
    const member = Object.hasOwn(shape.properties ?? {}, name) ? shape.properties?.[name] : undefined;
    const isGiven = value !== null && value !== undefined;
    const note = (code: BodyNote['code'], words: () => string) => notes.add(code, [...steps, name], words);
    if (member === undefined) {
      const reason = Object.hasOwn(shape.unread ?? {}, name) ? shape.unread?.[name] : undefined;
      if (reason !== undefined) note('member_without_effect', () => reason);
      else if (shape.additionalProperties !== true) note('unknown_member', () => unknownWords(name, shape, root));
      continue;
    }
    const { countsFor, onlyWith } = member;
    if (!isGiven) continue;
    if (steps.length === 0) notes.given.add(name);
    if (countsFor !== undefined && given.type !== countsFor) {
      note('member_without_effect', () => `counts only where \`type\` is ${countsFor}`);
    } else if (onlyWith !== undefined && !onlyWith.values.includes(String(given[onlyWith.member]))) {
      const { member: beside, values } = onlyWith;
      note('member_without_effect', () => `counts only where \`${beside}\` is ${values.join(' or ')}`);
    }
  }
};

const cleaned = (shape: Shape, value: unknown, walk: Walk): unknown => {
  const meant = meantOf(shape, value);
  if (meant.items !== undefined && Array.isArray(value)) {
    return value.map((one, index) => cleaned(meant.items ?? {}, one, into(walk, String(index))));
  }
  if (meant.properties !== undefined && typeof value === 'object' && value !== null) {
    const given = value as Record<string, unknown>;
    noteUnread(meant, given, walk);
    const out: Record<string, unknown> = meant.additionalProperties === true ? { ...given } : {};
    for (const [name, member] of Object.entries(meant.properties)) {
      if (member.countsFor !== undefined && given.type !== member.countsFor) continue;
      const sent = Object.hasOwn(given, name) ? given[name] : undefined;
      const optional = meant.required?.includes(name) !== true;
      if (sent === undefined && walk.merge) continue;
      if (sent === undefined || (sent === null && optional)) {
        if (member.default !== undefined) out[name] = copyOf(member.default);
        else delete out[name];
      } else {
        out[name] = cleaned(member, sent, into(walk, name));
      }
    }
    return out;
  }
  if (meant.format === 'uuid' && typeof value === 'string') return value.toLowerCase();
  if (meant.uuidKeys === true && typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([id, one]) => [id.toLowerCase(), one]));
  }
  if (value === 'twitter' && meant.enum?.includes('twitter') === true) return 'x';
  // Free-form objects, and values without members of their own, stay unchanged.
  return value;
};

interface CleanOptions {
  /** A partial update: an absent member stays absent, and null restores a member's default. */
  readonly merge?: boolean;
  /** Learns which members nothing reads. */
  readonly notes?: BodyNotes;
}

/**
 * The one step between a valid input and a handler: drops members that the schema does not know, unless it keeps them
 * by `additionalProperties: true`, and members that count only for another `type`; reads null of an optional member as
 * absent, fills defaults, reads ids in lower case. Objects without named members are kept whole.
 */
export const clean = <S extends TSchema>(
  schema: S,
  value: unknown,
  { merge = false, notes }: CleanOptions = {},
): Cleaned<S> =>
  cleaned(schema as Shape, value, { merge, root: schema as Shape, notes: notes ?? null, steps: [] }) as Cleaned<S>;

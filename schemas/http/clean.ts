import type { TSchema } from 'typebox';
import { issuesOf } from '#schemas/validator.ts';
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

const cleaned = (shape: Shape, value: unknown, merge: boolean): unknown => {
  const meant = meantOf(shape, value);
  if (meant.items !== undefined && Array.isArray(value)) {
    return value.map((one) => cleaned(meant.items ?? {}, one, false));
  }
  if (meant.properties !== undefined && typeof value === 'object' && value !== null) {
    const given = value as Record<string, unknown>;
    const out: Record<string, unknown> = meant.additionalProperties === true ? { ...given } : {};
    for (const [name, member] of Object.entries(meant.properties)) {
      if (member.countsFor !== undefined && given.type !== member.countsFor) continue;
      const sent = Object.hasOwn(given, name) ? given[name] : undefined;
      const optional = meant.required?.includes(name) !== true;
      if (sent === undefined && merge) continue;
      if (sent === undefined || (sent === null && optional)) {
        if (member.default !== undefined) out[name] = copyOf(member.default);
        else delete out[name];
      } else {
        out[name] = cleaned(member, sent, false);
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

/**
 * The one step between a valid input and a handler: drops members that the schema does not know, unless it keeps them
 * by `additionalProperties: true`, and members that count only for another `type`; reads null of an optional member as
 * absent, fills defaults, reads ids in lower case. Objects without named members are kept whole. With `merge` (a partial
 * update) an absent member stays absent, and null restores a member's default.
 */
export const clean = <S extends TSchema>(schema: S, value: unknown, merge = false): Cleaned<S> =>
  cleaned(schema as Shape, value, merge) as Cleaned<S>;

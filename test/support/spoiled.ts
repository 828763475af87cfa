/**
 * Every way in which one member of a valid input can break its schema, with the entry that a caller must then read. The
 * schema is walked, so a new member is covered as soon as it exists.
 */
import type { TSchema } from 'typebox';
import type { IssueCode } from '#schemas/issues.ts';

interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly additionalProperties?: Shape | boolean;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly expects?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly countsFor?: string;
}

type Path = readonly (string | number)[];

export interface Spoiling {
  readonly path: Path;
  readonly code: IssueCode;
  /** Undefined: the member is left out. */
  readonly value: unknown;
  /** The member counts only for one `type` of its object, which `spoiled` chooses. */
  readonly conditional?: true;
}

const isNull = ({ type }: Shape): boolean => type === 'null';

/** The schema of a value that is not null. @throws for a union of several: it needs a rule of its own here */
const meantOf = (shape: Shape): Shape => {
  if (shape.anyOf === undefined) return shape;
  const [only, ...more] = shape.anyOf.filter((one) => !isNull(one));
  if (only === undefined || more.length > 0) throw new Error('a union of several schemas is not spoiled yet');
  return meantOf(only);
};
const takesNull = ({ type, anyOf }: Shape): boolean =>
  [type].flat().includes('null') || anyOf?.some((one) => isNull(one) || takesNull(one)) === true;

const typeOf = ({ type, enum: values, properties }: Shape): string => {
  const [own] = [type].flat().filter((one) => one !== 'null' && one !== undefined);
  if (own !== undefined) return own;
  if (properties !== undefined) return 'object';
  return values === undefined ? 'unknown' : typeof values[0];
};

const mapOf = ({ additionalProperties, patternProperties }: Shape): Shape | null => {
  if (typeof additionalProperties === 'object') return additionalProperties;
  return Object.values(patternProperties ?? {})[0] ?? null;
};

/** The smallest value that fits. */
export const sampleOf = (given: Shape): unknown => {
  const shape = meantOf(given);
  if (shape.const !== undefined) return shape.const;
  if (shape.enum !== undefined) return shape.enum[0];
  switch (typeOf(shape)) {
    case 'object':
      return Object.fromEntries(
        (shape.required ?? []).map((name) => [name, sampleOf(shape.properties?.[name] as Shape)]),
      );
    case 'array':
      return Array.from({ length: shape.minItems ?? 0 }, () => sampleOf(shape.items ?? {}));
    case 'string':
      return / such as (.+)$/.exec(shape.expects ?? '')?.[1] ?? 'a'.repeat(Math.max(1, shape.minLength ?? 1));
    case 'boolean':
      return false;
    default:
      return shape.minimum ?? 0;
  }
};

/** Ways to spoil the value itself. */
const spoiledValues = (shape: Shape): readonly (readonly [IssueCode, unknown])[] => {
  const type = typeOf(shape);
  const found: [IssueCode, unknown][] = [];
  if (type === 'unknown') return found;
  if (shape.enum !== undefined || shape.const !== undefined) {
    found.push(['not_allowed', 'none of these']);
    return found;
  }
  const { maxLength, minLength = 0, maxItems, minItems = 0, minimum, maximum } = shape;
  found.push(
    ['wrong_type', type === 'object' ? [] : { unexpected: 1 }],
    ['wrong_type', type === 'string' ? 1 : 'text'],
  );
  const isFormed = shape.pattern !== undefined || shape.format !== undefined;
  const fits = (text: string) => shape.pattern !== undefined && new RegExp(shape.pattern, 'u').test(text);
  if (isFormed) {
    // NUL is refused before any pattern, with a code of its own.
    const spoiled = [' ', '\n'].find((text) => !fits(text));
    if (spoiled !== undefined) found.push(['wrong_format', spoiled]);
  }
  if (minLength > 0 && (!isFormed || fits(''))) found.push(['too_short', '']);
  if (maxLength !== undefined) found.push(['too_long', 'x'.repeat(maxLength + 1)]);
  if (minItems > 0) found.push(['too_few', []]);
  if (maxItems !== undefined && maxItems < 1_000) {
    found.push(['too_many', Array.from({ length: maxItems + 1 }, () => sampleOf(shape.items ?? {}))]);
  }
  if (type === 'integer') found.push(['wrong_type', (minimum ?? 0) + 0.5]);
  if (minimum !== undefined) found.push(['too_small', minimum - 1]);
  if (maximum !== undefined) found.push(['too_large', maximum + 1], ['too_large', 1e300]);
  return found;
};

/** All ways to spoil one member of an object of this schema. */
export const spoilings = (schema: TSchema, path: Path = []): readonly Spoiling[] => {
  const shape = meantOf(schema as Shape);
  const own = spoiledValues(shape).map(([code, value]) => ({ path, code, value }));
  const members = Object.entries(shape.properties ?? {}).flatMap(([name, member]): readonly Spoiling[] => {
    const at = [...path, name];
    const required = shape.required?.includes(name) === true;
    const missing: readonly Spoiling[] = required
      ? [
          { path: at, code: 'required', value: undefined },
          ...(takesNull(member) ? [] : [{ path: at, code: 'required' as const, value: null }]),
        ]
      : [];
    const all = [...missing, ...spoilings(member as TSchema, at)];
    return member.countsFor === undefined ? all : all.map((one) => ({ ...one, conditional: true }));
  });
  const items = shape.items === undefined ? [] : spoilings(shape.items as TSchema, [...path, 0]);
  const map = mapOf(shape);
  const entries = map === null ? [] : spoilings(map as TSchema, [...path, 'a/b~c']);
  return [...own, ...members, ...items, ...entries];
};

/** A copy of the input with the member spoiled; members and entries on the way to it are made where they lack. */
export const spoiled = (
  schema: TSchema,
  input: unknown,
  { path, value }: Pick<Spoiling, 'path' | 'value'>,
): unknown => {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  const shape = meantOf(schema as Shape);
  const part = (typeof step === 'number' ? shape.items : (shape.properties?.[step] ?? mapOf(shape))) as Shape;
  const sample = (input ?? sampleOf(shape)) as Record<string | number, unknown>;
  const given = part.countsFor === undefined ? sample : { ...sample, type: part.countsFor };
  const below = spoiled(part as TSchema, given[step] ?? undefined, { path: rest, value });
  if (Array.isArray(given)) {
    const wanted = Math.max(given.length, meantOf(schema as Shape).minItems ?? 0, 1);
    return Array.from({ length: wanted }, (_, at) => (at === step ? below : (given[at] ?? sampleOf(part))));
  }
  const { [step]: _, ...others } = given;
  return rest.length === 0 && value === undefined ? others : { ...others, [step]: below };
};

export const pointerOf = (path: Path): string =>
  path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** Whether a JSON Pointer leads to a member of the value, or to one that its last object or array lacks. */
export const resolves = (value: unknown, pointer: string): boolean => {
  const steps = pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  let at = value;
  for (const [index, step] of steps.entries()) {
    if (typeof at !== 'object' || at === null) return false;
    if (!Object.hasOwn(at, step)) return index === steps.length - 1;
    at = (at as Record<string, unknown>)[step];
  }
  return true;
};

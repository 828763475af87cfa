import { type TEnum, type TSchema, Type } from 'typebox';

/**
 * How a schema appears in the contract: its name, its words, and what is shown of it. These are annotations: validation
 * does not read them. The emitter of the contract reads them and leaves them out.
 */
export const annotations = [
  'named',
  'here',
  'open',
  'shown',
  'nullIsAbsent',
  'expects',
  'uuidKeys',
  'countsFor',
  'onlyWith',
  'unread',
] as const;

interface Words {
  /** Values that help a reader; the first is shown. */
  readonly examples?: readonly unknown[];
}

/** TypeBox keeps the kind of a schema in members that a spread loses. */
const withMembers = <S extends TSchema>(schema: S, members: Readonly<Record<string, unknown>>): S =>
  Object.assign(Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)), members) as S;

/** Publishes a schema once, under this name, and refers to it everywhere else. */
export const Named = <S extends TSchema>(name: string, schema: S): S => withMembers(schema, { named: name });

/** The same schema with the words of the one place where it stands: what the member means, its unit and its range. */
export const said = <S extends TSchema>(schema: S, description: string, { examples }: Words = {}): S => {
  const words = 'named' in schema ? { here: description } : { description };
  return withMembers(schema, { ...words, ...(examples === undefined ? {} : { examples }) });
};

/** An enum of answers and events. It may grow, so callers must expect values that they do not know. */
export const OpenEnum = <const V extends readonly string[]>(named: string, values: V, description: string) =>
  Type.Enum([...values], { named, open: true, description }) as TEnum<V[number][]>;

/** An enum of requests: other values are refused. */
export const ClosedEnum = <const V extends readonly string[]>(named: string, values: V, description: string) =>
  Type.Enum([...values], { named, description }) as TEnum<V[number][]>;

/** The contract shows these keywords of the schema instead of its own: what the service takes beyond them is a courtesy. */
export const shownAs = <S extends TSchema>(schema: S, shown: Readonly<Record<string, unknown>>): S =>
  withMembers(schema, { shown });

/** A map by ids as callers write them, in upper or lower case; `clean` reads them in lower case. */
export const byUuid = <S extends TSchema>(schema: S): S => withMembers(schema, { uuidKeys: true });

/** A member that counts only where the member `type` beside it has this value; elsewhere it may hold anything. */
export const forType = <S extends TSchema>(type: string, schema: S): S => withMembers(schema, { countsFor: type });

/** A member that changes nothing unless the member beside it has one of these values. `clean` keeps it, with a warning. */
export const onlyWith = <S extends TSchema>(member: string, values: readonly string[], schema: S): S =>
  withMembers(schema, { onlyWith: { member, values } });

/** Members that a caller knows from elsewhere and that change nothing in this body, with the reason for each. */
export const unreadIn = <S extends TSchema>(schema: S, unread: Readonly<Record<string, string>>): S =>
  withMembers(schema, { unread });

/** With commas, as descriptions write it. `Intl` loads its data for 10 ms, of every process that reads the schemas. */
export const grouped = (count: number): string =>
  count < 1_000 ? String(count) : `${grouped(Math.floor(count / 1_000))},${String(count % 1_000).padStart(3, '0')}`;

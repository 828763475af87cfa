import { type Static, type TSchema, Type } from 'typebox';
import { platforms } from '#schemas/common.ts';

/** How tools write for a model, and the schemas that several of them have in common. */

export const joined = (...lines: readonly (string | null)[]): string =>
  lines.filter((line) => line !== null && line !== '').join('\n');

export const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`;

export const Id = (description?: string) =>
  Type.String({ format: 'uuid', ...(description === undefined ? {} : { description }) });
export const Instant = (description?: string) =>
  Type.String({ format: 'date-time', ...(description === undefined ? {} : { description }) });
export const PlatformName = (description: string) => Type.Enum([...platforms], { description });
export const Platforms = (description?: string) =>
  Type.Array(Type.Enum([...platforms]), { minItems: 1, ...(description === undefined ? {} : { description }) });
export const Text = (maxLength: number, description: string) => Type.String({ maxLength, description });
export const Maybe = <S extends TSchema>(schema: S) => Type.Optional(schema);
/** A member that may be null; `description` says what null means where the name leaves that open. */
export const Nullable = <S extends TSchema>(schema: S, description?: string) => {
  const { type } = schema as { readonly type?: string };
  const about = description === undefined ? {} : { description };
  // Two types take less room in the list of tools than a union of two schemas.
  return Type.Unsafe<Static<S> | null>(
    type === undefined
      ? { anyOf: [schema, { type: 'null' }], ...about }
      : { ...schema, type: [type, 'null'], ...about },
  );
};
/** Arguments: a misspelt one is refused, or it would be ignored without a word. */
export const Args = <const P extends Parameters<typeof Type.Object>[0]>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

/** Arguments that another tool describes: what the model may send, without the words. */
export const Bare = <const P extends Parameters<typeof Type.Object>[0]>(properties: P): P =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, wordless(schema)])) as unknown as P;

/** What only words and bounds say of a schema: the operations keep the bounds. */
const words = new Set(['description', 'maxLength', 'minItems', 'maxItems']);

/** The same schema without them. A property may have such a name: then it is a schema. */
const wordless = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(wordless);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(Object.getOwnPropertyDescriptors(schema)).filter(
    ([name, { value }]) => !words.has(name) || typeof value === 'object',
  );
  return Object.defineProperties(
    {},
    Object.fromEntries(kept.map(([name, one]) => [name, { ...one, value: wordless(one.value) }])),
  );
};

/** `instructions.ts` says what they mean: they stand in every answer. */
export const Mode = Type.Enum(['sandbox', 'live']);
export const Next = Type.String();
export const Replayed = Type.Boolean();
export const IdempotencyKey = Type.Optional(
  Type.String({
    pattern: '^[!-~]{1,200}$',
    description:
      'Your own value. Repeat a call whose answer you did not see with the same one: it is done once. A new one does it again.',
  }),
);

/** The same in other tools: `compose_post` describes it. */
export const PlainKey = Type.Optional(Type.String({ pattern: '^[!-~]{1,200}$' }));

export const paging = {
  limit: Maybe(Type.Integer({ minimum: 1, maximum: 50, description: 'Default 10.' })),
  cursor: Maybe(Text(1000, 'nextCursor of the answer before.')),
};
/** The same in other tools: `find_clients` describes it, and `moreOf` says in each answer what to do. */
export const plainPaging = Bare(paging);
/** Null: there are no more. `moreOf` says what to do with one. */
export const NextCursor = Nullable(Type.String());
export const pageOf = ({ limit = 10, cursor }: { limit?: number; cursor?: string }) => ({ limit, cursor });
export const moreOf = (nextCursor: string | null): string | null =>
  nextCursor === null ? null : 'There are more: call again with the same arguments and cursor = nextCursor.';

export const replayedWords = (replayed: boolean): string | null =>
  replayed
    ? 'This repeats an earlier call: nothing new was done. To do the same again on purpose, send a new idempotencyKey.'
    : null;

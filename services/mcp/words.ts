import { type TSchema, Type } from 'typebox';
import { anyCaseUuid, platforms } from '#schemas/common.ts';

/** How tools write for a model, and the schemas that several of them have in common. */

export const joined = (...lines: readonly (string | null)[]): string =>
  lines.filter((line) => line !== null && line !== '').join('\n');

export const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`;

export const Id = (description: string) => Type.String({ pattern: anyCaseUuid, description });
export const Instant = (description: string) =>
  Type.String({
    format: 'date-time',
    maxLength: 40,
    description: `${description} ISO 8601 with Z or an offset, such as 2026-01-31T08:00:00Z.`,
  });
export const PlatformName = (description: string) => Type.Enum([...platforms], { description });
export const Platforms = (description: string) =>
  Type.Array(Type.Enum([...platforms]), { minItems: 1, maxItems: platforms.length, description });
export const Text = (maxLength: number, description: string) => Type.String({ maxLength, description });
export const Maybe = <S extends TSchema>(schema: S) => Type.Optional(schema);
export const Nullable = <S extends TSchema>(schema: S, description: string) =>
  Type.Union([schema, Type.Null()], { description });
/** Arguments: a misspelt one is refused, or it would be ignored without a word. */
export const Args = <const P extends Parameters<typeof Type.Object>[0]>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

export const Mode = Type.Enum(['sandbox', 'live'], {
  description: 'sandbox: nothing reaches a real network; live: it is real.',
});
export const Next = Type.String({ description: 'What to do next.' });
export const Replayed = Type.Boolean({
  description: 'True: this call was made before, and its first answer is given again; nothing new was done.',
});
export const IdempotencyKey = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: '^[!-~]+$',
    description:
      'A value of your own for this one action. Send the same value when you repeat the call because you did not see its answer: then it is done once. Send a new one to do the same again on purpose.',
  }),
);

export const paging = {
  limit: Maybe(Type.Integer({ minimum: 1, maximum: 50, description: 'Rows to answer. Default 10.' })),
  cursor: Maybe(Text(1000, 'The `nextCursor` of the answer before, with the same arguments, for the rows after it.')),
};
export const NextCursor = Nullable(
  Type.String(),
  'Send it as `cursor` with the same arguments for more rows; null: there are no more.',
);
export const pageOf = ({ limit = 10, cursor }: { limit?: number; cursor?: string }) => ({ limit, cursor });
export const moreOf = (nextCursor: string | null): string | null =>
  nextCursor === null ? null : 'There are more: call again with the same arguments and cursor = nextCursor.';

export const replayedWords = (replayed: boolean): string | null =>
  replayed
    ? 'This repeats an earlier call: nothing new was done. To do the same again on purpose, send a new idempotencyKey.'
    : null;

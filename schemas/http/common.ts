import { type Static, type TArray, type TObject, type TOptional, type TProperties, type TSchema, Type } from 'typebox';
import { Instant, platforms, Uuid } from '#schemas/common.ts';
import { IssueCode } from '#schemas/issues.ts';

/** Shapes of requests and answers that every noun uses. */

/** The type of a value after `clean`: absent and null members are filled or removed. */
export type Cleaned<S> = S extends { readonly '~cleaned': infer C }
  ? C
  : S extends TObject<infer P>
    ? CleanedObject<P>
    : S extends TArray<infer I>
      ? Cleaned<I>[]
      : S extends TSchema
        ? Static<S>
        : never;

type MayBeAbsent<P> = { [K in keyof P]: P[K] extends { readonly '~absent': true } ? K : never }[keyof P];
type CleanedObject<P extends TProperties> = { [K in Exclude<keyof P, MayBeAbsent<P>>]: Cleaned<P[K]> } & {
  [K in MayBeAbsent<P>]?: Cleaned<P[K]>;
};

/** An optional member: null means absent, and stays absent. */
export const Maybe = <S extends TSchema>(schema: S) =>
  Type.Optional(Type.Union([schema, Type.Null()])) as unknown as TOptional<S> & {
    readonly '~cleaned': Cleaned<S>;
    readonly '~absent': true;
  };

/** An optional member with a default: null means absent, and the default fills it. */
export const Defaulted = <S extends TSchema, const D>(schema: S, value: D) =>
  Type.Optional(Type.Union([schema, Type.Null()], { default: value })) as unknown as TOptional<S> & {
    readonly '~cleaned': Cleaned<S> | Extract<D, null>;
  };

/** A platform as callers write it; `clean` reads `twitter` as `x`. */
export const PlatformInput = Type.Enum([...platforms, 'twitter'], {
  description: '`twitter` is read as `x`.',
}) as unknown as ReturnType<typeof platformEnum>;
const platformEnum = () => Type.Enum([...platforms]);

/**
 * An instant as callers write it. Narrower than the format, which allows values that neither Date nor `timestamptz`
 * holds: leap seconds, offsets without minutes, and times outside of the years 1 to 9999 in UTC.
 */
export const InstantInput = (description: string) =>
  Type.String({
    format: 'date-time',
    pattern:
      '^(?!000[01]|9999-12-31.*-\\d\\d:\\d\\d$)\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
    description: `${description} ISO 8601 with Z or an offset, such as 2026-01-31T08:00:00Z.`,
    expects: 'an instant with Z or an offset, such as 2026-01-31T08:00:00Z',
  });

/** An object with any members, kept whole. */
export const FreeForm = Type.Record(Type.String(), Type.Unknown());

/** Members of every resource beside its `id` and `object`. */
export const stamps = {
  createdAt: Instant,
  updatedAt: Instant,
  revision: Type.Integer({ minimum: 0, description: 'Revision of its own stream: the value of ETag and If-Match.' }),
};

export const IdParams = Type.Object({ id: Uuid });

const Limit = Defaulted(
  Type.Integer({ minimum: 1, maximum: 100, description: 'Rows per page; it may change between pages.' }),
  25,
);
const Cursor = Maybe(Type.String({ description: 'The `nextCursor` of the previous page.' }));
/** Query members of every list. */
export const paging = { limit: Limit, cursor: Cursor };

export const Warning = Type.Object({
  code: Type.Literal('stands_still', {
    description: 'A later change of this resource is stored but cannot be shown yet.',
  }),
  id: Type.String({ description: 'Id of the resource in `data` to which the warning applies.' }),
  message: Type.String(),
});
export type Warning = Static<typeof Warning>;

export const Meta = Type.Object({
  correlationId: Type.String({ minLength: 1, maxLength: 128 }),
  warnings: Type.Optional(
    Type.Array(Warning, { description: 'Warnings about the data of this answer; absent when there are none.' }),
  ),
});
export const Page = Type.Object({
  hasMore: Type.Boolean(),
  cursor: Type.Union([Type.String(), Type.Null()]),
  nextCursor: Type.Union([Type.String(), Type.Null()]),
});

/** One entry of `errors`. */
export const ProblemIssue = Type.Object({
  path: Type.String({
    description:
      'The member at fault: an RFC 6901 JSON Pointer into the body; `/name` for a query parameter; empty for the body as a whole. For a missing member it ends with the name of that member.',
    examples: ['/variants/0/contentOverride'],
  }),
  message: Type.String({
    description: 'Words for a person; they may change.',
    examples: ['X takes at most 280 weighted characters; the text has 301'],
  }),
  code: IssueCode,
  accountId: Type.Optional(
    Type.String({ ...Uuid, description: 'The account whose target is at fault; absent where no single account is.' }),
  ),
  platform: Type.Optional(
    Type.Enum([...platforms], { description: 'The network of that account; absent without `accountId`.' }),
  ),
  mediaId: Type.Optional(Type.String({ ...Uuid, description: 'The asset at fault; absent where no single asset is.' })),
});

export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'Address of the page that explains the code.' }),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    code: Type.String({ description: 'Stable: branch on this member.' }),
    correlationId: Type.String(),
    category: Type.Optional(Type.Enum(['request', 'auth', 'permission', 'conflict', 'limit', 'internal'])),
    detail: Type.Optional(Type.String()),
    instance: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Array(ProblemIssue, {
        description:
          'What is wrong with the input, each entry with a code of its own: at most the first 20. Correct them and send again to see the rest.',
      }),
    ),
    currentRevision: Type.Optional(
      Type.Integer({ minimum: 0, description: 'With `revision_mismatch`: the revision of the resource now.' }),
    ),
    postIds: Type.Optional(
      Type.Array(Uuid, { description: 'With `media_in_use`: posts that need the asset, at most ten.' }),
    ),
    runStatus: Type.Optional(
      Type.String({ description: 'With `run_not_completed`: the status of the run.', examples: ['running'] }),
    ),
    usedBytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'With `media_quota_exceeded`: bytes that the files of the workspace take.',
      }),
    ),
    quotaBytes: Type.Optional(
      Type.Integer({ minimum: 0, description: 'With `media_quota_exceeded`: bytes that they may take.' }),
    ),
  },
  { description: 'RFC 9457. The members after `errors` come with one code alone.' },
);

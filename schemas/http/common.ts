import {
  type Static,
  type TArray,
  type TEnum,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  Type,
} from 'typebox';
import { ActorRef, anyCaseUuid, Instant, Nullable, Platform, platforms, Uuid } from '#schemas/common.ts';
import { IssueCode } from '#schemas/issues.ts';
import { ClosedEnum, Named, OpenEnum, said, shownAs } from '#schemas/published.ts';

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
  Type.Optional(Type.Union([schema, Type.Null()], { nullIsAbsent: true })) as unknown as TOptional<S> & {
    readonly '~cleaned': Cleaned<S>;
    readonly '~absent': true;
  };

/** A member of a partial update: absent leaves it, and null gives it its default again, so the contract has null here. */
export const Resettable = <S extends TSchema, const D>(schema: S, value: D) =>
  Type.Optional(Type.Union([schema, Type.Null()], { default: value })) as unknown as TOptional<S> & {
    readonly '~cleaned': Cleaned<S> | Extract<D, null>;
  };

/** An optional member with a default: null means absent, and the default fills it. */
export const Defaulted = <S extends TSchema, const D>(schema: S, value: D) =>
  Type.Optional(
    Type.Union([schema, Type.Null()], { default: value, nullIsAbsent: true }),
  ) as unknown as TOptional<S> & {
    readonly '~cleaned': Cleaned<S> | Extract<D, null>;
  };

/** An id as callers write it; `clean` reads it in lower case. */
export const UuidInput = Type.String({
  format: 'uuid',
  pattern: anyCaseUuid,
  expects: 'a uuid, such as 0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001',
});

/** A platform as callers write it; `clean` reads `twitter` as `x`. */
export const PlatformInput = shownAs(
  ClosedEnum('PlatformInput', [...platforms, 'twitter'], 'A social network. `twitter` is read as `x`.'),
  { enum: platforms },
) as unknown as TEnum<Platform[]>;

/** Members of the schema of a free text that a query may hold: Postgres refuses NUL in every text. */
export const withoutNul = { pattern: '^[^\\u0000]*$', expects: 'text without NUL, such as Winter' } as const;

/** Free text to search for. */
export const QueryText = (description: string) => Type.String({ maxLength: 200, ...withoutNul, description });

/**
 * An instant as callers write it. Narrower than the format, which allows values that neither Date nor `timestamptz`
 * holds: leap seconds, offsets without minutes, and times outside of the years 1 to 9999 in UTC.
 */
export const InstantInput = (description: string) =>
  Type.String({
    format: 'date-time',
    pattern:
      '^(?!0000|0001-01-01.*\\+|9999-12-31.*-\\d\\d:\\d\\d$)\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
    description: `${description} ISO 8601 with Z or an offset, such as 2026-01-31T08:00:00Z.`,
    expects: 'an instant with Z or an offset, such as 2026-01-31T08:00:00Z',
  });

/** What `asOf` names where it is no event. */
export const AsOfInstant = Type.Object({ asOf: InstantInput('The moment.') });

const asOf = Maybe(
  Type.String({
    maxLength: 40,
    pattern: '^((\\d{1,9}\\.)?\\d{1,15}|\\d{4}-\\d\\d-\\d\\dT[0-9:.]{8,18}(Z|[+-]\\d\\d:\\d\\d))$',
    expects: 'an instant or an event of the feed, such as 1.250',
    description:
      'The answer as it was then, also of what was deleted or archived since: after that event of the feed (its `sequence`, or `<epoch>.<sequence>`), or at that instant. Needs the scope `events.read` too, and counts for 10 requests.',
  }),
);

/** Of an operation that answers about the past too. */
export const asOfQuery = { asOf } as const;
export const AsOfQuery = Type.Object(asOfQuery);

/** An object with any members, kept whole. */
export const FreeForm = Named(
  'FreeForm',
  Type.Record(Type.String(), Type.Unknown(), { description: 'An object with any members, kept whole.' }),
);

/** OpenAPI and AsyncAPI documents. */
export const ContractDocument = Named(
  'ContractDocument',
  Type.Record(Type.String(), Type.Unknown(), { description: 'A contract, as its specification defines it.' }),
);

/** Members of every resource beside its `id` and `object`. */
export const stamps = {
  createdAt: said(Instant, 'When it was created.'),
  updatedAt: said(Instant, 'When it last changed.'),
  revision: Type.Integer({ minimum: 0, description: 'Revision of its own stream: the value of ETag and If-Match.' }),
};

export const IdParams = Type.Object({ id: said(UuidInput, 'Id of the resource.') });

const Limit = Defaulted(
  Type.Integer({ minimum: 1, maximum: 100, description: 'Rows per page; it may change between pages.' }),
  25,
);
const Cursor = Maybe(Type.String({ description: 'The `nextCursor` of the previous page.' }));
/** Query members of every list. */
export const paging = { limit: Limit, cursor: Cursor };

/** What each warning means. With `willFail` a warning has the code of the failure instead, which the catalogue explains. */
export const warningWords = {
  stands_still: 'a later change of this resource is stored but cannot be shown yet',
  unknown_member: 'nothing reads this member of the body',
  member_without_effect: 'this member is known, and changes nothing here',
  unknown_override: 'the network has no override of this name, and does not get it',
  timezone_not_used:
    '`timezone` does not count for these targets, because their accounts or clients have a zone of their own; the message names both instants',
  local_time_skipped:
    'the clocks in the zone of these targets skip `scheduledLocal`, which moves forward by the gap; the message names the instant',
  local_time_repeated:
    'the clocks in the zone of these targets show `scheduledLocal` twice, and the first time counts; the message names both instants',
  changes_requested:
    'an approver asked for changes, and the content is still the same: `lastDecision` of the post has the comment',
  approval_not_required: '`requestApproval` changes nothing, because no approval is required',
  no_account: 'no account of the client is on this network',
  platform_not_connectable:
    'this installation connects no live account of this network: its operator has no app there. The link offers the others, and this one as soon as it can be connected',
  duplicate_text: 'the account has the same text within 24 hours',
  hashtag_missing: 'the rules of the client want a hashtag, and only warn',
  disclaimer_missing: 'the rules of the client want their disclaimer, and only warn',
  may_be_refused:
    'the network documents that it takes the text, and was seen to refuse such ones; the message says why',
  alt_text_cut: 'the alt text of the asset is longer than the network takes, and its end is not sent',
  duplicate_possible:
    'the client has the rule `unknownOutcome: retry_when_absent`, so a target whose outcome stays unknown may be published twice',
  account_not_asked:
    'the network did not say what the account may post now; it is asked again right before the post goes out',
  account_posts_later: 'the network lets the account post nothing before the instant that the message names',
  options_cut: 'the network has more options than are read of it',
} as const;
export type WarningCode = keyof typeof warningWords;
export const warningCodes = Object.keys(warningWords) as WarningCode[];

const warningMembers = {
  path: Type.Optional(
    Type.String({
      description: 'The member that it is about: a JSON Pointer into the body; absent where it is about none.',
      examples: ['/variants/0/overrides/reply_settings'],
    }),
  ),
  platform: Type.Optional(said(Platform, 'The network that it is about; absent where it is about no single one.')),
  accountId: Type.Optional(said(Uuid, 'The account that it is about; absent where it is about no single one.')),
  willFail: Type.Optional(
    Type.Boolean({
      description:
        'True: a target will fail when it is published, unless this changes before. `code` is then that of its failure, which GET /errors/{code} explains. Absent: nothing fails for it.',
    }),
  ),
  mediaId: Type.Optional(said(Uuid, 'The asset that it is about; absent where it is about none.')),
  postId: Type.Optional(said(Uuid, 'With `duplicate_text`: a post with the same text.')),
};

export const Warning = Named(
  'Warning',
  Type.Object(
    {
      code: said(
        OpenEnum(
          'WarningCode',
          warningCodes,
          Object.entries(warningWords)
            .map(([code, words]) => `${code}: ${words}`)
            .join('; ')
            .concat('.'),
        ),
        'Stable: branch on it.',
      ),
      id: Type.Optional(
        Type.String({
          description:
            'Id of the resource in `data` to which the warning applies; absent where there is none, as for an entry that was rejected.',
        }),
      ),
      message: Type.String({ description: 'The warning in words.' }),
      ...warningMembers,
    },
    { description: 'A warning about the data of an answer, or about the body of the call.' },
  ),
);
export interface Warning extends Omit<Static<typeof Warning>, 'code'> {
  /** Of the list, or that of the failure to come. */
  readonly code: string;
}

const Moment = Named(
  'Moment',
  Type.Object(
    {
      event: Type.String({
        description: 'The last event of the feed that the answer counts, `<epoch>.<sequence>`.',
        examples: ['1.250'],
      }),
      at: said(Instant, 'The instant that was asked for; of an event, when it was stored.'),
    },
    {
      description:
        'The moment that an answer to a question with `asOf` is of; absent in others. `event` as `asOf` of a later call has the same answer, short of a restore.',
    },
  ),
);

export const Meta = Named(
  'Meta',
  Type.Object(
    {
      correlationId: Type.String({
        minLength: 1,
        maxLength: 128,
        description: 'Id of the request, for questions about it.',
      }),
      asOf: Type.Optional(said(Moment, 'The moment that the answer is of; absent where none was asked for.')),
      warnings: Type.Optional(
        Type.Array(Warning, {
          description:
            'Warnings about the data of this answer and about the body of the call, those with `willFail` first: at most 20, of a bulk call 100. Absent when there are none. A repeat under the same `Idempotency-Key` has those that follow from the body and its targets, and leaves out those about the moment of the first call: accounts, media, rules of clients and other posts. So does the answer for a post of over 32 KiB, of which POST /posts/preview tells all.',
        }),
      ),
      moreWarnings: Type.Optional(
        Type.Integer({ minimum: 1, description: 'Warnings beyond those that are shown; absent when there are none.' }),
      ),
    },
    { description: 'About an answer.' },
  ),
);
export const Page = Named(
  'Page',
  Type.Object(
    {
      hasMore: Type.Boolean({ description: 'Whether a page follows.' }),
      cursor: said(Nullable(Type.String()), 'The cursor that was sent; null on the first page.'),
      nextCursor: said(Nullable(Type.String()), 'Send it as `cursor` for the next page; null on the last page.'),
    },
    { description: 'Where a page stands in its list.' },
  ),
);

/** One entry of `errors`. */
export const ProblemIssue = Named(
  'ProblemIssue',
  Type.Object(
    {
      path: Type.String({
        description:
          'The member at fault: an RFC 6901 JSON Pointer into the body; `/name` for a query parameter; empty for the body as a whole. For a missing member it ends with the name of that member. When a draft is published it leads into the draft.',
        examples: ['/variants/0/contentOverride'],
      }),
      message: Type.String({
        description: 'Words for a person; they may change.',
        examples: ['X takes at most 280 weighted characters; the text has 301'],
      }),
      code: said(IssueCode, 'Stable: branch on this member.', { examples: ['text_too_long'] }),
      accountId: Type.Optional(said(Uuid, 'The account whose target is at fault; absent where no single account is.')),
      platform: Type.Optional(said(Platform, 'The network of that account; absent without `accountId`.')),
      mediaId: Type.Optional(said(Uuid, 'The asset at fault; absent where no single asset is.')),
    },
    { description: 'What is wrong with one member of an input.' },
  ),
);

export const Problem = Named(
  'Problem',
  Type.Object(
    {
      type: Type.String({ format: 'uri', description: 'Address of the page that explains the code.' }),
      // Some generators make this member the message of their exception.
      title: shownAs(Type.String({ description: 'The code in words; the same for each answer with this code.' }), {
        'x-ms-primary-error-message': true,
      }),
      status: Type.Integer({ minimum: 400, maximum: 599, description: 'The HTTP status of the answer.' }),
      code: Type.String({
        description: 'Stable: branch on this member. GET /errors lists all codes.',
        examples: ['validation_failed'],
      }),
      correlationId: Type.String({ description: 'Id of the request, for questions about it.' }),
      category: Type.Optional(
        said(
          OpenEnum(
            'ProblemCategory',
            ['request', 'auth', 'permission', 'conflict', 'limit', 'internal'],
            'request: change the input; auth: send another token; permission: the token may not do this; conflict: the resource has another state; limit: wait; internal: the service failed, repeat the call.',
          ),
          'The kind of problem, by its status.',
        ),
      ),
      detail: Type.Optional(Type.String({ description: 'What happened in this call, in words for a person.' })),
      instance: Type.Optional(Type.String({ description: 'Address of this occurrence; not used today.' })),
      errors: Type.Optional(
        Type.Array(ProblemIssue, {
          description:
            'What is wrong with the input, each entry with a code of its own: at most the first 20. Correct them and send again to see the rest.',
        }),
      ),
      currentRevision: Type.Optional(
        Type.Integer({ minimum: 0, description: 'With `revision_mismatch`: the revision of the resource now.' }),
      ),
      postId: Type.Optional(
        said(Uuid, 'With `already_exists` of an `externalRef`: the post of the client that has it.'),
      ),
      postIds: Type.Optional(
        Type.Array(Uuid, { description: 'With `media_in_use`: posts that need the asset, at most ten.' }),
      ),
      resetsAt: Type.Optional(
        said(Instant, 'With `quota_exceeded`: when the next month begins, in the zone of the workspace.'),
      ),
      approvalId: Type.Optional(said(Uuid, 'With `changes_requested`: the request for approval that was decided.')),
      approvalStatus: Type.Optional(
        Type.String({
          description: 'With `approval_not_pending`: the status of the request.',
          examples: ['approved'],
        }),
      ),
      decidedBy: Type.Optional(
        said(
          Nullable(ActorRef),
          'With `approval_not_pending`: who decided; null: the request was withdrawn undecided.',
        ),
      ),
      decidedAt: Type.Optional(
        said(Nullable(Instant), 'With `approval_not_pending`: when it was decided; null: it was withdrawn undecided.'),
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
    { description: 'Why a call was refused (RFC 9457). The members after `errors` come with one code alone.' },
  ),
);

import { type Static, Type } from 'typebox';
import { ClientName, ClientType, clientTypes, PostMode, postModes } from '#schemas/client.ts';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named } from '#schemas/published.ts';
import { Timezone } from '#schemas/workspace.ts';
import { Defaulted, FreeForm, Maybe, paging, stamps } from './common.ts';

/** A client of the agency, as callers send it and see it. */

const typeWords = 'influencer: a person; brand: a company or a product.';
const ClientTypeInput = ClosedEnum('ClientTypeInput', clientTypes, typeWords);
const modeWords = 'Advice for composing; it never changes POST /posts.';
const PostModeInput = ClosedEnum('PostModeInput', postModes, modeWords);
const Rules = Named(
  'ClientRules',
  Type.Record(Type.String(), Type.Unknown(), {
    description:
      'Kept whole. Known today: bannedWords[], requiredHashtags[], disclaimer, linkPolicy, approvalLate (publish or fail).',
  }),
);

const optional = {
  defaultPostMode: Defaulted(PostModeInput, 'schedule'),
  timezone: Defaulted(Timezone, null),
  approvalRequired: Defaulted(Type.Boolean(), false),
  rules: Defaulted(Rules, {}),
  brandVoice: Defaulted(FreeForm, {}),
};

export const ClientCreate = Named(
  'ClientCreate',
  Type.Object({ name: ClientName, type: ClientTypeInput, ...optional }),
);

/** Only the sent members change; objects are replaced whole; null restores a member's default. */
export const ClientUpdate = Named(
  'ClientUpdate',
  Type.Object({ name: Maybe(ClientName), type: Maybe(ClientTypeInput), ...optional }),
);

export const ClientQuery = Type.Object({
  ...paging,
  type: Maybe(ClientTypeInput),
  search: Maybe(Type.String({ maxLength: 200, description: 'Part of the name, ignoring case.' })),
  archived: Defaulted(Type.Boolean({ description: 'True: only archived clients.' }), false),
});

export const Client = Named(
  'Client',
  Type.Object({
    id: Uuid,
    object: Type.Literal('client'),
    name: Type.String(),
    type: ClientType,
    defaultPostMode: PostMode,
    timezone: Nullable(Type.String()),
    approvalRequired: Type.Boolean(),
    rules: Rules,
    brandVoice: FreeForm,
    archivedAt: Nullable(Instant),
    accountCount: Type.Integer({ minimum: 0 }),
    ...stamps,
  }),
);
export type Client = Static<typeof Client>;

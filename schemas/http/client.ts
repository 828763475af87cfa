import { type Static, Type } from 'typebox';
import { ClientName, clientTypes, postModes } from '#schemas/client.ts';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { Timezone } from '#schemas/workspace.ts';
import { Defaulted, FreeForm, Maybe, paging, stamps } from './common.ts';

/** A client of the agency, as callers send it and see it. */

const ClientType = Type.Enum([...clientTypes]);
const PostMode = Type.Enum([...postModes], { description: 'Advice for composing; it never changes POST /posts.' });
const Rules = Type.Record(Type.String(), Type.Unknown(), {
  description:
    'Kept whole. Known today: bannedWords[], requiredHashtags[], disclaimer, linkPolicy, approvalLate (publish or fail).',
});

const optional = {
  defaultPostMode: Defaulted(PostMode, 'schedule'),
  timezone: Defaulted(Timezone, null),
  approvalRequired: Defaulted(Type.Boolean(), false),
  rules: Defaulted(Rules, {}),
  brandVoice: Defaulted(FreeForm, {}),
};

export const ClientCreate = Type.Object({ name: ClientName, type: ClientType, ...optional });

/** Only the sent members change; objects are replaced whole; null restores a member's default. */
export const ClientPatch = Type.Object({ name: Maybe(ClientName), type: Maybe(ClientType), ...optional });

export const ClientQuery = Type.Object({
  ...paging,
  type: Maybe(ClientType),
  search: Maybe(Type.String({ maxLength: 200, description: 'Part of the name, ignoring case.' })),
  archived: Defaulted(Type.Boolean({ description: 'True: only archived clients.' }), false),
});

export const Client = Type.Object({
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
});
export type Client = Static<typeof Client>;

import { type Static, Type } from 'typebox';
import {
  ClientName,
  ClientType,
  clientTypes,
  clientWords,
  modeWords,
  PostMode,
  postModes,
  typeWords,
  unknownOutcomeRules,
  unknownOutcomeWords,
} from '#schemas/client.ts';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { ClosedEnum, Named, said } from '#schemas/published.ts';
import { Timezone } from '#schemas/workspace.ts';
import { asOfQuery, Defaulted, FreeForm, Maybe, paging, QueryText, Resettable, stamps } from './common.ts';

/** A client of the agency, as callers send it and see it. */

const ClientTypeInput = ClosedEnum('ClientTypeInput', clientTypes, typeWords);
const PostModeInput = ClosedEnum('PostModeInput', postModes, modeWords);
const UnknownOutcome = ClosedEnum('UnknownOutcomeRule', unknownOutcomeRules, unknownOutcomeWords);
const rulesWords =
  'Rules for the posts of a client: an object with any members, kept whole. `unknownOutcome` (`hold`, the default, or `retry_when_absent`) is applied, and so is `approvalLate`: with `fail`, a target that nobody has approved when it is due fails with `approval_too_late`; with `publish`, the default, it goes out once it is approved. A post keeps the rule that it was planned under. `bannedWords` (an array) refuses a post whose text, title or first comment has one of these whole words or phrases, whatever its case; `linkPolicy` (`any`, `none` or `{"allowedHosts": […]}`, hosts below these included) refuses other links. `requiredHashtags` (an array) and `disclaimer` (a text) must be in the text or the first comment, unless `enforce` is `warn`: then a preview warns. The service never appends them. At most 5,000 words, 5,000 hosts and 100 hashtags of 200 characters each, and a disclaimer of 5,000. The rules of a client hold for its posts, and for every post that goes to its accounts; a member of another type counts as absent.';
const Rules = Named(
  'ClientRules',
  Type.Record(Type.String(), Type.Unknown(), {
    description: rulesWords,
    examples: [{ bannedWords: ['cheap'], unknownOutcome: 'hold' }],
  }),
);
const RulesInput = Named(
  'ClientRulesInput',
  Type.Object(
    { unknownOutcome: Maybe(said(UnknownOutcome, 'What happens when an outcome stays unknown. Default: hold.')) },
    {
      additionalProperties: true,
      description: rulesWords,
      examples: [{ bannedWords: ['cheap'], unknownOutcome: 'hold' }],
    },
  ),
);
const ruleWords = 'Rules for its posts.';
const voiceWords = 'How its posts should sound, in members of your own: an object, kept whole for those who write.';
const zone = { examples: ['Europe/Berlin'] };

/** The members with a default, of a client that is created or changed. */
const optional = (Preset: typeof Defaulted) => ({
  defaultPostMode: Preset(said(PostModeInput, clientWords.defaultPostMode), 'schedule'),
  timezone: Preset(said(Timezone, clientWords.timezone, zone), null),
  approvalRequired: Preset(Type.Boolean({ description: clientWords.approvalRequired }), false),
  rules: Preset(said(RulesInput, ruleWords), {}),
  brandVoice: Preset(said(FreeForm, voiceWords), {}),
});
const Name = said(ClientName, clientWords.name, { examples: ['Acme'] });
const TypeInput = said(ClientTypeInput, clientWords.type);

export const ClientCreate = Named(
  'ClientCreate',
  Type.Object({ name: Name, type: TypeInput, ...optional(Defaulted) }, { description: 'A client as it is created.' }),
);

export const ClientUpdate = Named(
  'ClientUpdate',
  Type.Object(
    { name: Maybe(Name), type: Maybe(TypeInput), ...optional(Resettable) },
    {
      description:
        'Changes of a client: only the members that are sent change. An object is replaced as a whole; null resets a member to its default.',
    },
  ),
);

export const ClientQuery = Type.Object({
  ...paging,
  ...asOfQuery,
  type: Maybe(said(ClientTypeInput, 'Only clients of this type.')),
  search: Maybe(QueryText('Part of the name, ignoring case.')),
  archived: Defaulted(
    Type.Boolean({ description: 'True: only archived clients; false: only those that are not archived.' }),
    false,
  ),
});

export const Client = Named(
  'Client',
  Type.Object(
    {
      id: said(Uuid, 'Id of the client.'),
      object: Type.Literal('client', { description: 'The kind of resource.' }),
      name: Type.String({ description: clientWords.name, examples: ['Acme'] }),
      type: said(ClientType, clientWords.type),
      defaultPostMode: said(PostMode, clientWords.defaultPostMode),
      timezone: said(Nullable(Type.String()), clientWords.timezone, zone),
      approvalRequired: Type.Boolean({ description: clientWords.approvalRequired }),
      rules: said(Rules, ruleWords),
      brandVoice: said(FreeForm, voiceWords),
      archivedAt: said(
        Nullable(Instant),
        'When it was archived: since then it takes no new posts and cannot be changed. Null: it is live.',
      ),
      accountCount: Type.Integer({
        minimum: 0,
        description: 'Number of its accounts that are connected or must be connected again.',
      }),
      ...stamps,
    },
    { description: 'A brand or an influencer that the agency posts for.' },
  ),
);
export type Client = Static<typeof Client>;

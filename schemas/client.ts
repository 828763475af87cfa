import { type Static, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Uuid } from './common.ts';
import { OpenEnum } from './published.ts';
import { Timezone } from './workspace.ts';

/** A client of the agency: a brand or an influencer, with the rules and the voice its posts follow. */

export const clientTypes = ['influencer', 'brand'] as const;
export const postModes = ['now', 'schedule', 'draft', 'approval'] as const;
export const ClientName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '\\S',
  expects: 'a name with a character that is not blank, such as Acme',
});
const FreeForm = Type.Record(Type.String(), Type.Unknown());

export const unknownOutcomeRules = ['hold', 'retry_when_absent'] as const;
export const unknownOutcomeWords =
  'What happens to a target when the network does not say whether it published it. hold: the target keeps the status `outcome_unknown` until the network is known to have, or never to get, the post, or until an operator decides. retry_when_absent: after three looks at the network, at least a minute apart, that find no such post, the target is tried again, once. The network may be wrong, so the post, or a segment of its thread, may then be published twice, and no more often: where that attempt has no outcome either, the target keeps the status. Only where the network lists all of an account’s own posts; never on telegram or tiktok. The service looks for 72 hours.';

export const typeWords = 'influencer: a person; brand: a company or a product.';
export const ClientType = OpenEnum('ClientType', clientTypes, typeWords);
export const modeWords =
  'What a composer proposes first. now: publish at once; schedule: choose a time; draft: save a draft; approval: submit for approval. Advice only: it never changes what POST /posts does.';
export const PostMode = OpenEnum('PostMode', postModes, modeWords);

/** What the members of a client mean, wherever they stand. */
export const clientWords = {
  name: 'Its name, unique among the live clients of the workspace (compared trimmed and without case).',
  type: 'Whether the client is a person or a brand.',
  defaultPostMode: 'What a composer proposes first for its posts.',
  timezone:
    'IANA zone of the wall-clock times of its accounts that have no zone of their own. Without one: that of the post.',
  approvalRequired:
    'Whether its posts need approval before they go out. Its targets are then held until a person approves the post.',
} as const;

export const ClientFields = Type.Object({
  name: ClientName,
  type: ClientType,
  defaultPostMode: PostMode,
  timezone: Nullable(Timezone),
  approvalRequired: Type.Boolean(),
  /** Kept whole. The service reads `unknownOutcome` alone. */
  rules: FreeForm,
  brandVoice: FreeForm,
});
export type ClientFields = Static<typeof ClientFields>;

export const clientEvents = {
  ClientCreated: ClientFields,
  /** Only the changed members. */
  ClientUpdated: Type.Partial(ClientFields),
  ClientArchived: Type.Object({}),
  /**
   * Another client took over a name that this one had claimed and not yet taken; the pending write fails at this
   * revision.
   */
  ClientNameClaimLapsed: Type.Object({ name: Type.String({ maxLength: 400 }) }),
  ClientErased: Type.Object({}),
} as const;
export type ClientEvent = EventOf<typeof clientEvents>;

/** The claim on a name inside a workspace; the stream's id is uuidv5(workspace, normalised name). */
export const clientnameEvents = {
  NameClaimed: Type.Object({ clientId: Uuid, name: Type.String({ maxLength: 400 }), claimedAt: Instant }),
  NameReleased: Type.Object({ clientId: Uuid }),
} as const;
export type ClientNameEvent = EventOf<typeof clientnameEvents>;

import { type Static, Type } from 'typebox';
import { type EventOf, Instant, Nullable, Uuid } from './common.ts';
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

export const ClientFields = Type.Object({
  name: ClientName,
  type: Type.Enum([...clientTypes]),
  defaultPostMode: Type.Enum([...postModes]),
  timezone: Nullable(Timezone),
  approvalRequired: Type.Boolean(),
  /** Kept whole; the code reads `bannedWords, requiredHashtags, disclaimer, linkPolicy, approvalLate`. */
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

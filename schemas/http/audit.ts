import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { paging } from './common.ts';

/** What auditors read: the changes of a thing. */

export const HistoryQuery = Type.Object({ ...paging });

const cutWords =
  'A text, or a value as JSON, of more than 2,000 characters is `{$cut, characters, sha256}`: its beginning, its length and the SHA-256 of the whole.';

const Credential = Named(
  'AuditCredential',
  Type.Object(
    {
      type: said(
        OpenEnum('AuditCredentialType', ['api_key', 'grant'], 'api_key: an API key; grant: what a member gave an app.'),
        'The kind of credential.',
      ),
      id: Type.String({ maxLength: 200, description: 'Id of the key, or of what was given.' }),
    },
    { description: 'With what somebody acted who did not use the console.' },
  ),
);

/** Who did something, with what, in which request. */
const origin = {
  actor: said(ActorRef, 'Who did it.'),
  credential: said(
    Nullable(Credential),
    'With which credential; null: with a session of the console, a link, or by the service itself.',
  ),
  correlationId: Type.String({ maxLength: 128, description: 'Of the request from which it follows.' }),
  causationId: Type.String({ maxLength: 128, description: 'The event from which it follows, or the request itself.' }),
  commandId: Type.String({ maxLength: 128, description: 'The same for all effects of one accepted request.' }),
};

const FieldChange = Named(
  'FieldChange',
  Type.Object(
    {
      field: Type.String({
        description: 'The member that changed: an RFC 6901 JSON Pointer into the thing.',
        examples: ['/content'],
      }),
      old: Type.Unknown({ description: `Its value before; null: it had none. ${cutWords}` }),
      new: Type.Unknown({ description: 'Its value from then on; null: it has none any more. Long ones as in `old`.' }),
    },
    { description: 'One member of a thing before and after an event.' },
  ),
);

const resources = [
  ...(['post', 'post_target', 'approval', 'client', 'account'] as const),
  ...(['campaign', 'webhook', 'member', 'api_key'] as const),
] as const;

export const HistoryEntry = Named(
  'HistoryEntry',
  Type.Object(
    {
      id: said(Uuid, 'Id of the event.'),
      object: Type.Literal('change', { description: 'The kind of entry.' }),
      resource: said(
        OpenEnum('AuditResource', resources, 'A kind of thing whose changes are kept.'),
        'What changed: of a post also its targets and its requests for approval.',
      ),
      resourceId: said(Uuid, 'Id of what changed.'),
      revision: Type.Integer({ minimum: 0, description: 'Revision of the event in the stream of what changed.' }),
      type: Type.String({ maxLength: 100, description: 'Type of the stored event.', examples: ['PostScheduled'] }),
      at: said(Instant, 'When it was decided.'),
      ...origin,
      reason: Nullable(
        Type.String({ maxLength: 2_000, description: 'Why, as the event says it; null: it does not say.' }),
      ),
      changes: Type.Array(FieldChange, {
        description:
          'What differs from before, at most 100 members. Empty where the event changes nothing that is shown, as the intent for other streams.',
      }),
      moreChanges: Type.Integer({ minimum: 0, description: 'Members that changed beside those in `changes`.' }),
    },
    { description: 'One change of a thing.' },
  ),
);

import { type Static, Type } from 'typebox';
import { Instant, Nullable, Uuid } from '#schemas/common.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { ClosedEnum, Named, said } from '#schemas/published.ts';
import { Defaulted, FreeForm, InstantInput, Maybe, paging, UuidInput, withoutNul } from './common.ts';

/** The feed of a workspace's events, and the proofs that it is whole, as callers see them. */

const cursorWords =
  'Where the page begins: the `nextCursor` of an answer, or `<epoch>.<sequence>` of an event. Absent: the first event.';

/** Streams that no feed has. */
const left: readonly string[] = ['request', 'person', 'personemail', 'session'];
const typeNames = [
  ...new Set(
    Object.entries(eventCatalogue).flatMap(([kind, events]) => (left.includes(kind) ? [] : Object.keys(events))),
  ),
].sort();
const StoredEventType = ClosedEnum('StoredEventType', typeNames, 'A type of stored events.');

const Types = Type.Array(StoredEventType, {
  minItems: 1,
  maxItems: 50,
  description: 'Only events of these types, such as `PostDrafted`.',
});

export const FeedQuery = Type.Object({
  after: Maybe(
    Type.String({ pattern: '^\\d{1,9}\\.\\d{1,15}$', expects: 'a cursor, such as 1.250', description: cursorWords }),
  ),
  limit: Defaulted(
    Type.Integer({ minimum: 1, maximum: 500, description: 'Events per page. As lines, all events come up to now.' }),
    100,
  ),
  types: Maybe(Types),
  stream: Maybe(
    Type.String({
      ...{ minLength: 1, maxLength: 200, ...withoutNul },
      description: 'Only events of this stream, such as `post-0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001`.',
    }),
  ),
  clientId: Maybe(said(UuidInput, 'Only events that belong to this client.')),
  from: Maybe(
    InstantInput(
      'Only events that the store took at or after this instant. With `after`, the later of the two counts.',
    ),
  ),
  to: Maybe(InstantInput('Only events that the store took before this instant.')),
  wait: Defaulted(
    Type.Integer({
      minimum: 0,
      maximum: 15,
      description:
        'Seconds that an empty answer may wait for an event. Few calls of a workspace wait at once; the others are answered.',
    }),
    0,
  ),
  form: Defaulted(
    ClosedEnum(
      'EventForm',
      ['domain', 'stored'],
      'Whether `data` is what the event says, opened and in its newest version, or the text that is stored, which a proof covers.',
    ),
    'domain',
  ),
});

const Base64 = (description: string) => Type.String({ maxLength: 100, description });

const EventActorRef = Named(
  'EventActorRef',
  Type.Object(
    {
      type: Type.String({ description: 'The kind of actor: member, apikey, service, guest or admin.' }),
      id: Type.String({ description: 'Its id: of a key, that of the key.' }),
      grantId: Type.Optional(said(Uuid, 'The grant under which an app acted for the member.')),
    },
    { description: 'Who did something, and by which credential.' },
  ),
);

const StoredEvent = Named(
  'StoredEvent',
  Type.Object(
    {
      data: Type.String({ description: 'The text of what it says; members of persons are encrypted.' }),
      metadata: Type.String({ description: 'The text of who, when and why.' }),
      encoding: Type.String({
        description: 'How both are written: `utf8`, or `base64` where the bytes are no text.',
        examples: ['utf8'],
      }),
      hash: Base64('Its leaf in the tree, base64 of SHA-256.'),
    },
    { description: 'An event as the store holds it.' },
  ),
);

export const FeedEvent = Named(
  'FeedEvent',
  Type.Object(
    {
      sequence: Type.Integer({
        minimum: 1,
        description: 'Its number in the feed: the first event of a workspace has 1, and none is left out.',
      }),
      cursor: Type.String({ description: 'The value of `after` for what follows it.', examples: ['1.250'] }),
      id: said(Uuid, 'Id of the event.'),
      object: Type.Literal('event', { description: 'The kind of resource.' }),
      stream: Type.String({
        description: 'The stream that it belongs to.',
        examples: ['post-0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001'],
      }),
      revision: Type.Integer({ minimum: 0, description: 'Its place in the stream, from 0.' }),
      type: Type.String({ description: 'What happened.', examples: ['PostDrafted'] }),
      schemaVersion: said(Nullable(Type.Integer({ minimum: 1 })), 'Version in which it was stored.'),
      at: said(Instant, 'When the store took it; never before the event ahead of it.'),
      occurredAt: said(Nullable(Instant), 'When it was decided.'),
      clientId: said(Nullable(Uuid), 'The client that it belongs to; null: it belongs to none.'),
      actor: said(Nullable(EventActorRef), 'Who did it, by which credential: an id, never a name.'),
      correlationId: said(Nullable(Type.String()), 'The call that began it.'),
      causationId: said(Nullable(Type.String()), 'The event or the call that it follows from.'),
      commandId: said(Nullable(Type.String()), 'The same for all events of one command.'),
      data: said(
        Nullable(FreeForm),
        'What it says. Null: it was asked for as stored, or it expired, or a newer build wrote it in a form that this one cannot read.',
      ),
      stored: Type.Optional(said(StoredEvent, 'With `form=stored`: what the store holds, which a proof covers.')),
      expired: said(Type.Boolean(), 'Whether a rule of retention dropped what it says; its leaf stays in the tree.'),
    },
    { description: 'An event of the workspace.' },
  ),
);
export type FeedEvent = Static<typeof FeedEvent>;

export const FeedCheckpoint = Named(
  'FeedCheckpoint',
  Type.Object(
    {
      epoch: Type.Integer({
        minimum: 1,
        description: 'What lies between two restores. Of one epoch each size has one root, for ever.',
      }),
      size: Type.Integer({ minimum: 0, description: 'Events that the feed had.' }),
      root: Base64('Root of the tree over them, base64 of SHA-256.'),
      kept: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'The last event that the restore kept which began the epoch, as the note says it too; null: none did.',
      ),
      signedAt: said(Instant, 'When it was signed.'),
      note: Type.String({
        description:
          'The signed text (C2SP `tlog-checkpoint`). Keep it: who has one can prove later whether the feed still begins with it.',
      }),
    },
    { description: 'A signed statement of what the feed had.' },
  ),
);

export const FeedCheckpointQuery = Type.Object(paging);

const Proof = Type.Array(Base64('Base64 of SHA-256.'), {
  description: 'The hashes of the proof, in their order (RFC 9162).',
});

export const FeedProofParams = Type.Object({
  sequence: Type.String({
    ...{ pattern: '^(?:\\d{1,9}\\.)?[1-9]\\d{0,14}$', expects: 'a sequence or a cursor, such as 1.250' },
    description:
      'Cursor of the event, or its sequence alone, which means the event that has it now. After a restore only the cursor tells the two apart.',
    examples: ['1.250'],
  }),
});

export const FeedProofQuery = Type.Object({
  size: Maybe(
    Type.Integer({ minimum: 1, description: 'Size of the tree in which it is proved. Absent: all events up to now.' }),
  ),
});

export const FeedProof = Named(
  'FeedProof',
  Type.Object(
    {
      sequence: Type.Integer({ minimum: 1, description: 'Of the event.' }),
      cursor: Type.String({
        description: 'The event in the newest epoch: another one than was asked for, where a restore kept it.',
        examples: ['1.250'],
      }),
      id: said(Uuid, 'Id of the event that has the number now: compare it with the one that you mean.'),
      hash: Base64('Its leaf, base64 of SHA-256.'),
      proof: Proof,
      checkpoint: said(FeedCheckpoint, 'The tree that it is in.'),
    },
    { description: 'That an event is in the feed.' },
  ),
);

export const FeedGrowthParams = Type.Object({
  size: Type.String({
    ...{
      pattern: '^(?:\\d{1,9}\\.)?[1-9]\\d{0,14}$',
      expects: 'a number of events, behind its epoch or alone, such as 1.200',
    },
    description:
      'Size of the checkpoint that was kept, behind its epoch and a point; without them the size in the newest epoch is meant.',
    examples: ['1.200'],
  }),
});

export const FeedGrowth = Named(
  'FeedGrowth',
  Type.Object(
    {
      former: said(FeedCheckpoint, 'The kept size.'),
      checkpoint: said(FeedCheckpoint, 'The later one.'),
      proof: Proof,
    },
    { description: 'That the feed only grew: the later tree begins with the former one.' },
  ),
);

const FeedKey = Named(
  'FeedKey',
  Type.Object(
    {
      id: Type.String({ description: 'The beginning of the key’s hash, 8 hexadecimal digits.' }),
      verifier: Type.String({ description: 'The key as verifiers of signed notes take it.' }),
      madeAt: said(Instant, 'Since when it signs.'),
      retiredAt: said(Nullable(Instant), 'Until when it signed; null: it signs.'),
    },
    { description: 'A public key of the installation.' },
  ),
);

export const FeedKeys = Named(
  'FeedKeys',
  Type.Object(
    { keys: Type.Array(FeedKey, { description: 'All keys that ever signed, the newest first.' }) },
    { description: 'The public keys of the installation’s checkpoints.' },
  ),
);

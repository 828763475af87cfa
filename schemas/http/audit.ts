import { Type } from 'typebox';
import { ContentHash } from '#schemas/approval.ts';
import { ActorRef, Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { targetStatuses } from '#schemas/target.ts';
import { Approval } from './approval.ts';
import { paging } from './common.ts';

/** What auditors read: the changes of a thing, the course of a target, and what an approval was about. */

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

export const timelineSteps = [
  ...(['planned', 'intent', 'approval', 'scheduled', 'claim', 'checkpoint', 'boundary', 'call'] as const),
  ...(['calls_not_kept', 'outcome', 'reconcile', 'native', 'processing', 'comment', 'after_step', 'other'] as const),
] as const;
export type TimelineStep = (typeof timelineSteps)[number];

const stepWords =
  'planned: it was made, with its time; intent: its post was changed, for it and others; approval: it was held or released; scheduled: it has another time, or is tried again; claim: a worker began an attempt, or took one over; checkpoint: a step of an attempt before the boundary; boundary: the worker is about to make the one call that can create a post; call: a call of the network; calls_not_kept: calls of which nothing is kept; outcome: how an attempt ended; reconcile: what the network was found to have, where the outcome was unknown; native: the network’s own scheduler has the post, or gave it back; processing: the network has the post and does not show it yet; comment: its first comment; after_step: what follows the published post; other: anything else';

const NetworkCallShown = Named(
  'NetworkCall',
  Type.Object(
    {
      method: Type.String({ maxLength: 10, description: 'Of HTTP.' }),
      host: Type.String({ maxLength: 300, description: 'The host that was called.' }),
      path: Type.String({
        maxLength: 500,
        description: 'With the names of the query’s members, without their values.',
      }),
      headers: Type.Record(Type.String(), Type.String(), {
        description: 'Of the request; … in the place of a value that is secret or tells of a person.',
      }),
      bodySha256: Nullable(
        Type.String({
          description:
            'SHA-256, in hex, of the bytes that went out; null: there were none, they are secret, or the entry stands for several calls.',
        }),
      ),
      outcome: Type.String({
        maxLength: 20,
        description: 'answered; unsent: nothing went out; silent: no answer came.',
        examples: ['answered'],
      }),
      status: Nullable(Type.Integer({ description: 'The HTTP status; null: no answer came.' })),
      reason: Nullable(Type.String({ maxLength: 200, description: 'Why there is no answer; null: there is one.' })),
      answer: Nullable(
        Type.String({
          maxLength: 4_096,
          description:
            'The beginning of the answer, at most 4 KiB, without credentials; null: none came, all of it is secret, or the client was erased.',
        }),
      ),
      calls: Type.Integer({ minimum: 1, description: 'Calls that the entry stands for: equal pieces of one upload.' }),
      startedAt: said(Instant, 'When the first of them began.'),
      endedAt: said(Instant, 'When the last of them ended.'),
    },
    { description: 'A call of a network, as far as it may be kept.' },
  ),
);

export const TimelineEntry = Named(
  'TimelineEntry',
  Type.Object(
    {
      id: said(Nullable(Uuid), 'Id of the event; null: the entry says what is not kept.'),
      object: Type.Literal('timeline_entry', { description: 'The kind of entry.' }),
      step: said(OpenEnum('TimelineStep', timelineSteps, `${stepWords}.`), 'What kind of step it is.'),
      at: said(Instant, 'When it was decided; of a call, when it began.'),
      type: Nullable(Type.String({ maxLength: 100, description: 'Type of the stored event; null: there is none.' })),
      revision: Nullable(
        Type.Integer({ minimum: 0, description: 'Revision of the event in its own stream; null: there is none.' }),
      ),
      attempt: Nullable(Type.Integer({ minimum: 0, description: 'The attempt that it is of; null: of none.' })),
      takeover: Nullable(
        Type.Integer({ minimum: 0, description: 'How often that attempt was taken over; null: of none.' }),
      ),
      reason: Nullable(
        Type.String({
          maxLength: 2_000,
          description:
            'Why, as the event says it. With calls_not_kept: full: no more calls of a target are kept; none_kept: no call of this attempt is: the sandbox makes none, and a process that is killed or overloaded loses those that it has not written yet.',
        }),
      ),
      actor: said(Nullable(ActorRef), 'Who did it; null: the entry says what is not kept.'),
      credential: said(Nullable(Credential), 'As in the history.'),
      correlationId: Nullable(Type.String({ maxLength: 128, description: 'Of the request from which it follows.' })),
      details: Type.Record(Type.String(), Type.Unknown(), {
        description: `What the event says, without addresses and credentials. ${cutWords}`,
      }),
      call: said(Nullable(NetworkCallShown), 'The call; null: the step is none.'),
    },
    { description: 'One step of a target on its way to its network.' },
  ),
);

const EvidenceLink = Named(
  'EvidenceLink',
  Type.Object(
    {
      linkId: said(Uuid, 'Id of the link.'),
      createdAt: said(Instant, 'When it was made.'),
      createdBy: said(ActorRef, 'Who made it.'),
      expiresAt: said(Instant, 'Until when it works.'),
      revokedAt: said(Nullable(Instant), 'When it was revoked; null: it was not.'),
    },
    { description: 'A link through which a guest could see the request and decide.' },
  ),
);

const EvidenceDecision = Named(
  'EvidenceDecision',
  Type.Object(
    {
      id: said(Uuid, 'Id of the event.'),
      type: Type.String({ maxLength: 100, description: 'Type of the event.', examples: ['ApprovalApproved'] }),
      at: said(Instant, 'When it was decided.'),
      ...origin,
      linkId: said(Nullable(Uuid), 'The link of the guest; null: no guest decided.'),
      guestName: Nullable(
        Type.String({
          description: 'Who the guest says that they are; null: no guest decided, or the client was erased.',
        }),
      ),
      comment: Nullable(Type.String({ description: 'What the approver wrote; null: nothing.' })),
      reason: Nullable(Type.String({ description: 'Of a withdrawal: why; null: it is none.' })),
    },
    { description: 'A decision about a request, or its withdrawal.' },
  ),
);

const EvidenceTarget = Named(
  'EvidenceTarget',
  Type.Object(
    {
      targetId: said(Uuid, 'Id of the target.'),
      accountId: said(Uuid, 'The account that it goes to.'),
      platform: said(Platform, 'The network of the account.'),
      status: said(
        OpenEnum('EvidenceTargetStatus', targetStatuses, 'Where the target stands.'),
        'Where it stands now.',
      ),
      publishedAt: said(Nullable(Instant), 'When it went out; null: it is not out.'),
      externalId: Nullable(Type.String({ description: 'Id of the post on its network; null: it is not out.' })),
      permalink: Nullable(Type.String({ description: 'Address of the post; null: none is known.' })),
      postRevision: Type.Integer({ minimum: 0, description: 'The revision of the post whose content the target has.' }),
      contentHash: said(ContentHash, 'The hash of that content: it went out, or stands now.'),
      matches: Type.Boolean({ description: 'Whether it is the content that was asked for.' }),
    },
    { description: 'A target that the request was about, and its content.' },
  ),
);

export const ApprovalEvidence = Named(
  'ApprovalEvidence',
  Type.Object(
    {
      id: said(Uuid, 'Id of the request.'),
      object: Type.Literal('approval_evidence', { description: 'The kind of answer.' }),
      approval: said(Approval, 'The request, with exactly what its approver was shown.'),
      requestedAt: said(Instant, 'When it was asked for.'),
      requestedWith: said(Nullable(Credential), 'With which credential; null: as in the history.'),
      contentHash: said(ContentHash, 'The hash that was asked for.'),
      recountedHash: said(ContentHash, 'The hash of what `approval` shows, counted again from the stored events.'),
      matches: Type.Boolean({ description: 'Whether the two are the same.' }),
      links: Type.Array(EvidenceLink, {
        description: 'To whom it was shown outside of the team. Looks at the request are not recorded.',
      }),
      decisions: Type.Array(EvidenceDecision, { description: 'What was decided, the first first.' }),
      targets: Type.Array(EvidenceTarget, { description: 'The targets that the request was about.' }),
      targetsMatch: Type.Boolean({ description: 'Whether every one of them has the content that was asked for.' }),
    },
    { description: 'What was shown of a post, what was decided, and what became of exactly that content.' },
  ),
);

const rebuildReasons = ['requested', 'shape_changed', 'lost'] as const;
const rebuildPhases = ['reading', 'following', 'interrupted'] as const;

const ProjectionRebuild = Named(
  'ProjectionRebuild',
  Type.Object(
    {
      reason: said(
        OpenEnum(
          'ProjectionRebuildReason',
          rebuildReasons,
          'requested: an operator asked for it; shape_changed: a new release keeps its rows in another form, and its first process began by itself; lost: the rows were gone.',
        ),
        'Why it is rebuilt.',
      ),
      since: said(Instant, 'When it began.'),
      phase: said(
        OpenEnum(
          'ProjectionRebuildPhase',
          rebuildPhases,
          'reading: new rows are made from the store; following: they take what has happened since, until they are near its end and are switched to; interrupted: the process that made them is gone, and the next one goes on or begins anew.',
        ),
        'How far it has come.',
      ),
      progress: Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'The share of the store that is read, of all workspaces together.',
      }),
      readTo: said(Nullable(Instant), 'When the last event that was read had been stored; null: none was read yet.'),
    },
    { description: 'New rows that are made beside those that are served.' },
  ),
);

export const ProjectionState = Named(
  'Projection',
  Type.Object(
    {
      name: Type.String({
        description: 'A read model by its name, `analytics`, `webhook_dispatch` or `feed`. A release may add one.',
        examples: ['posts'],
      }),
      object: Type.Literal('projection', { description: 'The kind of resource.' }),
      kind: said(
        OpenEnum(
          'ProjectionKind',
          ['read_model', 'analytics', 'webhook_dispatch', 'feed'],
          'read_model: rows that lists and single answers are read from; analytics: the figures; webhook_dispatch: the making of deliveries; feed: the numbers of events.',
        ),
        'What it makes of the events.',
      ),
      position: Type.String({
        description: 'A cursor of the feed: every event of this workspace up to it that the reader reads is applied.',
        examples: ['1.250'],
      }),
      eventsBehind: Type.Integer({
        minimum: 0,
        description: 'Events of this workspace that wait; among the next 10,000, of the feed among the next 500.',
      }),
      lagSeconds: Type.Number({
        minimum: 0,
        description: 'Seconds since the first of them was stored; 0: none waits.',
      }),
      rebuilding: said(Nullable(ProjectionRebuild), 'Null: it is not rebuilt.'),
    },
    { description: 'Something that reads the events and keeps what it makes of them, with regard to this workspace.' },
  ),
);

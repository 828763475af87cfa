import { deepEqual, equal, match, ok, throws } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { type Decider, type Fact, Rejection } from '#domain/decider.ts';
import { accountIdOf, approvalIdOf, envelopeIdOf, keyedIdOf, recycledPostIdOf, targetIdOf } from '#domain/ids.ts';
import { type PostCommand, post, statusOf, type TargetOutcome } from '#domain/post/post.ts';
import { type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import {
  envelope,
  kindsPublished,
  needsStream,
  publicTypesOf,
  published,
  render,
  sampleBytes,
  sampleOf,
  subjectOf,
  typesOfKind,
  unpublished,
} from '#projections/webhooks/types.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { example } from '#schemas/http/webhook-events/common.ts';
import { Envelope, eventTypes, isKnownFilter, matches, publicEvents } from '#schemas/http/webhook-events.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { issuesOf } from '#schemas/validator.ts';
import { EventFilter } from '#schemas/webhook.ts';
import { asyncapiOf } from '#services/api/contract/asyncapi.ts';
import type { ContractNode } from '#services/api/contract/components.ts';
import { plannedPublicTypes } from '#test/architecture/planned.ts';
import { closed, maxBytes, subjectAt } from '#test/support/payloads.ts';
import { checkerOf } from '#test/support/published.ts';
import { failure, planned, postBody } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/**
 * The table of public events as a whole: every event is covered, none is published twice, and the names are the
 * published ones.
 */

const given = [
  ...['post.created', 'post.updated', 'post.scheduled', 'post.published', 'post.partially_published'],
  ...['post.failed', 'post.canceled', 'post.revised', 'post.discarded'],
  ...['post.submitted', 'post.released', 'post.returned_to_draft'],
  ...['post.recycled', 'post.recycle_changed', 'post.recycle_failed'],
  ...['approval.requested', 'approval.approved', 'approval.rejected', 'approval.changes_requested'],
  ...['approval.withdrawn', 'approval.link_created', 'approval.link_revoked'],
  ...['campaign.created', 'campaign.updated', 'campaign.shifted', 'campaign.deleted', 'post.campaign_changed'],
  ...['target.scheduled', 'target.rescheduled', 'target.held', 'target.released', 'target.revised'],
  ...[
    'target.publishing',
    'target.processing',
    'target.handed_to_platform',
    'target.undo_requested',
    'target.undo_failed',
  ],
  ...['target.schedule_mode_changed', 'target.published', 'target.failed'],
  ...['target.rate_limited', 'target.deferred', 'target.canceled', 'target.outcome_unknown', 'target.requeued'],
  ...[
    'target.first_comment_posted',
    'target.first_comment_failed',
    'target.after_step_failed',
    'target.removed',
    'target.overdue',
  ],
  ...['media.registered', 'media.ready', 'media.failed', 'media.quarantined', 'media.deleted'],
  ...['media.variant.ready', 'media.variant.failed'],
  ...['account.connected', 'account.reauthorized', 'account.reauth_required', 'account.disconnected'],
  ...['account.updated', 'client.created', 'client.updated', 'client.archived', 'client.erased'],
  ...[
    'workspace.updated',
    'quota.changed',
    'network.version_ending',
    'cadence.changed',
    'account.limits_observed',
    'apikey.created',
    'apikey.rotated',
    'apikey.revoked',
  ],
  ...['invite.created', 'invite.used', 'invite.revoked'],
  ...['team.member_added', 'team.role_changed', 'team.member_removed'],
  ...['webhook.disabled', 'webhook.enabled'],
  'analytics.refreshed',
  ...['report.run.completed', 'report.run.failed'],
];
/** Of nouns whose domain events do not exist yet. */
const awaited = plannedPublicTypes.filter((type) => !given.includes(type));
/** Minted by the dispatcher, of a request for it. */
const asked = ['webhook.test'];

interface Message {
  readonly name: string;
  readonly payload: { readonly $ref: string };
  readonly examples: readonly { readonly payload: unknown }[];
}

suite('public types', (t) => {
  t('are exactly the types of the list', () => {
    deepEqual([...eventTypes].sort(), [...given, ...awaited, ...asked].sort());
    for (const type of eventTypes) match(type, /^[a-z]+(\.[a-z_]+)+$/);
  });

  t('every domain event is published, or listed with the reason why not', () => {
    const all = Object.entries(eventCatalogue).flatMap(([kind, types]) =>
      Object.keys(types).map((type) => `${kind}/${type}`),
    );
    deepEqual([...published.keys(), ...unpublished.keys()].sort(), all.sort());
    for (const types of published.values()) ok(types.length > 0);
    for (const [event, why] of unpublished) ok(why.length > 10, event);
  });

  t('every public type has a domain event', () => {
    deepEqual([...new Set([...published.values()].flat())].sort(), [...given].sort());
    deepEqual(
      kindsPublished.flatMap((kind) => typesOfKind(kind)).sort(),
      [...given].sort(),
      'no type comes from two kinds of stream',
    );
    deepEqual(typesOfKind('request'), []);
  });

  t('each has an example that fits its schema, without further members', () => {
    for (const [type, { data, example, meaning }] of Object.entries(publicEvents)) {
      deepEqual(issuesOf(closed(data), example), [], type);
      ok(meaning.endsWith('.'), type);
    }
  });

  t('each names its resource and its client, except media.ready, which follows the spec', () => {
    const own: Readonly<Record<string, string>> = {
      ...{ media: 'assetId', team: 'memberId', analytics: 'refreshId', apikey: 'apiKeyId' },
      ...{ quota: 'workspaceId', cadence: 'workspaceId', network: 'workspaceId' },
    };
    for (const [type, { data }] of Object.entries(publicEvents)) {
      const { required } = data as unknown as { readonly required: readonly string[] };
      const [family = ''] = type.split('.');
      ok(required.includes(own[family] ?? `${family}Id`), type);
      equal(required.includes('clientId'), type !== 'media.ready', type);
    }
    deepEqual(
      issuesOf(closed(publicEvents['media.ready']?.data ?? EventFilter), {
        assetId: randomUUID(),
        status: 'transcoded',
      }),
      [],
    );
  });

  t('the contract has every type with an example that fits its message', () => {
    const contract = asyncapiOf() as unknown as {
      readonly components: {
        readonly messages: Readonly<Record<string, Message>>;
        readonly schemas: Readonly<Record<string, ContractNode>>;
      };
      readonly channels: { readonly endpoint: { readonly messages: object } };
    };
    const { components, channels } = contract;
    const check = checkerOf(contract);
    const messages = Object.values(components.messages);
    deepEqual(messages.map(({ name }) => name).sort(), [...eventTypes].sort());
    deepEqual(Object.keys(channels.endpoint.messages), Object.keys(components.messages));
    for (const { name, payload, examples } of messages) {
      equal(examples.length, 1);
      const schema = payload.$ref.replace('#/components/schemas/', '');
      for (const example of examples) deepEqual(check(schema, example.payload), [], name);
    }
  });

  t('no type has a member for personal data or for a whole text', () => {
    const walk = (type: string, place: string, node: unknown): void => {
      if (typeof node !== 'object' || node === null) return;
      ok(!('personal' in node), `${type}${place} is personal`);
      ok(
        !/\/properties\/(username|displayName|avatarUrl|recipientEmail|email|content|body|url|secret|token)$/i.test(
          place,
        ),
        `${type}${place}`,
      );
      for (const [name, member] of Object.entries(node)) walk(type, `${place}/${name}`, member);
    };
    for (const [type, { data }] of Object.entries(publicEvents)) walk(type, '', JSON.parse(JSON.stringify(data)));
  });
});

suite('filters', (t) => {
  const cases: readonly (readonly [entry: string, hears: readonly string[] | 'all'])[] = [
    ['*', 'all'],
    ['post.published', ['post.published']],
    ['webhook.*', ['webhook.disabled', 'webhook.enabled', 'webhook.test']],
    ['media.variant.*', ['media.variant.ready', 'media.variant.failed']],
    ['media.*', eventTypes.filter((type) => type.startsWith('media.'))],
    ['report.*', ['report.run.completed', 'report.run.failed']],
    ['report.run.*', ['report.run.completed', 'report.run.failed']],
  ];
  const unknown = [
    ...['', 'post', 'post.', 'post*', 'pos.*', 'posts.*', 'post.publish', 'post.publish*', 'post.published.*'],
    ...['POST.*', ' post.*', '**', '*.*', '*.published', '.*', 'constructor', 'toString', '__proto__'],
  ];

  t('one type, a family, everything', () => {
    for (const [entry, hears] of cases) {
      const expected = hears === 'all' ? eventTypes : hears;
      deepEqual(
        eventTypes.filter((type) => matches([entry], type)),
        expected,
        entry,
      );
      ok(isKnownFilter(entry), entry);
      deepEqual(issuesOf(EventFilter, [entry]), [], entry);
    }
    for (const type of eventTypes) deepEqual(issuesOf(EventFilter, [type]), [], type);
    ok(matches(['client.created', 'post.*'], 'post.failed'));
    ok(!matches(['client.created', 'post.*'], 'target.failed'));
    ok(!matches([], 'post.failed'));
  });

  t('a filter that matches no type is invalid', () => {
    for (const entry of unknown) {
      ok(!isKnownFilter(entry), entry);
      deepEqual(
        eventTypes.filter((type) => matches([entry], type)),
        [],
        entry,
      );
    }
  });
});

const metadata = {
  workspaceId: randomUUID(),
  partitionKey: 'p',
  actor: { type: 'service' as const, id: 'test' },
  $correlationId: 'c',
  $causationId: 'c',
  commandId: 'c',
  occurredAt: '2026-01-01T00:00:00.000Z',
  schemaVersion: 1,
};

const eventAt = (stream: string, revision: number, { type, data }: { type: string; data: unknown }): DecodedEvent => ({
  stream,
  id: randomUUID(),
  type,
  data: data as Record<string, unknown>,
  metadata,
  revision,
  position: BigInt(revision),
  bytes: 0,
});

suite('samples', (t) => {
  const id = randomUUID();
  const request = eventAt(`webhook-${id}`, 1, { type: 'WebhookTestRequested', data: { eventType: 'webhook.test' } });

  t('of every type fit the envelope', () => {
    for (const [type, { data, example }] of Object.entries(publicEvents)) {
      const bytes = sampleBytes(type, request);
      const sample: unknown = JSON.parse(bytes.toString());
      deepEqual(issuesOf(closed(Envelope(type, data)), sample), [], type);
      ok(bytes.length < maxBytes);
      const expected = type === 'webhook.test' ? { webhookId: id, clientId: null } : example;
      deepEqual(sample, { id: envelopeIdOf(request.id, type), type, created: metadata.occurredAt, data: expected });
    }
    for (const type of ['post.unheard_of', 'constructor']) throws(() => sampleOf(type, id), /no public type/);
  });

  t('have ids of the form that real ones have, and that follow from one another as real ones do', () => {
    const { workspaceId, memberId, apiKeyId, linkId, reportId, runId, clientId, accountId, postId } = example;
    const keyed = (operation: string) => keyedIdOf(workspaceId, operation, 'example');
    const [did = ''] = /did:plc:\w+/.exec(JSON.stringify(publicEvents['target.published'])) ?? [];
    deepEqual(example, {
      ...{ workspaceId, memberId, apiKeyId, linkId, reportId },
      clientId: keyed('createClient'),
      accountId: accountIdOf(clientId, 'bluesky', did),
      inviteId: keyed('createConnectInvite'),
      postId: keyed('createPost'),
      targetId: targetIdOf(postId, accountId, 1),
      assetId: keyed('importMedia'),
      approvalId: approvalIdOf(postId, 1),
      campaignId: keyed('createCampaign'),
      runId,
      webhookId: keyed('registerWebhook'),
      refreshId: keyed('refreshAnalytics'),
      nextPostId: recycledPostIdOf(postId, 1),
    });
    for (const one of [workspaceId, memberId, apiKeyId, linkId, reportId]) equal(one[14], '7', 'made anew');
    equal(runId[14], '5', 'of its report, and of its instant or its key');
    const known = new Set<string>([...Object.values(example), id, request.id]);
    for (const type of Object.keys(publicEvents)) {
      const sample = sampleBytes(type, request).toString();
      const found = sample.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [];
      deepEqual(
        found.filter((one) => !known.has(one) && one !== envelopeIdOf(request.id, type)),
        [],
        type,
      );
    }
  });

  t('give the payload of webhook.test, which no rule renders; rules that need a stream fail without it', () => {
    deepEqual(publicTypesOf(request, 'webhook'), []);
    throws(() => render('webhook.test', request, null), /cannot be rendered/);
    const published = eventAt(`target-${id}`, 3, { type: 'TargetPublishStarted', data: { attempt: 1, takeover: 0 } });
    ok(needsStream('target', 'TargetPublishStarted'));
    throws(() => render('target.publishing', published, null), /cannot be rendered/);
  });
});

/** Carries out commands one after the other; what is refused changes nothing. `said` sees each event with what it made. */
const carryOut = <State, Command, Event extends { readonly type: string; readonly data: unknown }>(
  decider: Decider<State, Command, Event>,
  id: string,
  commands: readonly Command[],
  said: (step: {
    before: State;
    after: State;
    event: DecodedEvent;
    types: readonly string[];
    history: readonly DecodedEvent[];
  }) => void,
): void => {
  let state = decider.initial;
  const history: DecodedEvent[] = [];
  for (const command of commands) {
    let decided: readonly Event[] = [];
    try {
      decided = decider.decide(command, state);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
    for (const one of decided) {
      const before = state;
      const event = eventAt(`${decider.kind}-${id}`, history.length, one);
      history.push(event);
      const {
        revision,
        metadata: { commandId, occurredAt },
      } = event;
      const fact: Fact = { eventId: event.id, revision, commandId, occurredAt };
      state = decider.evolve(state, one, fact);
      said({ before, after: state, event, types: publicTypesOf(event, decider.kind), history });
    }
  }
};

suite('webhooks and state agree', (t) => {
  const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
  const small = fc.integer({ min: 0, max: 3 });
  const dataOf = (type: string, { event, history }: { event: DecodedEvent; history: readonly DecodedEvent[] }) =>
    envelope(type, event, subjectAt(history)).data as Readonly<Record<string, unknown>>;

  t('any commands on a target: each change of its status gives one webhook with its attempts', () => {
    const [targetId, accountId, clientId, postId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const policy = { deferDelaysMs: [30_000], maxRateLimits: 2, jitter: 0.5 };
    const there = { externalId: 'e1', permalink: null, publishedAt: at(101) };
    const schedule = (over: Partial<PlannedTarget>): TargetCommand => ({
      type: 'Schedule',
      planned: planned({ targetId, accountId, clientId, dueAt: at(10), ...over }),
      postId,
      postRevision: 3,
    });
    const native = { platform: 'facebook', scheduleMode: 'native', dueAt: at(9_000) } as const;
    const first = { attempt: 1, takeover: 0 };
    /** Handed over already: the network's own scheduler has it. */
    const handedOver: readonly TargetCommand[] = [
      schedule(native),
      { type: 'Start', now: at(0) },
      { type: 'Checkpoint', ...first, step: 'boundary', data: null, deadline: at(30) },
      { type: 'RecordHandedOver', ...first, nativeId: 'n1' },
    ];
    const starts = [[schedule({})], [schedule(native)], handedOver];
    const commands: fc.Arbitrary<TargetCommand> = fc.oneof(
      { weight: 3, arbitrary: fc.constant<TargetCommand>({ type: 'Start', now: at(900) }) },
      fc.constantFrom<TargetCommand>(
        { type: 'Cancel', reason: 'requested', postRevision: null, now: '2026-01-01T00:00:00.000Z' },
        { type: 'Requeue', now: at(300) },
        { type: 'RefuseAtClaim', failure },
        { type: 'FallBack', now: at(8_900) },
        { type: 'RecordUndone', now: at(900) },
        { type: 'RecordUndoFailed', failure },
        { type: 'RecordNativeUnknown', failure, reconcileAt: at(131) },
        { type: 'RecordNotShown', now: at(900), failure, reconcileAt: at(901) },
        {
          ...{ type: 'Settle', now: at(140), by: 'reconcile' },
          outcome: { kind: 'processing', handle: { id: 'h1' }, askAt: at(141), until: at(150) },
        },
        { type: 'Settle', now: at(140), by: 'reconcile', outcome: { kind: 'handed_over', nativeId: 'n2' } },
        { type: 'Settle', now: at(140), by: 'reconcile', outcome: { kind: 'published', ...there } },
        { type: 'RecordOverdue', now: at(2_000) },
        { type: 'ObserveAbsence', askedAt: at(300), policy: { looks: 2, gapMs: 0 } },
        { type: 'Settle', now: at(140), by: 'reconcile', outcome: { kind: 'absent', proof: true } },
        { type: 'Settle', now: at(140), by: 'admin', outcome: { kind: 'failed', failure } },
        { type: 'Settle', now: at(140), by: 'admin', outcome: { kind: 'published', ...there, externalId: null } },
      ),
      fc.uuid().map((commandId): TargetCommand => ({ type: 'Retry', commandId, now: at(100) })),
      fc
        .tuple(small, fc.boolean())
        .map(([n, held]): TargetCommand => ({ type: 'Revise', postRevision: 4 + n, time: null, now: at(140), held })),
      small.map((n): TargetCommand => ({ type: 'Release', postRevision: 5 + n, now: at(141) })),
      fc.tuple(fc.uuid(), small).map(
        ([commandId, n]): TargetCommand => ({
          type: 'Reschedule',
          now: '2026-01-01T00:00:00.000Z',
          commandId,
          dueAt: at(20 + n),
          scheduledLocal: null,
          jitterSeconds: 0,
        }),
      ),
      fc.tuple(small, small, fc.integer({ min: 0, max: 9 })).map(([attempt, takeover, which]): TargetCommand => {
        const claim = { attempt: Math.max(1, attempt - 1), takeover: Math.max(0, takeover - 2) };
        const all: readonly TargetCommand[] = [
          { type: 'TakeOver', ...claim },
          { type: 'Checkpoint', ...claim, step: 'boundary', data: null, deadline: at(130) },
          { type: 'RecordPublished', ...claim, ...there },
          { type: 'RecordFailed', ...claim, failure },
          { type: 'RecordRateLimited', ...claim, retryAt: at(200), failure, policy },
          { type: 'RecordDeferred', ...claim, now: at(60), failure, policy },
          { type: 'RecordUnknown', ...claim, failure, reconcileAt: at(131) },
          { type: 'RecordAccepted', ...claim, handle: { id: 'h1' }, askAt: at(132), until: at(140) },
          { type: 'RecordHandedOver', ...claim, nativeId: 'n1' },
          { type: 'RecordOutsideWindow', ...claim, now: at(900), failure },
        ];
        return all[which] ?? { type: 'TakeOver', ...claim };
      }),
    );
    const tellsOf: Readonly<Record<TargetState['status'], readonly string[]>> = {
      none: [],
      awaiting_approval: [...['target.held', 'target.revised', 'target.rescheduled'], 'target.schedule_mode_changed'],
      pending: [
        ...[
          'target.scheduled',
          'target.rescheduled',
          'target.revised',
          'target.deferred',
          'target.requeued',
          'target.released',
        ],
        ...['target.schedule_mode_changed', 'target.overdue'],
      ],
      // A cancel during the call of a hand-over waits for the answer of its network, and fails where that published it.
      publishing: ['target.publishing', 'target.overdue', 'target.undo_requested', 'target.undo_failed'],
      processing: ['target.processing'],
      rate_limited: ['target.rate_limited', 'target.overdue'],
      outcome_unknown: ['target.outcome_unknown', 'target.undo_requested', 'target.undo_failed'],
      handed_to_platform: [
        ...['target.handed_to_platform', 'target.undo_requested', 'target.undo_failed', 'target.rescheduled'],
        // A network that did not publish at the time it was given.
        'target.overdue',
      ],
      published: ['target.published'],
      // Revised first, then requeued, in one append.
      failed: ['target.failed', 'target.revised'],
      canceled: ['target.canceled'],
    };
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(commands, { minLength: 10, maxLength: 40 }), fc.constantFrom(...starts), (all, start) => {
        let isOut = false;
        carryOut(target, targetId, [...start, ...all], ({ before, after, event, types, history }) => {
          if (after.status === 'none') throw new Error('it was scheduled');
          const [type, ...more] = types;
          deepEqual(more, []);
          if (isOut) equal(type, 'target.published', 'an undo fails before a hand-over has its answer');
          isOut = type === 'target.undo_failed' && after.status !== 'handed_to_platform';
          if (type === undefined) {
            equal(after.status, before.status, `${event.type} changed it unheard`);
            return;
          }
          seen.add(type);
          ok(tellsOf[after.status].includes(type), `${event.type}: ${after.status} told as ${type}`);
          const data = dataOf(type, { event, history });
          deepEqual([data.targetId, data.postId, data.accountId], [targetId, postId, accountId]);
          if (data.attempts !== undefined) equal(data.attempts, after.common.attempts);
          if (data.scheduledAt !== undefined) equal(data.scheduledAt, after.common.dueAt);
          if (data.retryAt !== undefined) equal('retryAt' in after ? after.retryAt : null, data.retryAt, type);
          if (data.previousScheduledAt !== undefined) {
            equal(data.previousScheduledAt, before.status === 'none' ? null : before.common.dueAt);
          }
        });
        ok(!isOut, 'an undo fails before a hand-over has its answer');
      }),
      { seed: seeded('target payloads').seed, numRuns: 3_000 },
    );
    const after = [
      'target.first_comment_posted',
      'target.first_comment_failed',
      'target.after_step_failed',
      'target.removed',
    ];
    deepEqual(
      typesOfKind('target').filter((type) => !seen.has(type) && !after.includes(type)),
      [],
      'reached by no command of the decider',
    );
  });

  t('any outcomes of a post’s targets: the counts are those of the post’s fold', () => {
    const [postId, clientId] = [randomUUID(), randomUUID()];
    const names = [randomUUID(), randomUUID(), randomUUID()];
    const createdBy = { type: 'member', id: 'm' };
    const targets = names.map((targetId) => planned({ targetId, accountId: randomUUID(), clientId }));
    const written = { clientId, createdBy, body: postBody() };
    const schedule: PostCommand = { type: 'Schedule', commandId: 'c', ...written, plan: { number: 1, targets } };
    const revise = { type: 'Revise', body: postBody(), changed: [], times: null } as const;
    const revised: fc.Arbitrary<PostCommand> = fc
      .tuple(fc.uuid(), fc.subarray(names, { minLength: 1 }))
      .map(([commandId, targetIds]) => ({ ...revise, commandId, targetIds }));
    const outcomes: fc.Arbitrary<PostCommand> = fc
      .tuple(fc.constantFrom(...names), fc.integer({ min: 0, max: 12 }), small)
      .map(([targetId, targetRevision, which]): PostCommand => {
        const outcome = (['published', 'failed', 'canceled'] as const)[which];
        if (outcome === undefined) return { type: 'ReopenTarget', targetId, targetRevision };
        return {
          type: 'RecordTargetOutcome',
          targetId,
          targetRevision,
          outcome,
          publishedAt: outcome === 'published' ? at(1) : null,
        };
      });
    const campaign: fc.Arbitrary<PostCommand> = fc.constantFrom(
      { type: 'JoinCampaign', campaignId: clientId },
      { type: 'LeaveCampaign', campaignId: clientId },
    );
    const updates = fc.oneof({ weight: 6, arbitrary: outcomes }, revised, campaign);
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(updates, { maxLength: 40 }), (all) => {
        carryOut(post, postId, [schedule, ...all], ({ after, event, types, history }) => {
          if (after.status !== 'live') throw new Error('it was scheduled');
          const having = (outcome: TargetOutcome) => names.filter((name) => after.targets[name]?.outcome === outcome);
          for (const type of types) {
            seen.add(type);
            const data = dataOf(type, { event, history });
            if (data.counts === undefined) continue;
            equal(type, `post.${statusOf(after)}`);
            deepEqual(data.counts, {
              total: names.length,
              published: having('published').length,
              failed: having('failed').length,
              canceled: having('canceled').length,
            });
            if (data.failedTargetIds !== undefined) deepEqual(data.failedTargetIds, having('failed'));
          }
        });
      }),
      { seed: seeded('post payloads').seed, numRuns: 1_000 },
    );
    const ofDrafts = ['post.updated', 'post.discarded'];
    const ofApprovals = ['post.submitted', 'post.released', 'post.returned_to_draft'];
    const ofRecycling = ['post.recycled', 'post.recycle_changed', 'post.recycle_failed'];
    const unseen = [...ofDrafts, ...ofApprovals, ...ofRecycling];
    deepEqual([...seen].sort(), given.filter((type) => type.startsWith('post.') && !unseen.includes(type)).sort());
  });

  t('a fold never changes an earlier subject in place', () => {
    const { initial, evolve } = subjectOf('post');
    const [postId, clientId, targetId] = [randomUUID(), randomUUID(), randomUUID()];
    const body = postBody();
    const createdBy = { type: 'member', id: 'm' };
    const targets = [planned({ targetId, accountId: randomUUID(), clientId })];
    const plan = { number: 1, targets };
    const scheduled = eventAt(`post-${postId}`, 0, {
      type: 'PostScheduled',
      data: { clientId, createdBy, body, plan },
    });
    const settledAs = (outcome: TargetOutcome) =>
      eventAt(`post-${postId}`, 1, {
        type: 'PostTargetSettled',
        data: { targetId, targetRevision: 5, outcome, publishedAt: null },
      });
    const failed = eventAt(`post-${postId}`, 2, { type: 'PostFailed', data: {} });
    const first = evolve(initial, scheduled);
    const before = structuredClone(first);
    const one = evolve(first, settledAs('failed'));
    const other = evolve(first, settledAs('canceled'));
    deepEqual(first, before);
    const counts = (subject: object | null) =>
      (render('post.failed', failed, subject) as { readonly counts: object }).counts;
    deepEqual(counts(one), { total: 1, published: 0, failed: 1, canceled: 0 });
    deepEqual(counts(other), { total: 1, published: 0, failed: 0, canceled: 1 });
  });
});

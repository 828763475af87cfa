import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';
import { account } from '#domain/account.ts';
import { apikey } from '#domain/apikey.ts';
import { approval } from '#domain/approval.ts';
import { campaign } from '#domain/campaign.ts';
import { client } from '#domain/client.ts';
import { clientname } from '#domain/clientname.ts';
import { externalref } from '#domain/externalref.ts';
import { grant } from '#domain/grant.ts';
import { accountmetrics, targetmetrics } from '#domain/insights.ts';
import { invite } from '#domain/invite.ts';
import { media } from '#domain/media.ts';
import { person } from '#domain/person.ts';
import { personemail } from '#domain/personemail.ts';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { quota } from '#domain/quota.ts';
import { refresh } from '#domain/refresh.ts';
import { report } from '#domain/report.ts';
import { request } from '#domain/request.ts';
import { session } from '#domain/session.ts';
import { targetcalls } from '#domain/targetcalls.ts';
import { teaminvite } from '#domain/teaminvite.ts';
import { webhook } from '#domain/webhook.ts';
import { workspace } from '#domain/workspace.ts';
import { personalMembers } from '#runtime/eventing/codec.ts';
import { EventMetadata, Instant, LocalDateTime, Uuid } from '#schemas/common.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { issuesOf, validatorOf } from '#schemas/validator.ts';
import { suite } from '#test/support/suite.ts';

const events = Object.entries(eventCatalogue).flatMap(([kind, types]) =>
  Object.entries(types).map(([type, definition]) => ({ kind, type, ...definition })),
);

/** Every schema inside a schema, with the place it stands at. */
const inside = (schema: unknown, place = ''): readonly (readonly [string, Record<string, unknown>])[] => {
  if (typeof schema !== 'object' || schema === null) return [];
  const node = schema as Record<string, unknown>;
  return [[place, node], ...Object.entries(node).flatMap(([name, one]) => inside(one, `${place}/${name}`))];
};

suite('event catalogue', (t) => {
  t('compiles every event in strict mode', () => {
    for (const { kind, type, schema } of events) ok(validatorOf(schema), `${kind} ${type}`);
    ok(validatorOf(EventMetadata));
  });

  t('has schemas that are schemas, which the validator does not look at', () => {
    const ajv = new Ajv2020({ allErrors: true });
    for (const { kind, type, schema } of [...events, { kind: 'all', type: 'metadata', schema: EventMetadata }])
      ok(ajv.validateSchema(schema), `${kind} ${type}: ${ajv.errorsText()}`);
    equal(ajv.validateSchema({ type: 'object', required: 'id' }), false);
  });

  t('has an upcast from every former version', () => {
    for (const { type, version, upcasts } of events) equal(upcasts.length, version - 1, type);
  });

  t('names each event once, in the past tense', () => {
    equal(new Set(events.map(({ type }) => type)).size, events.length);
    for (const { type } of events)
      match(
        type,
        /^[A-Z][a-zA-Z]+(ed|Given|Set|Ready|Started|Unknown|Overdue|Over|Held|Withdrawn|Proven|ForApproval|ToDraft|ToPlatform|ByPlatform|OnPlatform)$/,
      );
  });

  t('has a decider for every stream kind', () => {
    const deciders = [
      workspace,
      apikey,
      grant,
      client,
      clientname,
      externalref,
      invite,
      account,
      media,
      post,
      target,
      approval,
      campaign,
      quota,
      targetcalls,
      targetmetrics,
      accountmetrics,
      webhook,
      refresh,
      report,
      request,
      person,
      personemail,
      session,
      teaminvite,
    ];
    deepEqual(deciders.map(({ kind }) => kind).sort(), Object.keys(eventCatalogue).sort());
  });

  t('uses no schema keyword that validates or merges badly', () => {
    for (const { type, schema } of events) {
      for (const [place, node] of inside(schema)) {
        for (const keyword of ['allOf', 'not', 'default', 'additionalProperties'] as const) {
          ok(!(keyword in node && typeof node[keyword] !== 'object'), `${type}${place} ${keyword}`);
        }
      }
    }
  });
});

suite('personal members', (t) => {
  const marked = events.flatMap(({ type, schema }) =>
    inside(schema).flatMap(([place, node]) => (node.personal === undefined ? [] : [{ type, schema, place, node }])),
  );

  t('are exactly those of the list, in every event', () => {
    deepEqual(marked.map(({ type, place }) => `${type}${place.replace('/properties', '')}`).sort(), [
      'AccountConnected/displayName',
      'AccountConnected/username',
      'AccountProfileChanged/displayName',
      'AccountProfileChanged/username',
      'AccountReauthorized/displayName',
      'AccountReauthorized/username',
      'ApprovalGuestNamed/name',
      'ConnectInviteCreated/recipientEmail',
      'PersonRegistered/email',
      'PersonRegistered/name',
      'TargetNetworkCallObserved/answer',
      'TeamInviteCreated/email',
      'TeamInviteCreated/name',
    ]);
    for (const { type, schema } of events) {
      for (const [place, node] of inside(schema)) {
        if (!/\/properties\/[^/]*(email|username|displayName|phone|fullName)[^/]*$/i.test(place)) continue;
        equal(node.personal, true, `${type}${place}`);
      }
    }
  });

  t('stand at the top level of an event, beside the client, person or invitation they belong to', () => {
    for (const { type, schema, place } of marked) {
      match(place, /^\/properties\/[^/]+$/, type);
      ok(personalMembers(schema).includes(place.replace('/properties/', '')), type);
      const { properties, required } = schema as unknown as { properties: object; required: string[] };
      const subject = ['clientId', 'personId', 'inviteId'].find((id) => id in properties);
      ok(subject !== undefined && required.includes(subject), type);
    }
  });

  t('may be null, because they read as null once the key is destroyed', () => {
    for (const { type, node } of marked) {
      const schema = node as unknown as TSchema;
      deepEqual(issuesOf(schema, null), [], type);
      deepEqual(issuesOf(schema, 'Zoë'), [], type);
      notEqual(issuesOf(schema, { $sealed: 'x' }).length, 0, type);
    }
  });
});

suite('validator', (t) => {
  t('reports path and message, and does not change the value', () => {
    const value = { name: '', extra: 1 };
    const before = structuredClone(value);
    const schema = eventCatalogue.workspace?.WorkspaceProfileChanged?.schema;
    ok(schema);
    const issues = issuesOf(schema, value);
    deepEqual(issues.map(({ path }) => path).sort(), ['/name', '/timezone']);
    deepEqual(value, before);
  });

  t('names the values of an enumeration, never the given value', () => {
    const schema = eventCatalogue.workspace?.MemberRoleChanged?.schema;
    ok(schema);
    const [issue] = issuesOf(schema, { memberId: randomUUID(), role: 'canary-4711' });
    equal(issue?.path, '/role');
    match(issue?.message ?? '', /: owner, manager, creator, viewer$/);
    ok(!issue?.message.includes('canary'));
  });

  t('ignores inherited members', () => {
    const schema = eventCatalogue.workspace?.MemberRemoved?.schema;
    ok(schema);
    const inherited: object = Object.create({ memberId: randomUUID() });
    equal(issuesOf(schema, inherited).length, 1);
    equal(issuesOf(schema, JSON.parse(`{"__proto__":{"memberId":"${randomUUID()}"}}`)).length, 1);
  });

  t('checks our formats: ids, instants, wall-clock times', () => {
    const fits = (schema: TSchema, value: unknown) => issuesOf(schema, value).length === 0;
    const id = randomUUID();
    ok(fits(Uuid, id));
    for (const wrong of [id.toUpperCase(), `{${id}}`, `urn:uuid:${id}`, `${id}\n`, '', 1])
      ok(!fits(Uuid, wrong), `${wrong}`);
    for (const right of ['2026-01-31T08:00:00.000Z', '2028-02-29T23:59:59.999Z', '2026-12-28T00:00:00.000Z'])
      ok(fits(Instant, right), right);
    for (const wrong of [
      '2026-01-31T08:00:00Z',
      '2026-01-31T08:00:00.000+00:00',
      ...['2026-02-29', '2026-02-30', '2026-04-31', '2026-00-10', '2026-13-10', '2026-01-00'].map(
        (day) => `${day}T08:00:00.000Z`,
      ),
      '2026-01-31T24:01:00.000Z',
      '2026-01-31T08:00:00.000Z\n',
      '2026-01-31',
    ]) {
      ok(!fits(Instant, wrong), wrong);
    }
    ok(fits(LocalDateTime, '2026-01-31T08:00'));
    for (const wrong of ['2026-01-31T08:00Z', '2026-01-31 08:00', '2026-01-31T08:00:00'])
      ok(!fits(LocalDateTime, wrong));
  });
});

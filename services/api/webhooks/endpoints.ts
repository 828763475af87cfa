import { liveSecrets, type WebhookCommand, type WebhookState, webhook } from '#domain/webhook.ts';
import { rowOf } from '#projections/engine/model.ts';
import type { NewestFirst } from '#projections/engine/rows.ts';
import {
  getWebhook as queryWebhook,
  listWebhooks as rowsOf,
  type WebhookRow,
  webhooks,
} from '#projections/models/webhook-endpoints.ts';
import { noteRotation } from '#projections/webhooks/rotations.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { webhookSecret } from '#runtime/identity/webhook-secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { AsOfQuery, IdParams } from '#schemas/http/common.ts';
import { Webhook, WebhookCreate, WebhookQuery, WebhookSecretRotation, WebhookUpdate } from '#schemas/http/webhook.ts';
import { listPage, newestFirst } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { ownStream, ownStreamToDelete, readRow, writtenRow } from '../call/rows.ts';
import { keyOf, pageThen } from '../past/lists.ts';
import { inPast } from '../past/past.ts';
import { requireEndpoint } from './checks.ts';
import { exampleSecret, exampleWebhook, webhooksTag } from './examples.ts';
import { requireRoom } from './room.ts';

/** An endpoint as its owner sees it, and the one that a path names. */

const hintLength = 4;

const shownSecrets = (row: WebhookRow, now: string) =>
  liveSecrets(row.secrets, now).map(({ createdAt, expiresAt }) => ({ createdAt, expiresAt }));

/** @param now decides which secrets sign. */
const renderWebhook = (row: WebhookRow, secrets: Secrets, now: string) => {
  const [newest] = row.secrets;
  return {
    id: row.id,
    object: 'webhook' as const,
    url: row.url,
    events: row.events,
    active: row.active,
    description: row.description,
    clientIds: row.client_ids ?? null,
    disabledReason: row.disabled_reason,
    secretHint: newest === undefined ? null : webhookSecret(secrets, row.id, newest).slice(-hintLength),
    secrets: shownSecrets(row, now),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    revision: row.revision,
  };
};

/** The endpoint as it was, without the last characters of its secret. */
const renderThen = (row: WebhookRow, secrets: Secrets, at: string) => ({
  ...renderWebhook({ ...row, secrets: [] }, secrets, at),
  secrets: shownSecrets(row, at),
});

const answerThen = (call: Call<{ readonly id: string }>, asOf: string) =>
  inPast(call, asOf, async (past) => {
    const row = await past.row(webhooks, call.params.id);
    if (row === null || row.deleted_at !== null) throw notFound('webhook');
    return { data: renderThen(row, call.deps.secrets, past.moment.at) };
  });

const listThen = (call: Call<unknown, { readonly limit: number; readonly cursor?: string }>, asOf: string) =>
  inPast(call, asOf, (past) =>
    listPage('listWebhooks', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        pageThen(knex, past, { model: webhooks, births: ['WebhookRegistered'], clientId: null }, page, async (row) =>
          row.deleted_at === null ? renderThen(row, call.deps.secrets, past.moment.at) : null,
        ),
      keyOf,
      show: ({ shown }) => shown,
    }),
  );

/** The row that these events make, from the first on. */
const webhookOf = (events: readonly DecodedEvent[]): WebhookRow => writtenRow(rowOf(webhooks, events));

/** How long a repeat of the call that made a secret shows it, milliseconds. */
const shownMs = 24 * 3_600_000;

/**
 * The answer of the call that made the newest secret of these events. It shows the secret for a day, and only while the
 * secret still signs, which later events decide.
 */
const withSecret = async (
  { deps, now }: Pick<Call, 'deps' | 'now'>,
  row: WebhookRow,
  later: () => Promise<WebhookState>,
) => {
  const [made] = row.secrets;
  // The endpoint as of the event that made the secret, so that a repeat gives the answer of the first call.
  const shown = renderWebhook(row, deps.secrets, row.updated_at);
  if (made === undefined || Date.parse(made.createdAt) + shownMs <= Date.parse(now)) return { ...shown, secret: null };
  const state = await later();
  const signs =
    state.status === 'live' && liveSecrets(state.secrets, now).some(({ generation }) => generation === made.generation);
  return { ...shown, secret: signs ? webhookSecret(deps.secrets, row.id, made) : null };
};

/** The live endpoint of the path, as the read model has it. @throws Refusal 404, also for a deleted endpoint */
export const readWebhook = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'workspaceId' | 'params' | 'behind'>,
): Promise<WebhookRow> => {
  const { deps, workspaceId } = call;
  const row = await readRow(call, 'webhook', ['webhooks'], (id) => queryWebhook(deps.knex, workspaceId, id));
  if (row.deleted_at !== null) throw notFound('webhook');
  return row;
};

/** Guard: the endpoint is the caller's and live (else 404), and at the revision If-Match names. */
export const ownLive =
  (call: Pick<Call, 'workspaceId' | 'guard'>) =>
  (loaded: Loaded<WebhookState>): void => {
    if (loaded.state.status === 'deleted') throw notFound('webhook');
    ownStream(call, 'webhook')(loaded);
  };

export const registerWebhook = operation({
  id: 'registerWebhook',
  method: 'POST',
  path: '/webhooks',
  tag: webhooksTag,
  summary: 'Register a webhook endpoint',
  description:
    'The endpoint gets events from now on. Only this answer shows `secret`; a repeat with the same key shows it again for 24 hours, while it still signs. A workspace has at most 50 endpoints, unless the installation sets another limit.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: WebhookCreate,
  answer: Webhook,
  codes: ['url_not_allowed', 'unknown_event_type', 'too_many_webhooks'],
  example: {
    body: { url: exampleWebhook.url, events: exampleWebhook.events, description: exampleWebhook.description },
    data: { ...exampleWebhook, secret: exampleSecret },
  },
  handle: async (call) => {
    const { deps } = call;
    const { url, events, description, clientIds = null } = call.body;
    const created = await call.stream(webhook).create({
      command: async (): Promise<WebhookCommand> => {
        await requireEndpoint(call, { events, url, clientIds });
        return { type: 'Register', url, events, description, clientIds, keyVersion: deps.secrets.current };
      },
      reserve: (id) => requireRoom(call, id),
    });
    const row = webhookOf(created.events);
    const later = async () => (created.replayed ? (await deps.store.load(webhook, row.id)).state : created.state);
    return { data: await withSecret(call, row, later), revision: row.revision, replayed: created.replayed };
  },
});

export const getWebhook = operation({
  id: 'getWebhook',
  method: 'GET',
  path: '/webhooks/{id}',
  tag: webhooksTag,
  summary: 'Get a webhook endpoint',
  scope: 'webhooks.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  query: AsOfQuery,
  answer: Webhook,
  codes: ['history_too_long'],
  example: { data: exampleWebhook },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return answerThen(call, call.query.asOf);
    const row = await readWebhook(call);
    return { data: renderWebhook(row, call.deps.secrets, call.now), revision: row.revision };
  },
});

export const listWebhooks = operation({
  id: 'listWebhooks',
  method: 'GET',
  path: '/webhooks',
  tag: webhooksTag,
  summary: 'List webhook endpoints, newest first',
  scope: 'webhooks.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  query: WebhookQuery,
  answer: Webhook,
  list: true,
  codes: ['history_too_long'],
  example: { data: exampleWebhook },
  handle: async (call) => {
    if (call.query.asOf !== undefined) return listThen(call, call.query.asOf);
    await call.behind(['webhooks']);
    const { deps, workspaceId, now } = call;
    return listPage('listWebhooks', call, {
      rows: (page: { readonly after: NewestFirst | null; readonly limit: number }, knex) =>
        rowsOf(knex, workspaceId, page),
      keyOf: newestFirst,
      show: (row) => renderWebhook(row, deps.secrets, now),
    });
  },
});

export const updateWebhook = operation({
  id: 'updateWebhook',
  method: 'PATCH',
  path: '/webhooks/{id}',
  tag: webhooksTag,
  summary: 'Change a webhook endpoint, turn it off or on',
  description:
    'Only the members that are sent change. When you turn on an endpoint that the service disabled, it gets the events it missed, at most 72 hours back. When you turn on an endpoint that you turned off, it does not: use a replay.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  merge: true,
  params: IdParams,
  body: WebhookUpdate,
  answer: Webhook,
  codes: ['url_not_allowed', 'unknown_event_type', 'stream_full'],
  example: { body: { active: false }, data: { ...exampleWebhook, active: false, disabledReason: 'requested' } },
  handle: async (call) => {
    const { deps, body } = call;
    // Turning an endpoint off is never refused: an endpoint whose stream is full must still come to rest.
    const { active, ...others } = body;
    const optional = active !== false || Object.keys(others).length > 0;
    const { events } = await call.stream(webhook).act({
      guard: ownLive(call),
      accept: () => requireEndpoint(call, body),
      command: () => ({ type: 'Update', changes: body }),
      optional,
    });
    const row = webhookOf(events);
    return { data: renderWebhook(row, deps.secrets, call.now), revision: row.revision };
  },
});

export const deleteWebhook = operation({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/webhooks/{id}',
  tag: webhooksTag,
  summary: 'Delete a webhook endpoint and its deliveries',
  description:
    'The endpoint gets no more deliveries, and its secrets stop signing. Every other operation then answers 404; deleting it again answers the same.',
  scope: 'webhooks.delete',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Webhook,
  codes: [],
  example: { data: { ...exampleWebhook, active: false, secretHint: null, secrets: [], revision: 1 } },
  handle: async (call) => {
    const { events } = await call.stream(webhook).act({
      guard: ownStreamToDelete(call, 'webhook', ({ status }) => status === 'deleted'),
      command: () => ({ type: 'Delete' }),
    });
    const row = webhookOf(events);
    return { data: renderWebhook(row, call.deps.secrets, call.now), revision: row.revision };
  },
});

/** The overlap begins when the rotation is stored: a repeat that comes late does not cut the former secret short. */
export const rotateWebhookSecret = operation({
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: '/webhooks/{id}/rotate-secret',
  tag: webhooksTag,
  summary: 'Give a webhook endpoint a new signing secret',
  description:
    'The former secret goes on signing beside the new one for 24 hours; at most five secrets sign at once. Only this answer shows `secret`; a repeat with the same key shows it again for 24 hours, while it still signs.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: WebhookSecretRotation,
  answer: Webhook,
  codes: ['too_many_secrets'],
  example: { body: {}, data: { ...exampleWebhook, secret: exampleSecret, revision: 1 } },
  handle: async (call) => {
    const { deps, params } = call;
    const { state, events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      command: (_decided, { commandId, now }) => ({
        type: 'RotateSecret',
        commandId,
        now,
        keyVersion: deps.secrets.current,
      }),
    });
    const row = webhookOf(events);
    // Before the answer, so that whatever is claimed after it carries both secrets. If we die before this, nobody has the
    // new secret yet: the dispatcher folds the rotation, and a repeat notes it again.
    faultPoint('webhook:before-rotation');
    await noteRotation(deps.pool, { endpointId: row.id, revision: row.revision, secrets: row.secrets });
    const later = async () => (replayed ? (await deps.store.load(webhook, params.id)).state : state);
    return { data: await withSecret(call, row, later), revision: row.revision, replayed };
  },
});

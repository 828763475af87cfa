import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import { webhook } from '#domain/webhook.ts';
import {
  type DeliveryFilters,
  type DeliveryKey,
  type DeliveryRow,
  getDelivery,
  listDeliveries,
} from '#projections/webhooks/queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { IdParams } from '#schemas/http/common.ts';
import { DeliveryParams, DeliveryQuery, WebhookDelivery, WebhookTestSend } from '#schemas/http/webhook.ts';
import { topics } from '#schemas/topics.ts';
import { listPage } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { lastOf } from '../call/rows.ts';
import { filtersOf } from '../posts/body.ts';
import { requireEventType, requireTypeFilter } from './checks.ts';
import { findDispatched, readDispatched } from './dispatched.ts';
import { ownLive, readWebhook } from './endpoints.ts';
import { exampleDelivery, examplePending, webhooksTag } from './examples.ts';

/**
 * Deliveries of one endpoint: those that the dispatcher has minted, and those that a caller requested and that are not
 * minted yet.
 */

interface DeliveryCall extends Pick<Call, 'deps' | 'workspaceId' | 'behind'> {
  readonly params: { readonly id: string; readonly deliveryId: string };
}

/** @param active whether its endpoint is on. A delivery that waits for its endpoint has no next attempt yet. */
const renderDelivery = (row: DeliveryRow, active: boolean) => ({
  id: row.id,
  object: 'webhook_delivery' as const,
  webhookId: row.endpoint_id,
  eventId: row.message_id,
  eventType: row.type,
  status: row.status,
  attempts: row.attempts.map(({ number, at, trigger, status, error, durationMs, responseBody }) => ({
    number,
    at,
    trigger,
    status,
    error,
    durationMs,
    responseBody,
  })),
  nextAttemptAt: row.status === 'pending' && (active || row.forced) ? row.next_at : null,
  deliveredAt: row.status === 'delivered' ? row.delivered_at : null,
  replayId: row.replay_id,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/**
 * The delivery of a test. Its id follows from its event alone, so that the api and the dispatcher give it the same id.
 */
const testDelivery = (webhookId: string, event: DecodedEvent) => {
  const eventType = String(event.data.eventType);
  const eventId = envelopeIdOf(event.id, eventType);
  const at = event.metadata.occurredAt;
  return {
    id: deliveryIdOf(eventId, webhookId),
    object: 'webhook_delivery' as const,
    webhookId,
    eventId,
    eventType,
    status: 'pending' as const,
    attempts: [],
    nextAttemptAt: at,
    deliveredAt: null,
    replayId: null,
    createdAt: at,
    updatedAt: at,
  };
};

/**
 * A delivery after a resend: due now. Only earlier attempts are shown, so that a repeat of the call answers the same.
 */
const resentDelivery = (row: DeliveryRow, at: string) => ({
  ...renderDelivery(row, true),
  status: 'pending' as const,
  attempts: renderDelivery(row, true).attempts.filter((one) => Date.parse(one.at) + one.durationMs <= Date.parse(at)),
  nextAttemptAt: at,
  deliveredAt: null,
  updatedAt: at,
});

const sought = ({ deps, params, workspaceId }: Pick<DeliveryCall, 'deps' | 'params' | 'workspaceId'>) => ({
  noun: 'webhook delivery',
  find: () => getDelivery(deps.knex, { workspaceId, webhookId: params.id }, params.deliveryId),
  asks: (event: DecodedEvent) =>
    event.type === 'WebhookTestRequested' && testDelivery(params.id, event).id === params.deliveryId,
});

/** The delivery of the path, possibly an older state of it: its event never changes. */
const findDelivery = (call: Pick<DeliveryCall, 'deps' | 'params' | 'workspaceId'>): Promise<DeliveryRow> =>
  findDispatched(call, sought(call));

/** The delivery of the path, not older than the caller's own writes. */
const readDelivery = (call: DeliveryCall): Promise<DeliveryRow> => readDispatched(call, sought(call));

export const listWebhookDeliveries = operation({
  id: 'listWebhookDeliveries',
  method: 'GET',
  path: '/webhooks/{id}/deliveries',
  tag: webhooksTag,
  summary: 'List the deliveries of an endpoint, newest first',
  description: 'Each delivery has its attempts so far. Deliveries are kept for 30 days.',
  scope: 'webhooks.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  query: DeliveryQuery,
  answer: WebhookDelivery,
  list: true,
  codes: [],
  example: { data: exampleDelivery },
  handle: async (call) => {
    const { deps, workspaceId, principal, query } = call;
    requireTypeFilter(query.eventType);
    // Any write of the caller may have made a delivery.
    await call.behind(topics, 'dispatcher');
    const { active, id: webhookId } = await readWebhook(call);
    const { limit: _limit, cursor: _cursor, status: statuses, ...more } = query;
    const filters: DeliveryFilters = filtersOf({ ...more, statuses });
    // A cursor is valid for one endpoint.
    const bound = { ...query, webhookId };
    return listPage(
      'listWebhookDeliveries',
      { deps, workspaceId, principal, query: bound },
      {
        rows: (page: { readonly after: DeliveryKey | null; readonly limit: number }, knex) =>
          listDeliveries(knex, { workspaceId, webhookId }, filters, page),
        keyOf: (row) => ({ sortKey: row.sort_key, id: row.id }),
        show: (row) => renderDelivery(row, active),
      },
    );
  },
});

export const getWebhookDelivery = operation({
  id: 'getWebhookDelivery',
  method: 'GET',
  path: '/webhooks/{id}/deliveries/{deliveryId}',
  tag: webhooksTag,
  summary: 'Get a delivery with its attempts',
  scope: 'webhooks.read',
  limited: 'refused',
  idempotent: 'none',
  cost: 1,
  params: DeliveryParams,
  answer: WebhookDelivery,
  codes: [],
  example: { data: exampleDelivery },
  handle: async (call) => {
    const { active } = await readWebhook(call);
    return { data: renderDelivery(await readDelivery(call), active) };
  },
});

export const resendWebhookDelivery = operation({
  id: 'resendWebhookDelivery',
  method: 'POST',
  path: '/webhooks/{id}/deliveries/{deliveryId}/resend',
  tag: webhooksTag,
  summary: 'Send a delivery again',
  description:
    'The service sends the delivery again under the same event id, whatever its status is and also while the endpoint is off. It is due now, and its schedule of retries starts again. The count of attempts goes on.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: DeliveryParams,
  answer: WebhookDelivery,
  codes: ['stream_full'],
  example: { data: examplePending },
  handle: async (call) => {
    const { deliveryId } = call.params;
    let found: DeliveryRow | undefined;
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        found = await findDelivery(call);
        return { eventTime: found.event_time };
      },
      command: ({ eventTime }, { commandId }) => ({ type: 'RequestResend', commandId, deliveryId, eventTime }),
    });
    return { data: resentDelivery(found ?? (await findDelivery(call)), lastOf(events).metadata.occurredAt), replayed };
  },
});

export const testWebhook = operation({
  id: 'testWebhook',
  method: 'POST',
  path: '/webhooks/{id}/test',
  tag: webhooksTag,
  summary: 'Send a signed test delivery',
  description:
    'The service sends the example data of the type once, whether or not the endpoint subscribes to it and also while the endpoint is off. The answer is the queued delivery; GET it to see its outcome.',
  scope: 'webhooks.manage',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  bodyOptional: true,
  params: IdParams,
  body: WebhookTestSend,
  answer: WebhookDelivery,
  codes: ['unknown_event_type', 'stream_full'],
  example: { body: { eventType: 'webhook.test' }, data: examplePending },
  handle: async (call) => {
    const { events, replayed } = await call.stream(webhook).act({
      guard: ownLive(call),
      optional: true,
      accept: async () => {
        requireEventType(call.body.eventType, '/eventType');
        return { eventType: call.body.eventType };
      },
      command: ({ eventType }, { commandId }) => ({ type: 'RequestTest', commandId, eventType }),
    });
    return { data: testDelivery(call.params.id, lastOf(events)), replayed };
  },
});

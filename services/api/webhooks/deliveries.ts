import { deliveryIdOf, envelopeIdOf } from '#domain/ids.ts';
import { type DeliveryRow, getDelivery } from '#projections/webhooks/queries.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Call } from '../operation.ts';
import { findDispatched, readDispatched } from './dispatched.ts';

/**
 * Deliveries of one endpoint: those that the dispatcher has minted, and those that a caller requested and that are not
 * minted yet.
 */

interface DeliveryCall extends Pick<Call, 'deps' | 'workspaceId' | 'behind'> {
  readonly params: { readonly id: string; readonly deliveryId: string };
}

/** @param active whether its endpoint is on. A delivery that waits for its endpoint has no next attempt yet. */
export const renderDelivery = (row: DeliveryRow, active: boolean) => ({
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
export const testDelivery = (webhookId: string, event: DecodedEvent) => {
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
export const resentDelivery = (row: DeliveryRow, at: string) => ({
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
export const findDelivery = (call: Pick<DeliveryCall, 'deps' | 'params' | 'workspaceId'>): Promise<DeliveryRow> =>
  findDispatched(call, sought(call));

/** The delivery of the path, not older than the caller's own writes. */
export const readDelivery = (call: DeliveryCall): Promise<DeliveryRow> => readDispatched(call, sought(call));

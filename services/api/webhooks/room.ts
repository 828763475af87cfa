import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { webhook } from '#domain/webhook.ts';
import { freePlace, oldPlaces, takePlace } from '#projections/webhooks/places.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { countingQueue } from '../call/call-queue.ts';
import type { Call } from '../call/operation.ts';

/**
 * Limits the endpoints of a workspace. An endpoint is a stream of its own, and an append to it cannot count the others:
 * the caller first takes a place in a table, one caller of a workspace at a time. The read model counts the endpoints
 * that it shows, the table those that it does not show yet. If we die between the place and the append, the place
 * lapses.
 */

export const defaultPerWorkspace = 50;
/** No call runs this long after it took its place, milliseconds: a stream that is still empty then stays empty. */
const lapseMs = 60_000;

const inLine = countingQueue('registrations of webhook endpoints');

/** Frees the places of callers that died before their append. */
const lapse = async (pool: Pool, store: DomainStore, workspaceId: string): Promise<void> => {
  for (const id of await oldPlaces(pool, workspaceId, lapseMs)) {
    const { state } = await store.load(webhook, id);
    if (state.status !== 'live') await freePlace(pool, id);
  }
};

/** @throws Rejection `too_many_webhooks` */
export const requireRoom = async (
  { deps, workspaceId, behind }: Pick<Call, 'deps' | 'workspaceId' | 'behind'>,
  webhookId: string,
): Promise<void> => {
  const { pool, store, webhooksPerWorkspace: most = defaultPerWorkspace } = deps;
  const take = () => inLine(pool, workspaceId, () => takePlace(pool, workspaceId, webhookId, most));
  if (await take()) return;
  // An endpoint that the caller has just deleted leaves room, and so does one that was never created.
  await behind(['webhooks']);
  await lapse(pool, store, workspaceId);
  if (await take()) return;
  throw new Rejection(
    'too_many_webhooks',
    `A workspace may have ${most} webhook endpoints: delete one that is no longer used, or let one endpoint subscribe to more types.`,
  );
};

import type { Knex } from 'knex';
import { type Page, pageOf, toIso } from '../engine/rows.ts';

/** Queries of the API on the tables of the dispatcher and the sender: deliveries, and the progress of replays. */

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'canceled';

export interface Attempt {
  readonly number: number;
  readonly at: string;
  readonly trigger: string;
  readonly status: number | null;
  readonly error: string | null;
  readonly durationMs: number;
  readonly responseBody: string | null;
}

export interface DeliveryRow {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_time: string;
  readonly message_id: string;
  readonly type: string;
  readonly replay_id: string | null;
  readonly status: DeliveryStatus;
  readonly created_at: string;
  readonly updated_at: string;
  readonly delivered_at: string | null;
  /** Oldest first. */
  readonly attempts: readonly Attempt[];
  /** When a sender may take it; null when it is settled or taken. */
  readonly next_at: string | null;
  /** A person requested it: it is sent although the endpoint is off. */
  readonly forced: boolean;
  /** `created_at` to the microsecond: the order of the list. */
  readonly sort_key: string;
}

/** Key of a list's last row: newest first. */
export interface DeliveryKey {
  readonly sortKey: string;
  readonly id: string;
}

export interface DeliveryFilters {
  readonly statuses?: readonly DeliveryStatus[];
  readonly eventType?: string;
  /** Of `created_at`: from inclusive, to exclusive. */
  readonly from?: string;
  readonly to?: string;
}

const columns = `
  d.id, d.endpoint_id, d.event_time, d.message_id, d.type, d.replay_id, d.status, d.created_at, d.updated_at,
  d.delivered_at, d.attempts, case when not q.leased then q.next_at end as next_at, coalesce(q.forced, false) as forced,
  to_char(d.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as sort_key`;

const instants = ['event_time', 'created_at', 'updated_at', 'delivered_at', 'next_at'] as const;

const asDelivery = (raw: Record<string, unknown>): DeliveryRow => {
  for (const name of instants) raw[name] = toIso(raw[name]);
  return raw as unknown as DeliveryRow;
};

/** The owner of the deliveries: an endpoint of a tenant. */
export interface Of {
  readonly workspaceId: string;
  readonly webhookId: string;
}

const deliveries = (knex: Knex, { workspaceId, webhookId }: Of) =>
  knex('ops.webhook_deliveries as d')
    .leftJoin('ops.webhook_queue as q', 'q.delivery_id', 'd.id')
    .select(knex.raw(columns))
    .where({ 'd.endpoint_id': webhookId, 'd.workspace_id': workspaceId });

/** Newest first. */
export const listDeliveries = async (
  knex: Knex,
  of: Of,
  { statuses, eventType, from, to }: DeliveryFilters,
  { after, limit }: { readonly after: DeliveryKey | null; readonly limit: number },
): Promise<Page<DeliveryRow>> => {
  const query = deliveries(knex, of);
  if (statuses !== undefined) query.whereIn('d.status', statuses);
  if (eventType !== undefined) query.where('d.type', eventType);
  if (from !== undefined) query.where('d.created_at', '>=', from);
  if (to !== undefined) query.where('d.created_at', '<', to);
  if (after !== null) query.whereRaw('(d.created_at, d.id) < (?::timestamptz, ?::uuid)', [after.sortKey, after.id]);
  const rows: Record<string, unknown>[] = await query
    .orderBy([
      { column: 'd.created_at', order: 'desc' },
      { column: 'd.id', order: 'desc' },
    ])
    .limit(limit + 1);
  return pageOf(rows.map(asDelivery), limit);
};

export const getDelivery = async (knex: Knex, of: Of, deliveryId: string): Promise<DeliveryRow | null> => {
  const [row]: Record<string, unknown>[] = await deliveries(knex, of).where('d.id', deliveryId).limit(1);
  return row === undefined ? null : asDelivery(row);
};

export interface ReplayRow {
  readonly id: string;
  readonly endpoint_id: string;
  readonly from_time: string;
  readonly to_time: string;
  readonly types: readonly string[] | null;
  readonly status: 'running' | 'completed' | 'canceled' | 'failed';
  /** `created` of the newest event read. */
  readonly read_to: string | null;
  readonly minted: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly completed_at: string | null;
}

const replayInstants = ['from_time', 'to_time', 'read_to', 'created_at', 'updated_at', 'completed_at'] as const;

/** The replays among these ids that have begun, by id. */
export const getReplays = async (
  knex: Knex,
  { workspaceId, webhookId }: Of,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReplayRow>> => {
  const { rows } = await knex.raw(
    `select id, endpoint_id, from_time, to_time, types, status, read_to, minted, created_at, updated_at, completed_at
     from ops.webhook_jobs
     where id = any(?::uuid[]) and kind = 'replay' and endpoint_id = ? and workspace_id = ?`,
    [[...ids], webhookId, workspaceId],
  );
  return new Map(
    rows.map((raw: Record<string, unknown>) => {
      for (const name of replayInstants) raw[name] = toIso(raw[name]);
      return [raw.id, { ...raw, minted: Number(raw.minted) }];
    }),
  );
};

import type pg from 'pg';
import { envelopeIdOf } from '#domain/ids.ts';
import { publicTypesOf } from '#projections/webhooks/types.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { matches } from '#schemas/http/webhook-events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { Arrival, Hooks } from './hooks.ts';

/**
 * Invariants of webhooks at rest: the receiver accepted every event that committed while its endpoint subscribed to it,
 * under one id, minted once; a second arrival is a later attempt; no delivery is left over.
 */

interface Span {
  readonly from: bigint;
  /** Exclusive; null: to the end. */
  readonly to: bigint | null;
  readonly events: readonly string[];
}

/**
 * The intervals of an endpoint's subscription, by its stream: after an automatic disable it is caught up from there.
 */
const spansOf = (stream: readonly DecodedEvent[]): readonly Span[] => {
  const spans: Span[] = [];
  let open: { from: bigint; events: readonly string[] } | null = null;
  let filter: readonly string[] = [];
  let disabledAt: bigint | null = null;
  const close = (to: bigint | null): void => {
    if (open !== null) spans.push({ ...open, to });
    open = null;
  };
  for (const { type, data, position } of stream) {
    if (type === 'WebhookRegistered') {
      filter = data.events as string[];
      open = { from: position, events: filter };
    } else if (type === 'WebhookUpdated' && data.events !== undefined) {
      filter = data.events as string[];
      if (open !== null) {
        close(position);
        open = { from: position, events: filter };
      }
    } else if (type === 'WebhookDisabled') {
      close(position);
      disabledAt = data.by === 'service' ? position : null;
    } else if (type === 'WebhookEnabled') {
      open = { from: disabledAt ?? position, events: filter };
      disabledAt = null;
    }
  }
  close(null);
  return spans;
};

export interface HooksCheck {
  readonly violations: readonly string[];
  readonly deliveries: number;
  readonly arrivals: number;
  /** Arrivals that the receiver had accepted before. */
  readonly repeats: number;
}

/** Types of events that the build before does not publish: where it mints, nobody gets them. */
const sinceBefore: readonly string[] = ['invite.created', 'invite.used', 'invite.revoked'];

export const checkHooks = async (
  {
    pool,
    hooks,
    mixed,
  }: { readonly pool: pg.Pool; readonly hooks: Pick<Hooks, 'ids' | 'arrivals'>; readonly mixed: boolean },
  streams: ReadonlyMap<string, readonly DecodedEvent[]>,
): Promise<HooksCheck> => {
  const violations: string[] = [];
  const all = [...streams.values()].flat();
  let deliveries = 0;
  for (const endpointId of hooks.ids) {
    const stream = streams.get(`webhook-${endpointId}`) ?? [];
    const workspaceId = stream[0]?.metadata.workspaceId;
    const spans = spansOf(stream);
    const wanted = new Map<string, string>();
    for (const event of all) {
      if (event.metadata.workspaceId !== workspaceId) continue;
      for (const type of publicTypesOf(event, kindOf(event.stream))) {
        if (mixed && sinceBefore.includes(type)) continue;
        const received = spans.some(
          ({ from, to, events }) =>
            event.position >= from && (to === null || event.position < to) && matches(events, type),
        );
        if (received) wanted.set(envelopeIdOf(event.id, type), `${type} of ${event.stream} at ${event.position}`);
      }
    }
    const { rows } = await pool.query<{
      message_id: string;
      status: string;
      position: string;
      type: string;
      n: number;
    }>(
      `select message_id, min(status) as status, min(position)::text as position, min(type) as type, count(*)::int as n
       from ops.webhook_deliveries where endpoint_id = $1 group by message_id`,
      [endpointId],
    );
    deliveries += rows.length;
    const minted = new Map(rows.map((row) => [row.message_id, row]));
    const arrivals = Map.groupBy(
      hooks.arrivals.filter((one) => one.endpointId === endpointId),
      (one) => one.id,
    );
    const bad = (what: string): void => void violations.push(`webhook ${endpointId}: ${what}`);
    for (const [id, what] of wanted) {
      const row = minted.get(id);
      if (row === undefined) bad(`${what} was never minted`);
      else if (row.status !== 'delivered') bad(`${what} is ${row.status}`);
      if (!(arrivals.get(id) ?? []).some(({ taken }) => taken)) bad(`${what} (${id}) never reached 2xx`);
    }
    for (const { message_id: id, status, type, n } of rows) {
      if (n > 1) bad(`${type} ${id} was minted ${n} times`);
      if (status === 'pending') bad(`${type} ${id} is still pending`);
      // A late lane may have minted events beyond an end, and they may be sent before the end is known: extra, not
      // lost.
      if (!wanted.has(id) && status === 'failed') bad(`${type} ${id} has failed`);
    }
    for (const [id, own] of arrivals) violations.push(...ofArrivals(endpointId, id, own));
  }
  const left = hooks.ids.length === 0 ? null : await pool.query('select count(*)::int as n from ops.webhook_queue');
  if (left?.rows[0].n > 0) violations.push(`${left?.rows[0].n} deliveries are left in the queue`);
  const taken = new Set<string>();
  let repeats = 0;
  for (const { endpointId, id, taken: one } of hooks.arrivals) {
    if (taken.has(`${endpointId} ${id}`)) repeats += 1;
    if (one) taken.add(`${endpointId} ${id}`);
  }
  return { violations, deliveries, arrivals: hooks.arrivals.length, repeats };
};

const ofArrivals = (endpointId: string, id: string, arrivals: readonly Arrival[]): readonly string[] => {
  const wrong: string[] = [];
  const attempts = arrivals.map(({ attempt }) => attempt);
  // A sender that slept between its last check of the clock and the send may arrive after its successor.
  if (new Set(attempts).size < attempts.length)
    wrong.push(`webhook ${endpointId}: ${id} came as attempts ${attempts.join(', ')}`);
  if (arrivals.some(({ signed }) => !signed))
    wrong.push(`webhook ${endpointId}: ${id} came with a signature that does not hold`);
  return wrong;
};

/** Whether deliveries are still under way: queued rows of endpoints that are on, and running catch-ups. */
export const hooksAtRest = async (pool: pg.Pool): Promise<boolean> => {
  const { rows } = await pool.query(
    `select 1 from ops.webhook_queue q join ops.webhook_endpoints e on e.id = q.endpoint_id where e.active
     union all
     select 1 from ops.webhook_jobs where status = 'running' limit 1`,
  );
  return rows.length === 0;
};

import type { PoolClient } from 'pg';
import type { LiveWebhook } from '#domain/webhook.ts';
import { matches, publicEvents } from '#schemas/http/webhook-events.ts';
import { disorderMs } from './marks.ts';

/**
 * Cancels and revives unsent deliveries when their endpoint changes, in the transaction that changes it: a sender that
 * sees the change finds them settled. The queue of an endpoint may hold 30 days of deliveries, so no statement here reads
 * it whole. What lanes minted beyond an event was made after it, and is found by the time of its making.
 */

/** Every type that a filter includes. */
const typesOf = (filter: readonly string[]): readonly string[] =>
  Object.keys(publicEvents).filter((type) => matches(filter, type));

/** No delivery of an event beyond the one of this instant (ISO 8601) was made earlier. */
const madeSince = (occurredAt: string): Date => new Date(Date.parse(occurredAt) - disorderMs);

/** NOTE: by an array of ids, so that Postgres never joins the whole queue, whatever it knows of its size. */
const cancelSql = `
with late as materialized (
  select d.id from ops.webhook_deliveries d
  where d.endpoint_id = $1 and d.created_at >= $5 and d.position > $2 and d.status = 'pending'
    and not (d.type = any($3::text[]) and ($4::uuid[] is null or coalesce(d.client_id = any($4::uuid[]), false)))
), gone as (
  delete from ops.webhook_queue q
  where q.delivery_id = any(array(select id from late)) and q.endpoint_id = $1 and q.trigger = 'scheduled'
  returning q.delivery_id, q.event_time, q.attempt
)
update ops.webhook_deliveries d set status = 'canceled', updated_at = clock_timestamp(), begun = gone.attempt
from gone where d.event_time = gone.event_time and d.id = gone.delivery_id`;

/**
 * Cancels the scheduled deliveries of events beyond the one at this position; with a state, only those that its filter
 * or its limit excludes.
 */
export const cancelBeyond = async (
  tx: PoolClient,
  id: string,
  { position, occurredAt }: { readonly position: bigint; readonly occurredAt: string },
  state: LiveWebhook | null,
): Promise<void> => {
  const included = state === null ? [] : typesOf(state.events);
  const limit = state === null ? null : state.clientIds;
  await tx.query(cancelSql, [id, position, included, limit, madeSince(occurredAt)]);
};

/** Of a delivery: the number of its last attempt, which the next one follows; one that left the queue has no result. */
export const lastBegunSql = `greatest((attempts -> -1 ->> 'number')::int, begun, 0)`;

const reviveSql = `
with again as (
  update ops.webhook_deliveries set status = 'pending', updated_at = clock_timestamp()
  where endpoint_id = $1 and status = 'canceled' and replay_id is null and position >= $2
    and type = any($3::text[]) and event_time >= $4 and ($5::uuid[] is null or client_id = any($5::uuid[]))
    and created_at >= $6
  returning *
)
insert into ops.webhook_queue (delivery_id, event_time, message_id, endpoint_id, workspace_id, lane, next_at,
  leased, attempt, tries, trigger, forced)
select id, event_time, message_id, endpoint_id, workspace_id, 0, clock_timestamp(), false,
  ${lastBegunSql}, 0, 'scheduled', false
from again`;

/**
 * The end of the older interval canceled the deliveries that a late lane had minted beyond this position. The new
 * interval subscribes to them, and the catch-up mints nothing that exists: so they are revived here.
 * @param from the position, and when its event occurred
 * @param eventTime no delivery of an older event is revived
 */
export const revive = async (
  tx: PoolClient,
  id: string,
  { position, occurredAt }: { readonly position: bigint; readonly occurredAt: string },
  eventTime: Date,
  state: LiveWebhook,
): Promise<void> => {
  await tx.query(reviveSql, [
    ...[id, position, typesOf(state.events), eventTime],
    ...[state.clientIds, madeSince(occurredAt)],
  ]);
};

/**
 * Unsent deliveries of replays stay in their lane, of which an endpoint has at most those that pause its replays, and
 * the pages of replays that ran beside each other (`hasRoom` of the jobs): so one statement takes them all.
 */
const cancelReplaySql = `
with mine as materialized (
  select q.delivery_id from ops.webhook_queue q cross join lateral (
    select from ops.webhook_deliveries d
    where d.event_time = q.event_time and d.id = q.delivery_id and d.replay_id = $2 limit 1
  ) d
  where q.endpoint_id = $1 and q.lane = 2 and q.trigger = 'replay'
), gone as (
  delete from ops.webhook_queue q
  where q.delivery_id = any(array(select delivery_id from mine)) and q.trigger = 'replay'
  returning q.delivery_id, q.event_time, q.attempt
)
update ops.webhook_deliveries d set status = 'canceled', updated_at = clock_timestamp(), begun = gone.attempt
from gone where d.event_time = gone.event_time and d.id = gone.delivery_id`;

export const cancelReplay = async (tx: PoolClient, id: string, replayId: string): Promise<void> => {
  // The job first: what its running step has minted must be in the queue before the queue is read.
  await tx.query(
    `update ops.webhook_jobs set status = 'canceled', updated_at = clock_timestamp()
     where id = $1 and endpoint_id = $2 and kind = 'replay' and status = 'running'`,
    [replayId, id],
  );
  await tx.query(cancelReplaySql, [id, replayId]);
};

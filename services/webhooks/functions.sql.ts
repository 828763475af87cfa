import { skipScan } from '#runtime/work/due-work.ts';

/**
 * The sender's work in the database, one round trip each. They are functions because a function can forbid sequential
 * scans: Postgres plans a statement once a session, and a plan from the time of a small queue would read the whole
 * queue until new statistics come.
 */

/** Raise it whenever a function below changes what it does: new ones are then made beside those of older processes. */
export const version = 1;

export const functions = `
-- Endpoints with due deliveries that may be sent. It skips from one endpoint to the next in the index, so the cost grows
-- with the endpoints, not with the queue. first, later, replay: by lane. asked: forced deliveries, the only ones of an
-- endpoint that is off or waits behind its breaker. probe: half-open, one delivery may be sent.
create function ops.webhook_due_${version}() returns table (
  endpoint_id uuid, first bool, later bool, replay bool, asked bool, probe bool, lag float8
) language plpgsql set enable_seqscan = off as $$
declare
  moment timestamptz := clock_timestamp();
begin
  return query
  with recursive ${skipScan({ name: 'ops.webhook_queue', where: 'true' }, 'endpoint_id')}, heads as materialized (
    select e.key as id, s.half_open, s.blocked,
      case when not s.blocked then
        (select q.next_at from ops.webhook_queue q where q.endpoint_id = e.key and q.lane = 0 order by q.next_at limit 1)
      end as lane0,
      case when not s.blocked then
        (select q.next_at from ops.webhook_queue q where q.endpoint_id = e.key and q.lane = 1 order by q.next_at limit 1)
      end as lane1,
      case when not s.blocked then
        (select q.next_at from ops.webhook_queue q where q.endpoint_id = e.key and q.lane = 2 order by q.next_at limit 1)
      end as lane2,
      case when s.blocked then
        (select q.next_at from ops.webhook_queue q where q.endpoint_id = e.key and q.forced order by q.next_at limit 1)
      end as forced
    from keys e
    cross join lateral (
      select
        not w.active or coalesce(h.disable is not null or h.open_until > moment, false) as blocked,
        coalesce(h.opened > 0, false) as half_open
      from ops.webhook_endpoints w
      left join ops.webhook_health h
        on h.endpoint_id = w.id and h.seen_revision = (w.state ->> 'changedRevision')::int
      where w.id = e.key limit 1
    ) s
    where e.key is not null
  )
  select h.id, coalesce(h.lane0 <= moment, false), coalesce(h.lane1 <= moment, false), coalesce(h.lane2 <= moment, false),
    coalesce(h.forced <= moment, false), h.half_open and not h.blocked,
    extract(epoch from moment - least(h.lane0, h.lane1, h.lane2, h.forced))::float8 * 1000
  from heads h
  where least(h.lane0, h.lane1, h.lane2, h.forced) <= moment;
end $$;

-- Begins attempts: for each endpoint and lane (3: forced ones of any lane) at most c_most of the longest due deliveries.
-- An endpoint in c_probes gives one only to the sender that moves its breaker's end ahead; if that sender dies, the
-- breaker is half-open again when the lease ends.
create function ops.webhook_claim_${version}(
  lease_ms float8, c_endpoint uuid[], c_lane int2[], c_most int4[], c_probes uuid[]
) returns table (
  delivery_id uuid, event_time timestamptz, endpoint_id uuid, workspace_id uuid, message_id uuid, queue_lane int2,
  attempt int4, tries int4, trigger text, forced bool, body bytea, at_position text, lane text
) language plpgsql set enable_seqscan = off as $$
declare
  moment timestamptz := clock_timestamp();
  lease_end timestamptz := moment + lease_ms * interval '1 millisecond';
  barred uuid[] := '{}';
begin
  if cardinality(c_probes) > 0 then
    with through as (
      update ops.webhook_health h set open_until = lease_end
      where h.endpoint_id = any(c_probes) and h.opened > 0 and h.open_until <= moment
      returning h.endpoint_id
    )
    select coalesce(array_agg(p), '{}') into barred from unnest(c_probes) p
    where not exists (select from through t where t.endpoint_id = p);
  end if;
  return query
  with picked as materialized (
    select p.id from unnest(c_endpoint, c_lane, c_most) a (endpoint_id, lane, most)
    cross join lateral (
      select q.delivery_id as id from ops.webhook_queue q
      where q.endpoint_id = a.endpoint_id and q.lane = a.lane and q.next_at <= moment
      order by q.next_at limit a.most for update skip locked
    ) p
    where a.lane < 3 and a.endpoint_id <> all(barred)
    union all
    select p.id from unnest(c_endpoint, c_lane, c_most) a (endpoint_id, lane, most)
    cross join lateral (
      select q.delivery_id as id from ops.webhook_queue q
      where q.endpoint_id = a.endpoint_id and q.forced and q.next_at <= moment
      order by q.next_at limit a.most for update skip locked
    ) p
    where a.lane = 3
  ), claimed as (
    update ops.webhook_queue q set leased = true, next_at = lease_end, attempt = q.attempt + 1
    where q.delivery_id = any(array(select id from picked))
    returning q.delivery_id, q.event_time, q.endpoint_id, q.workspace_id, q.message_id, q.lane, q.attempt, q.tries,
      q.trigger, q.forced
  )
  select c.delivery_id, c.event_time, c.endpoint_id, c.workspace_id, c.message_id, c.lane, c.attempt, c.tries,
    c.trigger, c.forced, m.body, m.position::text, m.lane
  from claimed c
  left join lateral (
    select m.body, m.position, m.lane from ops.webhook_messages m
    where m.event_time = c.event_time and m.id = c.message_id limit 1
  ) m on true;
end $$;

-- Undoes attempts that a claim or a mint began and that were not sent: their numbers are free again.
create function ops.webhook_give_back_${version}(r_delivery uuid[], r_attempt int4[], r_probes uuid[])
returns void language plpgsql set enable_seqscan = off as $$
declare
  moment timestamptz := clock_timestamp();
begin
  update ops.webhook_queue q set leased = false, next_at = moment, attempt = q.attempt - 1
  from unnest(r_delivery, r_attempt) r (delivery_id, attempt)
  where q.delivery_id = r.delivery_id and q.attempt = r.attempt and q.leased;
  update ops.webhook_health h set open_until = moment
  where h.endpoint_id = any(r_probes) and h.opened > 0 and h.open_until > moment;
end $$;

-- Records the outcomes of attempts that are still the latest of their delivery, and returns the ids of those. If a person
-- resent a delivery during its attempt and the attempt failed, the delivery is due again at once.
create function ops.webhook_record_${version}(
  r_delivery uuid[], r_time timestamptz[], r_attempt int4[], r_tries int4[], r_trigger text[],
  r_outcome text[], r_wait float8[], r_entries jsonb, w_endpoint uuid[], w_seen int4[]
) returns setof uuid language plpgsql set enable_seqscan = off as $$
declare
  moment timestamptz := clock_timestamp();
begin
  -- A success ends a streak; for an endpoint that is well already nothing is written.
  if cardinality(w_endpoint) > 0 then
    perform 1 from ops.webhook_health h
    where h.endpoint_id = any(w_endpoint) and (h.consecutive > 0 or h.opened > 0 or h.failing_since is not null)
    order by h.endpoint_id for update;
    update ops.webhook_health h
    set consecutive = 0, failing_since = null, failed_at = null, opened = 0,
      open_until = case when h.opened = 0 then h.open_until end
    from unnest(w_endpoint, w_seen) w (endpoint_id, seen)
    where h.endpoint_id = w.endpoint_id and h.seen_revision = w.seen
      and (h.consecutive > 0 or h.opened > 0 or h.failing_since is not null);
  end if;
  return query
  with results as materialized (
    select r.* from rows from (
      unnest(r_delivery, r_time, r_attempt, r_tries, r_trigger, r_outcome, r_wait), jsonb_array_elements(r_entries)
    ) r (delivery_id, event_time, attempt, tries, trigger, outcome, wait, entry)
  ), done as (
    delete from ops.webhook_queue q using results r
    where q.delivery_id = r.delivery_id and q.attempt = r.attempt
      and (r.outcome = 'delivered' or (r.outcome = 'failed' and q.tries = r.tries and q.trigger = r.trigger))
    returning q.delivery_id, q.event_time, r.outcome as status, r.entry
  ), waiting as (
    update ops.webhook_queue q
    set leased = false,
      next_at = case when q.tries = r.tries and q.trigger = r.trigger
        then moment + r.wait * interval '1 millisecond' else moment end,
      lane = case when q.tries = r.tries and q.trigger = r.trigger then greatest(q.lane, 1::int2) else q.lane end,
      tries = case when q.tries = r.tries and q.trigger = r.trigger then q.tries + 1 else q.tries end
    from results r
    where q.delivery_id = r.delivery_id and q.attempt = r.attempt
      and (r.outcome = 'again' or (r.outcome = 'failed' and (q.tries <> r.tries or q.trigger <> r.trigger)))
    returning q.delivery_id, q.event_time, 'pending' as status, r.entry
  ), ours as (
    select * from done union all select * from waiting
  )
  update ops.webhook_deliveries d
  set attempts = d.attempts || o.entry, status = o.status, updated_at = moment,
    delivered_at = case when o.status = 'delivered' then moment else d.delivered_at end
  from ours o
  where d.event_time = o.event_time and d.id = o.delivery_id
  returning d.id;
end $$;`;

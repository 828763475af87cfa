import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { platforms } from '#schemas/common.ts';
import { view } from '../shapes.ts';
import { leaseKindOfTargets } from './due-targets.ts';

/**
 * Carries a move of a sandbox workspace's clock out in the rows that searches go by. Rows of the kind "not before this instant"
 * have real time, so that every search stays what it is for everybody else: a move takes its length from those of the
 * workspace, in the transaction that sets the clock. The stream of the workspace has the move already. If we die before the
 * commit, the next call about the clock, or the outcomes process, which hears the event, carries it out; if we die after it,
 * the row has the clock, and a repeat finds nothing to move.
 */

/** What a move has made due, and waits for workers; each counts to `maxCounted` at most. */
export interface MadeDue {
  /** The time that the workspace had before, ISO 8601. */
  readonly from: string;
  /** Targets to be published, tried again or given up. */
  readonly targets: number;
  /** Posts of which a copy is to be made. */
  readonly recycles: number;
  /** Accounts of which figures are to be read. */
  readonly accounts: number;
  /** Reports to be made. */
  readonly reports: number;
  /** Webhook deliveries to be tried again. */
  readonly deliveries: number;
}

export const maxCounted = 1_000;
/** Webhook deliveries that one statement brings nearer, and all statements of one move. */
const deliveriesAtOnce = 10_000;
const maxDeliveries = 1_000_000;
/** Targets whose network is asked again at once. */
const maxAsked = 1_000;
/** Published targets whose next try, of a comment or of another step, a move brings nearer: those that wait longest first. */
const maxFollowUps = 1_000;

interface Move {
  readonly workspaceId: string;
  /** How far the clock is to be ahead of real time, milliseconds. */
  readonly aheadMs: number;
  /** ISO 8601, in real time. */
  readonly movedAt: string;
}

const lockSql = 'update ops.sandbox_clock_version set version = version + 1 returning version::text as version';
const formerSql = `
select ahead_ms::float8 as "aheadMs", made_due as due, now() as now from (select 1) one
left join ops.sandbox_clocks on workspace_id = $1`;
const setSql = `
insert into ops.sandbox_clocks (workspace_id, ahead_ms, moved_at, version, made_due, follow_ups)
select $1, $2, $3, $4, $5, array(
  select t.id from unnest($6::text[]) as p (platform) cross join lateral (
    select o.id, o.due_at from ${view('post_targets')} o
    where o.workspace_id = $1 and o.status = 'published' and o.platform = p.platform and o.next_action_at > now()
    order by o.due_at desc, o.id desc limit ${maxFollowUps}) t
  order by t.due_at, t.id limit ${maxFollowUps})
on conflict (workspace_id) do update set ahead_ms = excluded.ahead_ms, moved_at = excluded.moved_at,
  version = excluded.version, made_due = excluded.made_due, follow_ups = excluded.follow_ups`;

const by = "$2::float8 * interval '1 millisecond'";
const endpointsSql = 'select id from ops.webhook_endpoints where workspace_id = $1';

/**
 * An attempt under way keeps its lease. A row that was moved lies before the place where the next statement begins: `$3` to `$6`
 * are the place of the last row of the one before.
 */
const deliveriesSql = `
with waiting as (
  select q.delivery_id, q.endpoint_id, q.lane, q.next_at from ops.webhook_queue q
  where q.endpoint_id = any(array(${endpointsSql})) and not q.leased and q.next_at > now()
    and (q.endpoint_id, q.lane, q.next_at, q.delivery_id) > ($3::uuid, $4::int2, $5::timestamptz, $6::uuid)
  order by q.endpoint_id, q.lane, q.next_at, q.delivery_id limit ${deliveriesAtOnce} for update skip locked
), moved as (
  update ops.webhook_queue q set next_at = q.next_at - ${by} from waiting w where q.delivery_id = w.delivery_id returning q.next_at
)
select (select count(*) filter (where next_at <= now()) from moved)::int4 as n, count(*) over ()::int4 as moved,
  endpoint_id::text as endpoint, lane, next_at::text as at, delivery_id::text as id
from waiting order by endpoint_id desc, lane desc, next_at desc, delivery_id desc limit 1`;
/** The breaker of an endpoint, and the days after which it is turned off. */
const healthSql = `
update ops.webhook_health h set open_until = h.open_until - ${by}, failing_since = h.failing_since - ${by}
where h.endpoint_id = any(array(${endpointsSql}))`;

const accountsSql = `
with own as (
  select account_id, next_at from ops.insights_accounts
  where platform = any($3::text[]) and workspace_id = $1 and connected and next_at is not null
  order by account_id for update
), moved as (
  update ops.insights_accounts a set next_at = own.next_at - ${by} from own where a.account_id = own.account_id
  returning own.next_at as former, a.next_at
)
select least(count(*) filter (where former > now() and next_at <= now()), ${maxCounted})::int4 as n from moved`;

const reportsSql = `
with moved as (
  update ops.report_schedules s set due_at = s.due_at - ${by} where s.workspace_id = $1 and s.due_at is not null
  returning s.due_at
)
select least(count(*) filter (where due_at <= now() and due_at + ${by} > now()), ${maxCounted})::int4 as n from moved`;

/** `$3` and `$4`: from and to by the clock of the workspace. */
const targetsSql = `
select count(*)::int4 as n from (
  select from unnest('{pending,rate_limited,awaiting_approval,handed_to_platform}'::text[]) as s (status)
  cross join unnest($2::text[]) as p (platform)
  cross join lateral (
    select from ${view('post_targets')} t where t.workspace_id = $1 and t.status = s.status and t.platform = p.platform
      and t.due_at <= $4 and t.next_action_at is not null and coalesce(t.retry_at, t.due_at) > $3
      and coalesce(t.retry_at, t.due_at) <= $4 limit ${maxCounted}) found limit ${maxCounted}) n`;
const recyclesSql = `
select count(*)::int4 as n from (
  select from ${view('clients')} c cross join lateral (
    select from ${view('posts')} p where p.client_id = c.id and (p.recycle ->> 'enabled')::bool
      and p.recycle_at > $2 and p.recycle_at <= $3 limit ${maxCounted}) found
  where c.workspace_id = $1 limit ${maxCounted}) n`;

/** A question about an outcome that is not known rests in its lease. */
const askedSql = `
update ops.work_leases l set not_before = null
where l.kind = '${leaseKindOfTargets}' and l.until <= now() and l.not_before is not null and l.id = any(array(
  select t.id::text from unnest('{outcome_unknown,processing,handed_to_platform}'::text[]) as s (status)
  cross join unnest($2::text[]) as p (platform)
  cross join lateral (
    select o.id from ${view('post_targets')} o
    where o.workspace_id = $1 and o.status = s.status and o.platform = p.platform limit ${maxAsked}) t limit ${maxAsked}))`;

const count = async (tx: PoolClient, sql: string, values: readonly unknown[]): Promise<number> =>
  (await tx.query<{ n: number }>(sql, [...values])).rows[0]?.n ?? 0;

interface MovedDeliveries {
  readonly n: number;
  readonly moved: number;
  readonly endpoint: string;
  readonly lane: number;
  readonly at: string;
  readonly id: string;
}

/** @returns how many of them may be tried now */
const moveDeliveries = async (tx: PoolClient, moved: readonly unknown[]): Promise<number> => {
  const least = '00000000-0000-0000-0000-000000000000';
  let place: readonly unknown[] = [least, -1, '-infinity', least];
  let due = 0;
  for (let all = 0; all < maxDeliveries; all += deliveriesAtOnce) {
    const [last] = (await tx.query<MovedDeliveries>(deliveriesSql, [...moved, ...place])).rows;
    if (last === undefined) return due;
    due += last.n;
    if (last.moved < deliveriesAtOnce) return due;
    place = [last.endpoint, last.lane, last.at, last.id];
  }
  return due;
};

interface Former {
  readonly aheadMs: number | null;
  readonly due: MadeDue | null;
  readonly now: Date;
}

export interface Moved {
  /** This call carried it out; no other process has. */
  readonly isNew: boolean;
  /** Of this move, or of a later one. */
  readonly due: MadeDue;
}

const formerOf = async (db: Pool | PoolClient, workspaceId: string) => {
  const [row] = (await db.query<Former>(formerSql, [workspaceId])).rows;
  return { aheadMs: row?.aheadMs ?? 0, due: row?.due ?? null, real: row?.now.getTime() ?? 0 };
};

const carryOut = async (tx: PoolClient, { workspaceId, aheadMs, movedAt }: Move): Promise<Moved> => {
  const { rows } = await tx.query<{ version: string }>(lockSql);
  const { aheadMs: formerMs, due: known, real } = await formerOf(tx, workspaceId);
  const byMs = aheadMs - formerMs;
  if (known !== null && byMs <= 0) return { isNew: false, due: known };
  const [from, to] = [new Date(real + formerMs), new Date(real + aheadMs)];
  const moved = [workspaceId, byMs];
  const deliveries = Math.min(maxCounted, await moveDeliveries(tx, moved));
  await tx.query(healthSql, moved);
  await tx.query("select pg_notify('webhook_queue', '')");
  const accounts = await count(tx, accountsSql, [...moved, [...platforms]]);
  const reports = await count(tx, reportsSql, moved);
  const targets = await count(tx, targetsSql, [workspaceId, [...platforms], from, to]);
  const recycles = await count(tx, recyclesSql, [workspaceId, from, to]);
  await tx.query(askedSql, [workspaceId, [...platforms]]);
  const due = { from: from.toISOString(), targets, recycles, accounts, reports, deliveries };
  const waiting = [...platforms];
  await tx.query(setSql, [workspaceId, aheadMs, movedAt, rows[0]?.version, JSON.stringify(due), waiting]);
  return { isNew: true, due };
};

export const moveClock = async (pool: Pool, move: Move): Promise<Moved> => {
  const former = await formerOf(pool, move.workspaceId);
  if (former.due !== null && former.aheadMs >= move.aheadMs) return { isNew: false, due: former.due };
  return inTransaction(pool, async (tx) => {
    const result = await carryOut(tx, move);
    return { commit: result.isNew, result };
  });
};

interface Recorded {
  readonly type: string;
  readonly data: unknown;
  readonly metadata: { readonly occurredAt: string };
}

/** The moves in the stream of a workspace, the first one first. */
export const movesOf = (events: readonly Recorded[]): readonly Omit<Move, 'workspaceId'>[] =>
  events
    .filter(({ type }) => type === 'SandboxClockMoved')
    .map(({ data, metadata }) => ({
      aheadMs: (data as { readonly aheadMs: number }).aheadMs,
      movedAt: metadata.occurredAt,
    }));

import type { Pool } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { everyWorkspace } from '#runtime/work/publishing-hold.ts';
import { nowSql } from '#runtime/work/sandbox-clocks.ts';
import { maxAheadMs } from '#schemas/workspace.ts';
import { isAskedSql } from '../models/sql.ts';
import { view } from '../shapes.ts';

/** The publisher's searches for targets with work to do. Leases say which targets another process works on. */

/** Kind of the leases that publishers take on targets. */
export const leaseKindOfTargets = 'target';

/** A target that a search found. */
export interface FoundTarget {
  readonly id: string;
  readonly workspaceId: string;
  /** Whether it is live or of the sandbox, and the platform: `live/x`. */
  readonly network: string;
  readonly revision: number;
}

/** How many targets a search answers, and which it leaves out. */
export interface SearchLimits {
  /** Kind of the leases on targets. */
  readonly leaseKind: string;
  /** Ids that the search leaves out, whatever the table shows of them. */
  readonly except: readonly string[];
  /** Workspace and platform → rows that it answers at most. */
  readonly rooms: Readonly<Record<string, number>>;
}

/** Rows of one workspace that a search returns beyond the workspace's room: some may be stale, and are skipped. */
export const spareRows = 16;

export const afterAllIds = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Whether another process has leased the row, or it rests. NOTE: checked for each row on its own. Postgres would plan a
 * join by the statistics of the leases, which are always outdated, and might read a million resting leases.
 */
export const isTaken = (id: string, kind: string): string => `coalesce((
    select l.until > now() or l.not_before > now() from ops.work_leases l
    where l.kind = ${kind} and l.id = ${id}::text), false)`;

/** The network of the row's account; an account that the read model does not show yet counts as live. */
const networkOf = (row: string): string =>
  `coalesce((select a.network from ${view('accounts')} a where a.id = ${row}.account_id), 'live') || '/' || ${row}.platform`;

/** What keeps targets back beside the rows that hold publishing. */
export interface KeptBack {
  /** A setting of this process holds publishing, whatever the rows say. */
  readonly bySetting: boolean;
  /** Networks that rest: `live/linkedin`. */
  readonly networks: readonly string[];
}

/**
 * Whether publishing is held for the row's workspace, or its network rests. What a network has already is worked on: a post whose time has come
 * in its own scheduler, and the call of a worker that died.
 */
const isHeld = (
  row: string,
  bySetting: string,
  networks: string,
): string => `(${row}.status in ('pending', 'rate_limited', 'published')
    and (${bySetting}::bool or exists (
      select 1 from ops.publishing_holds h where h.scope in ('${everyWorkspace}', ${row}.workspace_id::text))
      or cardinality(${networks}::text[]) > 0 and ${networkOf(row)} = any(${networks}::text[])))`;

/**
 * Runs a statement that may use indexes alone. NOTE: a session keeps its plan for as long as it lives, and makes it
 * while the tables are small.
 */
const search = <Row extends object>(
  pool: Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<readonly Row[]> =>
  inTransaction(pool, async (tx) => ({ commit: true, result: (await tx.query<Row>({ name, text, values })).rows }));

/** A place in the walk over one platform's rows; `at` as Postgres writes it, to keep its microseconds. */
export interface WalkStep {
  readonly platform: string;
  readonly at: string;
  readonly id: string;
  /** Rows that this step reads. */
  readonly rows: number;
}

export interface WalkedTarget extends FoundTarget {
  readonly platform: string;
  readonly dueAt: Date;
  readonly at: string;
  /** The row marks where the walk ended and more rows may follow; it is not a result. */
  readonly isEdge: boolean;
}

/**
 * Of the rows that were walked, those that nobody has, numbered for each workspace on each network. `$5` to `$10`: as
 * `limitsOf` has them. @param at column by which a row is due
 */
const rankedSql = (at: string): string => `free as (
  select w.*, coalesce(($6::jsonb ->> (w.workspace_id::text || w.platform))::int, ($5::jsonb ->> w.platform)::int) as room
  from walked w where w.id not in (select unnest($7::uuid[])) and not ${isHeld('w', '$9', '$10')}
), ranked as (
  select f.*, row_number() over (partition by f.workspace_id, f.platform order by f.${at}, f.id) as rank
  from free f where f.room > 0 and not ${isTaken('f.id', '$8')}
)`;

/** @param platformRooms platform → rows of a workspace that `limits.rooms` does not name */
const limitsOf = (
  platformRooms: Readonly<Record<string, number>>,
  { leaseKind, except, rooms }: SearchLimits,
  { bySetting, networks }: KeptBack,
): readonly unknown[] => [JSON.stringify(platformRooms), JSON.stringify(rooms), except, leaseKind, bySetting, networks];

/**
 * Returns at most as many rows of each workspace on each network as the workspace has room for, so that a workspace
 * with a million rows does not fill the answer. NOTE: platforms are compared by `>=` and the row, never by equality:
 * with an equality Postgres could take the order from an index that begins with the time.
 */
const walkSql = (direction: 'asc' | 'desc'): string => `
with walked as materialized (
  select t.* from unnest($1::text[], $2::timestamptz[], $3::uuid[], $4::int[]) as n (platform, at, id, rows)
  cross join lateral (
    select s.*, row_number() over () = n.rows as "isEdge" from (
      select t.id, t.workspace_id, t.account_id, t.platform, t.status, t.revision, t.next_action_at
      from ${view('post_targets')} t
      where t.next_action_at is not null and not ${isAskedSql('t')} and t.platform >= n.platform
        and (t.platform, t.next_action_at, t.id) < (n.platform, n.at, n.id)
      order by t.platform ${direction}, t.next_action_at ${direction}, t.id ${direction}
      limit n.rows) s
  ) t
), ${rankedSql('next_action_at')}
select r.id::text, r.workspace_id::text as "workspaceId", ${networkOf('r')} as network, r.platform, r.revision,
  r.next_action_at as "dueAt", r.next_action_at::text as at, false as "isEdge"
from ranked r where r.rank <= r.room + ${spareRows}
union all
select w.id::text, w.workspace_id::text, null, w.platform, w.revision, w.next_action_at, w.next_action_at::text, true
from walked w where w."isEdge"`;

/**
 * Targets that are due before each step, but those of which a network is asked.
 * @param platformRooms platform → rows of a workspace that `limits.rooms` does not name
 */
export const walkDueTargets = (
  pool: Pool,
  direction: 'asc' | 'desc',
  steps: readonly WalkStep[],
  platformRooms: Readonly<Record<string, number>>,
  limits: SearchLimits,
  held: KeptBack,
): Promise<readonly WalkedTarget[]> =>
  search<WalkedTarget>(pool, `publisher-due-${direction}`, walkSql(direction), [
    steps.map(({ platform }) => platform),
    steps.map(({ at }) => at),
    steps.map(({ id }) => id),
    steps.map(({ rows }) => rows),
    ...limitsOf(platformRooms, limits, held),
  ]);

/** States in which a target may have work at a time of its own. */
const timedStates = ['pending', 'rate_limited', 'publishing', 'awaiting_approval', 'handed_to_platform'] as const;
/** Rows of one workspace, state and platform that a search among moved clocks reads. */
const movedRows = 100;

/**
 * Targets that are due by the clock of their workspace, which is ahead of ours. `next_action_at` has real time, as it was
 * when the row was written: it may lie ahead of what a move has made due since. So this search goes by the open targets of
 * each workspace, and by the times that their owner gave them; published targets that waited for a try behind the publication are
 * those that the move wrote down.
 */
export const movedSql = `
with walked as materialized (
  select t.*, m.ahead_ms from unnest($1::uuid[], $2::float8[]) as m (workspace_id, ahead_ms)
  cross join unnest($4::text[]) as n (platform) cross join unnest('{${timedStates.join(',')}}'::text[]) as s (status)
  cross join lateral (
    select p.id, p.workspace_id, p.account_id, p.platform, p.status, p.revision, coalesce(p.retry_at, p.due_at) as at
    from ${view('post_targets')} p
    where p.workspace_id = m.workspace_id and p.status = s.status and p.platform = n.platform
      and p.due_at < $3::timestamptz + m.ahead_ms * interval '1 millisecond' and p.next_action_at is not null
      and (p.retry_at is null or p.retry_at < $3::timestamptz + m.ahead_ms * interval '1 millisecond')
    order by p.due_at, p.id limit ${movedRows}) t
  union all
  select p.id, p.workspace_id, p.account_id, p.platform, p.status, p.revision, f.at, m.ahead_ms
  from unnest($1::uuid[], $2::float8[]) as m (workspace_id, ahead_ms)
  join ops.sandbox_clocks c on c.workspace_id = m.workspace_id cross join unnest(c.follow_ups) as w (id)
  cross join lateral (select * from ${view('post_targets')} t where t.id = w.id offset 0) p
  cross join lateral (select min(value::timestamptz) as at from jsonb_each_text(p.follow_ups)) f
  where p.status = 'published' and p.platform = any($4::text[]) and p.next_action_at is not null
    and f.at < $3::timestamptz + m.ahead_ms * interval '1 millisecond'
), ${rankedSql('at')}
select r.id::text, r.workspace_id::text as "workspaceId", ${networkOf('r')} as network, r.platform, r.revision,
  r.at - r.ahead_ms * interval '1 millisecond' as "dueAt", r.at::text as at, false as "isEdge"
from ranked r where r.rank <= r.room + ${spareRows}`;

/** @param before in real time; the clock of each workspace is `aheadMs` ahead of it */
export const movedDueTargets = (
  pool: Pool,
  clocks: readonly { readonly workspaceId: string; readonly aheadMs: number }[],
  before: Date,
  platformRooms: Readonly<Record<string, number>>,
  limits: SearchLimits,
  held: KeptBack,
): Promise<readonly WalkedTarget[]> =>
  search<WalkedTarget>(pool, 'publisher-due-moved', movedSql, [
    clocks.map(({ workspaceId }) => workspaceId),
    clocks.map(({ aheadMs }) => aheadMs),
    before,
    Object.keys(platformRooms),
    ...limitsOf(platformRooms, limits, held),
  ]);

/** Where a walk continues; null: it begins at the newest row. */
export interface WalkCursor {
  readonly at: string;
  readonly id: string;
}

export interface AskedTarget extends FoundTarget, WalkCursor {
  /** `rested` and `bare` mark where either walk ended and more rows may follow; they are not results. */
  readonly kind: 'target' | 'rested' | 'bare';
}

/** NOTE: without `offset 0` Postgres would plan the join by the statistics, see `isTaken`. */
const askedSql = `
with rested as materialized (
  select s.*, row_number() over () = $4 as "isEdge" from (
    select l.id, l.not_before as at from ops.work_leases l
    where l.kind = $1 and l.not_before is not null and (l.not_before, l.id) < (coalesce($2::timestamptz, now()), $3)
    order by l.not_before desc, l.id desc limit $4) s
), bare as materialized (
  select s.*, row_number() over () = $7 as "isEdge" from (
    select t.id, t.workspace_id, t.next_action_at as at from ${view('post_targets')} t
    where ${isAskedSql('t')} and t.next_action_at is not null
      and (t.next_action_at, t.id) < (coalesce($5::timestamptz, now() + interval '${maxAheadMs / 86_400_000} days'), $6::uuid)
    order by t.next_action_at desc, t.id desc limit $7) s
), free as (
  select t.*, coalesce(($8::jsonb ->> (t.workspace_id::text || t.platform))::int, $9) as room
  from (select id::uuid from rested union select b.id from bare b
    where not ${isTaken('b.id', '$1')} and (b.at <= now() or b.at <= ${nowSql('b.workspace_id')})) c
  cross join lateral (
    select p.id, p.workspace_id, p.account_id, p.platform, p.status, p.revision, p.next_action_at
    from ${view('post_targets')} p where p.id = c.id offset 0
  ) t
  where ${isAskedSql('t')} and t.id not in (select unnest($10::uuid[]))
), ranked as (
  select f.*, row_number() over (partition by f.workspace_id, f.platform order by f.next_action_at, f.id) as rank
  from free f where f.room > 0
)
select r.id::text, r.workspace_id::text as "workspaceId", ${networkOf('r')} as network, r.revision, null as at, 'target' as kind
from ranked r where r.rank <= r.room + ${spareRows}
union all select id, null, null, null, at::text, 'rested' from rested where "isEdge"
union all select id::text, null, null, null, at::text, 'bare' from bare where "isEdge"`;

/**
 * Targets of which a network is asked, because their outcome is unknown or because it has not shown them yet: those whose
 * lease has rested (`rested`), and those without a lease (`bare`).
 * @param room rows of a workspace that `limits.rooms` does not name
 */
export const findAskedTargets = (
  pool: Pool,
  rested: { readonly from: WalkCursor | null; readonly rows: number },
  bare: { readonly from: WalkCursor | null; readonly rows: number },
  room: number,
  { leaseKind, except, rooms }: SearchLimits,
): Promise<readonly AskedTarget[]> =>
  search<AskedTarget>(pool, 'publisher-asked', askedSql, [
    leaseKind,
    rested.from?.at ?? null,
    rested.from?.id ?? '',
    rested.rows,
    bare.from?.at ?? null,
    bare.from?.id ?? afterAllIds,
    bare.rows,
    JSON.stringify(rooms),
    room,
    except,
  ]);

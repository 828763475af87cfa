import type { Pool, PoolClient } from 'pg';
import { type Move, NotMoved } from '#runtime/consuming/positions.ts';
import { retentionMonths } from './tables.ts';

/** The queue of workspace days to recount. */

export interface Touched {
  readonly workspaceId: string;
  readonly day: string;
  /**
   * True for an observation of a post: it also changes the gains of later days, and no table holds the post's next
   * observed day.
   */
  readonly post: boolean;
  /** Position of the newest row under the day; null when no new row is stored under it. */
  readonly position: bigint | null;
}

/** The scope of a day's recount: all of its posts, their gains alone, or the accounts. */
export type MarkKind = 'post' | 'gains' | 'account';

export interface Mark {
  readonly workspaceId: string;
  readonly kind: MarkKind;
  readonly day: string;
  readonly mark: string;
}

/**
 * Marks are written in one order, so two transactions that mark the same days wait for each other and never deadlock.
 * Every writer and deleter takes late rows before marks. A mark that is set again keeps its first place in the queue:
 * otherwise a workspace that is observed all the time would never be counted.
 */
const upsert = (days: string): string => `
  insert into ops.analytics_marked (version, workspace_id, kind, day, since, mark)
  select $1::int4, workspace_id, kind, day, drawn, drawn from (
    select *, nextval('ops.analytics_marks') as drawn from (${days} order by 1, 3, 2) as ordered
  ) as days
  on conflict (version, workspace_id, kind, day) do update set mark = excluded.mark`;

/**
 * @param moved a common table expression that precedes the others
 * @param condition the condition under which they take effect
 */
const marking = (moved: string, condition: string): string => `
  with ${moved} touched as materialized (
    select * from unnest($2::uuid[], $3::date[], $4::bool[], $5::int8[]) as t (workspace_id, day, post, position)
    where ${condition}
  ), known as (
    insert into ops.analytics_days (version, workspace_id, day)
    select distinct $1::int4, workspace_id, day from touched order by 2, 3 on conflict do nothing
  ), late as (
    insert into ops.analytics_late as l (version, workspace_id, after)
    select $1::int4, workspace_id, day
    from (select workspace_id, min(day) as day from touched where post group by workspace_id) as first
    where exists (select from ops.analytics_days d
      where d.version = $1 and d.workspace_id = first.workspace_id and d.day > first.day)
    order by workspace_id
    on conflict (version, workspace_id) do update set after = excluded.after where l.after > excluded.after
    returning 1
  ), marked as (${upsert(`
      select distinct workspace_id, case when post then 'post' else 'account' end as kind, day from touched
      where (select count(*) from late) >= 0`)}
  ), highest as (
    insert into ops.analytics_highest as h (version, post, position, since, held)
    select distinct on (post) $1::int4, post, position, date_trunc('minute', clock_timestamp()),
      array[jsonb_build_object('position', position::text, 'workspace', workspace_id, 'day', day)]
    from touched where position is not null order by post, position desc
    on conflict (version, post) do update
      set position = excluded.position, since = greatest(h.since, excluded.since),
        held = excluded.held || case when h.since < excluded.since then h.held[:3] else h.held[2:4] end
      where h.position < excluded.position
  )
  select ${condition} as done`;

const valuesOf = (version: number, all: readonly Touched[]): readonly unknown[] => {
  const newest = new Map<string, Touched>();
  for (const one of all) {
    const key = `${one.workspaceId} ${one.day} ${one.post}`;
    const known = newest.get(key);
    if (known === undefined || (known.position ?? -1n) < (one.position ?? -1n)) newest.set(key, one);
  }
  const touched = [...newest.values()];
  return [
    version,
    touched.map((one) => one.workspaceId),
    touched.map((one) => one.day),
    touched.map((one) => one.post),
    touched.map((one) => one.position),
  ];
};

/** Call it in the transaction that moves the position, after ClickHouse has the rows. */
export const markDirty = async (tx: PoolClient, version: number, all: readonly Touched[]): Promise<void> => {
  await tx.query({ name: 'analytics-mark', text: marking('', 'true'), values: [...valuesOf(version, all)] });
};

/** Marks the days and moves the consumer's position in one statement. @throws NotMoved */
export const markAndMove = async (
  pool: Pool,
  version: number,
  all: readonly Touched[],
  { group, lane, epoch, nextOffset, position, eventId }: Move,
): Promise<void> => {
  const { rows } = await pool.query<{ done: boolean }>({
    name: 'analytics-mark-move',
    text: marking(
      'moved as materialized (select ops.consume_move($6, $7, $8::int8, $9::int8, $10::int8, $11::uuid) as ok),',
      '(select ok from moved)',
    ),
    values: [...valuesOf(version, all), group, lane, epoch, nextOffset, position, eventId],
  });
  if (rows[0]?.done !== true) throw new NotMoved();
};

/** Marks that one scan of the queue reads. */
const pageMarks = 2_000;
/** Pages that one scan reads at most: the marks behind them wait for the next scan. */
const maxPages = 50;

/**
 * Locks workspaces with marks for this session, the longest waiting first: two processes that scan at the same time get
 * different ones. The locks end with the session, or with `unlock`.
 * @param but workspaces that rest
 */
export const lockWaiting = async (
  session: PoolClient,
  version: number,
  but: readonly string[],
  limit: number,
): Promise<readonly string[]> => {
  const ours: string[] = [];
  const tried = new Set(but);
  let after = '-1';
  for (let page = 0; page < maxPages && ours.length < limit; page += 1) {
    const { rows } = await session.query<{ workspace_id: string; last: string; marks: string }>({
      name: 'analytics-waiting',
      text: `select workspace_id, max(max(since)) over () as last, sum(count(*)) over () as marks
             from (select workspace_id, since from ops.analytics_marked
                   where version = $1 and since > $2::int8 order by since limit $3) as page
             group by workspace_id order by min(since)`,
      values: [version, after, pageMarks],
    });
    const found = rows.map((row) => row.workspace_id).filter((id) => !tried.has(id));
    for (const id of found) tried.add(id);
    ours.push(...(await lockSome(session, version, found, limit - ours.length)));
    const [first] = rows;
    if (first === undefined || Number(first.marks) < pageMarks) break;
    after = first.last;
  }
  return ours.length < limit ? [...ours, ...(await lockLate(session, version, [...tried], limit - ours.length))] : ours;
};

/** Locks workspaces that have late rows without a mark: a build that knows no late rows counted their mark. */
const lockLate = async (
  session: PoolClient,
  version: number,
  but: readonly string[],
  limit: number,
): Promise<readonly string[]> => {
  const { rows } = await session.query<{ id: string }>({
    name: 'analytics-late-alone',
    text: `select workspace_id::text as id from ops.analytics_late
           where version = $1 and workspace_id <> all($2::uuid[]) order by workspace_id limit $3`,
    values: [version, but, limit],
  });
  return lockSome(
    session,
    version,
    rows.map(({ id }) => id),
    limit,
  );
};

const lockSome = async (
  session: PoolClient,
  version: number,
  workspaces: readonly string[],
  limit: number,
): Promise<readonly string[]> => {
  if (workspaces.length === 0) return [];
  const { rows } = await session.query<{ id: string }>({
    name: 'analytics-lock',
    // The inner limit keeps the locks where they are: moved into the inner select, they would be taken in any order,
    // and for all rows.
    text: `select id from (select id from unnest($2::text[]) with ordinality as w (id, place) order by place limit $4) as w
           where pg_try_advisory_lock(hashtextextended('analytics ' || $1 || ' ' || id, 0)) limit $3`,
    values: [String(version), workspaces, limit, workspaces.length],
  });
  return rows.map((row) => row.id);
};

export const unlock = async (session: PoolClient): Promise<void> => {
  await session.query('select pg_advisory_unlock_all()');
};

/**
 * Turns late rows into marks of the later days. One workspace a statement, since an ingester that touches the same row
 * waits for it.
 */
const markLater = async (db: Pick<Pool, 'query'>, version: number, workspaces: readonly string[]): Promise<void> => {
  const { rows } = await db.query<{ id: string }>({
    name: 'analytics-late',
    text: 'select workspace_id::text as id from ops.analytics_late where version = $1 and workspace_id = any($2::uuid[])',
    values: [version, workspaces],
  });
  for (const { id } of rows) {
    await db.query({
      name: 'analytics-later',
      text: `with gone as (
               delete from ops.analytics_late where version = $1 and workspace_id = $2 returning workspace_id, after
             ) ${upsert(`
               select d.workspace_id, 'post' as kind, d.day from gone
               join ops.analytics_days d on d.version = $1 and d.workspace_id = gone.workspace_id and d.day > gone.after
               where d.day > current_date - make_interval(months => $3)`)}`,
      values: [version, id, retentionMonths],
    });
  }
};

/**
 * Each workspace's oldest marks in turn: a workspace with a year to count leaves room for the others. A late row may
 * arrive with a mark that is read here, and the count deletes both: so late rows are read once more afterwards.
 */
export const marksOf = async (
  db: Pick<Pool, 'query'>,
  version: number,
  workspaces: readonly string[],
  limit: number,
): Promise<readonly Mark[]> => {
  await markLater(db, version, workspaces);
  const marks = await readMarks(db, version, workspaces, limit);
  await markLater(db, version, workspaces);
  return marks;
};

const readMarks = async (
  db: Pick<Pool, 'query'>,
  version: number,
  workspaces: readonly string[],
  limit: number,
): Promise<readonly Mark[]> => {
  const { rows } = await db.query<{ workspace_id: string; kind: MarkKind; day: string; mark: string }>({
    name: 'analytics-marks',
    text: `select workspace_id, kind, day::text as day, mark from (
             select m.*, row_number() over (partition by w.id order by since) as nth
             from unnest($2::uuid[]) as w (id) cross join lateral (
               select * from ops.analytics_marked
               where version = $1 and workspace_id = w.id order by since limit $3) as m
           ) as ranked order by nth, since limit $3`,
    values: [version, workspaces, limit],
  });
  return rows.map(({ workspace_id, ...rest }) => ({ workspaceId: workspace_id, ...rest }));
};

/** Deletes the counted marks. A mark that was set again during the count stays and moves to the end of the queue. */
export const clearMarks = async (db: Pick<Pool, 'query'>, version: number, marks: readonly Mark[]): Promise<void> => {
  await db.query({
    name: 'analytics-clear',
    text: `with counted as materialized (
             select * from unnest($2::uuid[], $3::text[], $4::date[], $5::int8[]) as m (workspace_id, kind, day, mark)
           ), gone as (
             delete from ops.analytics_marked d using counted m
             where d.version = $1 and d.workspace_id = m.workspace_id and d.kind = m.kind and d.day = m.day and d.mark = m.mark
           )
           update ops.analytics_marked d set since = d.mark from counted m
           where d.version = $1 and d.workspace_id = m.workspace_id and d.kind = m.kind and d.day = m.day and d.mark <> m.mark`,
    values: [
      version,
      marks.map((one) => one.workspaceId),
      marks.map((one) => one.kind),
      marks.map((one) => one.day),
      marks.map((one) => one.mark),
    ],
  });
};

/**
 * A mark of posts also changes the gains of this many days before its own: gains reach back to the previous
 * observation.
 */
const reachDays = 3;

/**
 * The first day of the window that still waits for a count; null when none does. Dates `YYYY-MM-DD`, both inclusive.
 */
export const firstUncounted = async (
  db: Pick<Pool, 'query'>,
  version: number,
  workspaceId: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<string | null> => {
  const { rows } = await db.query<{ day: string | null }>({
    name: 'analytics-first-uncounted',
    text: `select greatest(min(day - reach), $3::date)::text as day
           from (
             select day, case when kind = 'account' then 0 else $5::int4 end as reach from ops.analytics_marked
             where version = $1 and workspace_id = $2 and day between $3::date and $4::date + $5::int4
             union all
             select min(d.day), $5::int4 from ops.analytics_late l
             join ops.analytics_days d on d.version = $1 and d.workspace_id = $2 and d.day > l.after
               and d.day between $3::date and $4::date + $5::int4
             where l.version = $1 and l.workspace_id = $2 having count(*) > 0
           ) as marks
           where day - reach <= $4::date having count(*) > 0`,
    values: [version, workspaceId, from, to, reachDays],
  });
  return rows[0]?.day ?? null;
};

import type { Pool, PoolClient } from 'pg';
import { type Move, NotMoved } from '#runtime/consume/positions.ts';

/** Days of workspaces that must be recounted. */

export interface Touched {
  readonly workspaceId: string;
  readonly day: string;
  /** Of a post: the gains of the next days after it change, too, and nobody keeps which day is the next of each post. */
  readonly post: boolean;
}

export interface Mark {
  readonly workspaceId: string;
  readonly day: string;
  readonly mark: string;
}

/**
 * In one order: two that mark the same days wait for one another, and neither for ever.
 * @param moved a common table expression before the others, and the condition under which they do anything
 */
const marking = (moved: string, condition: string): string => `
  with ${moved} touched as materialized (
    select * from unnest($2::uuid[], $3::date[], $4::bool[]) as t (workspace_id, day, post) where ${condition}
  ), known as (
    insert into ops.analytics_days (version, workspace_id, day)
    select distinct $1::int4, workspace_id, day from touched order by 2, 3 on conflict do nothing
  ), marked as (
    insert into ops.analytics_dirty (version, workspace_id, day, mark)
    select $1::int4, workspace_id, day, nextval('ops.analytics_marks') from (
      select workspace_id, day from touched
      union
      select d.workspace_id, d.day
      from (select workspace_id, min(day) as day from touched where post group by workspace_id) as first
      join ops.analytics_days d on d.version = $1 and d.workspace_id = first.workspace_id and d.day > first.day
      order by 1, 2
    ) as days
    on conflict (version, workspace_id, day) do update set mark = excluded.mark
  )
  select ${condition} as done`;

const valuesOf = (version: number, all: readonly Touched[]): readonly unknown[] => {
  const touched = [...new Map(all.map((one) => [`${one.workspaceId} ${one.day} ${one.post}`, one] as const)).values()];
  return [
    version,
    touched.map((one) => one.workspaceId),
    touched.map((one) => one.day),
    touched.map((one) => one.post),
  ];
};

/** In the transaction that moves the position, after the rows are in ClickHouse. */
export const markDirty = async (tx: PoolClient, version: number, all: readonly Touched[]): Promise<void> => {
  await tx.query({ name: 'analytics-mark', text: marking('', 'true'), values: [...valuesOf(version, all)] });
};

/** The same, and the consumer's position, in one statement. @throws NotMoved */
export const markAndMove = async (
  pool: Pool,
  version: number,
  all: readonly Touched[],
  { group, lane, epoch, nextOffset, position, eventId }: Move,
): Promise<void> => {
  const { rows } = await pool.query<{ done: boolean }>({
    name: 'analytics-mark-move',
    text: marking(
      'moved as materialized (select ops.consume_move($5, $6, $7::int8, $8::int8, $9::int8, $10::uuid) as ok),',
      '(select ok from moved)',
    ),
    values: [...valuesOf(version, all), group, lane, epoch, nextOffset, position, eventId],
  });
  if (rows[0]?.done !== true) throw new NotMoved();
};

/** Workspaces with such days but these, those that wait longest first. */
export const dirtyWorkspaces = async (
  db: Pick<Pool, 'query'>,
  version: number,
  but: readonly string[],
  limit: number,
): Promise<readonly string[]> => {
  const { rows } = await db.query<{ workspace_id: string }>({
    name: 'analytics-dirty',
    text: `select workspace_id from ops.analytics_dirty where version = $1 and workspace_id <> all($2::uuid[])
           group by workspace_id order by min(mark) limit $3`,
    values: [version, but, limit],
  });
  return rows.map((row) => row.workspace_id);
};

export const marksOf = async (
  db: Pick<Pool, 'query'>,
  version: number,
  workspaces: readonly string[],
  limit: number,
): Promise<readonly Mark[]> => {
  const { rows } = await db.query<{ workspace_id: string; day: string; mark: string }>({
    name: 'analytics-marks',
    text: `select workspace_id, day::text as day, mark from ops.analytics_dirty
           where version = $1 and workspace_id = any($2::uuid[]) order by mark limit $3`,
    values: [version, workspaces, limit],
  });
  return rows.map((row) => ({ workspaceId: row.workspace_id, day: row.day, mark: row.mark }));
};

/** Only those that nobody drew anew. */
export const clearMarks = async (db: Pick<Pool, 'query'>, version: number, marks: readonly Mark[]): Promise<void> => {
  await db.query({
    name: 'analytics-clear',
    text: `delete from ops.analytics_dirty d
           using unnest($2::uuid[], $3::date[], $4::int8[]) as m (workspace_id, day, mark)
           where d.version = $1 and d.workspace_id = m.workspace_id and d.day = m.day and d.mark = m.mark`,
    values: [version, marks.map((one) => one.workspaceId), marks.map((one) => one.day), marks.map((one) => one.mark)],
  });
};

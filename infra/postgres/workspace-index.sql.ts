/**
 * Tables and statements of the index of workspaces: the positions of each workspace's events. `s` is a schema name that
 * passed `checkSchemaName`. It is a separate table, filled behind the appends: a third index on the events would cost
 * every append a sixth of its speed, and this table covers old rows and those of every release alike.
 */
import type pg from 'pg';
import { eventColumns, ownBytes } from './event-store.sql.ts';

/** The index holds every event up to and including `position`, whose id is `event_id`; nothing where that is null. */
export const workspaceTables = (s: string): string => `
  create table ${s}.workspace_events (
    workspace uuid not null,
    position bigint not null,
    primary key (workspace, position)
  );
  create table ${s}.workspace_index (
    one boolean primary key default true check (one),
    position bigint,
    event_id uuid
  );
  insert into ${s}.workspace_index default values;`;

/** The text after the member's name, and the closing quote; as `workspaceOf` of the port reads it. */
const member = `'"workspaceId":"'::bytea`;
const named = `encode(substr(metadata, position(${member} in metadata) + 15, 37), 'escape')`;
const hex = '[0-9a-f]+';
/** Two plain patterns: one that counts its digits takes Postgres ten times as long. */
const isUuid = `${named} like '________-____-____-____-____________"'
  and ${named} ~ '^${hex}-${hex}-${hex}-${hex}-${hex}"$'`;
/** Of an event; null where its metadata name none. A packed row has it in a column. */
const workspace = `case when packing is not null then workspace
  when position(${member} in metadata) > 0 and ${isUuid} then left(${named}, 36)::uuid end`;

/**
 * The events at the positions that `positions` finds, in order, up to and including the one that exceeds $5 bytes. The
 * last column is the number of positions. They are found first, as an array: a planner without statistics would
 * otherwise join the event table from its beginning.
 */
const eventsAt = (s: string, positions: string): string => `
  with found as materialized (select array(${positions}) as positions)
  select ${eventColumns}, cardinality((select positions from found)) from (
    select *, sum(${ownBytes}) over (order by position) as bytes,
      row_number() over (order by position) as n
    from ${s}.event_rows where position = any((select positions from found)::int8[])
  ) as sized where bytes <= $5::int8 or n = 1 order by position`;

/** After a position: where at most so many events end. Positions have gaps, but seldom as wide as a piece. */
const pieceEnd = (s: string, after: string, max: string): string =>
  `greatest(${after} + ${max}, (select min(position) from ${s}.event_rows where position > ${after}))`;

export const workspaceStatements = (s: string) => ({
  /** The end of the complete part of the index; no row where it is empty, or was filled from another history. */
  indexed: `
    select i.position from ${s}.workspace_index i join ${s}.event_rows e on e.position = i.position and e.id = i.event_id`,

  /** $1 workspace, $2 position before the first, $3 last position, $4 most rows, $5 most bytes (the first row always comes). */
  fromIndex: eventsAt(
    s,
    `select position from ${s}.workspace_events
     where workspace = $1::uuid and position > $2::int8 and position <= $3::int8 order by position limit $4::int8`,
  ),
  /** For events that the index does not hold. */
  fromEvents: eventsAt(
    s,
    `select position from ${s}.event_rows where position > $2::int8 and position <= $3::int8
       and case when packing is not null then workspace = $1::uuid
         else position(${member} in metadata) > 0 and ${named} = $1::text || '"' end order by position limit $4::int8`,
  ),

  /**
   * $1 position before the first, $2 last position, $3 most rows: where so many events end, and where all do. Both null
   * where there are none. A piece is a range of positions, not a limit: without statistics Postgres would sort the
   * table.
   */
  stretch: `
    select
      (select max(position) from ${s}.event_rows where position > $1::int8 and position <= least($2::int8, ${pieceEnd(s, '$1::int8', '$3::int8')})),
      (select max(position) from ${s}.event_rows where position > $1::int8 and position <= $2::int8)`,

  /** Whether the index lacks events. Writes nothing, unlike `fill`, which writes even where it finds none. */
  behind: `
    select from ${s}.workspace_index i
    where exists (select from ${s}.event_rows where position > coalesce(i.position, 0))`,

  /**
   * $1 most events: adds the next ones to the index and moves its position behind them, or neither. Two concurrent
   * calls run one after the other. One row: the position, the number of events, whether more follow; none at the end of
   * the table. Sorted, so that a page of the index is written once for all its rows.
   */
  fill: `
    with known as (
      select coalesce(i.position, 0) as position from ${s}.workspace_index i
      where i.position is null or exists (select from ${s}.event_rows e where e.position = i.position and e.id = i.event_id)
      for update of i
    ), page as materialized (
      select position, id, ${workspace} as workspace from ${s}.event_rows
      where position > (select position from known)
        and position <= (select ${pieceEnd(s, 'known.position', '$1::int8')} from known)
    ), written as (
      insert into ${s}.workspace_events (workspace, position)
      select workspace, position from page where workspace is not null order by 1, 2 on conflict do nothing
    ), last as (
      select position, id from page order by position desc limit 1
    )
    update ${s}.workspace_index set position = last.position, event_id = last.id
    from last returning workspace_index.position, (select count(*)::int from page),
      exists (select from ${s}.event_rows e where e.position > last.position)`,

  /** Invalidates an index that was filled from another history: the event table was restored without it. */
  disbelieve: `
    update ${s}.workspace_index i set position = null, event_id = null
    where i.position is not null
      and not exists (select from ${s}.event_rows e where e.position = i.position and e.id = i.event_id)`,
});

const forgottenAtOnce = 10_000;

/**
 * Deletes the rows of an invalid index, a piece at a time: a statement that deletes a hundred million rows would hit
 * its deadline each time. It stops where the index is being filled again.
 */
export const forgetInPieces = async (pool: pg.Pool, s: string, signal: AbortSignal): Promise<void> => {
  for (let gone = forgottenAtOnce; gone === forgottenAtOnce && !signal.aborted; ) {
    const { rowCount } = await pool.query(
      `with empty as (
         select from ${s}.workspace_index where position is null for update
       )
       delete from ${s}.workspace_events where exists (select from empty)
         and ctid = any(array(select ctid from ${s}.workspace_events limit ${forgottenAtOnce}))`,
    );
    gone = rowCount ?? 0;
  }
};

import type { Pool } from 'pg';
import type { PageRead } from './replay.ts';

/** What is known of rebuilds that have not switched: who looks at them from outside, and who goes on where one died. */

/** `asked`: one by an operator; `all`: all by an operator; `shape`: its shape changed; `lost`: its tables were gone. */
export type RebuildReason = 'asked' | 'all' | 'shape' | 'lost';

export interface OpenRebuild {
  readonly name: string;
  readonly shape: number;
  /** Null: it has made no tables. */
  readonly generation: number | null;
  /** Null: it has read nothing. */
  readonly position: bigint | null;
  readonly events: number;
}

/** The shape of analytics, whose tables are numbered files. */
export const analyticsShape = 0;

type Db = Pick<Pool, 'query'>;

/** Replaces what is known of a former one of the name. */
export const noteRebuild = async (
  tx: Db,
  { name, shape, generation }: Pick<OpenRebuild, 'name' | 'shape' | 'generation'>,
  reason: RebuildReason,
): Promise<void> => {
  await tx.query('delete from ops.rebuilds where name = $1', [name]);
  await tx.query('insert into ops.rebuilds (name, shape, generation, reason) values ($1, $2, $3, $4)', [
    ...[name, shape, generation, reason],
  ]);
};

/** Those that begin together, in one statement: one that is no longer noted has switched. */
export const noteAll = async (db: Db, of: readonly Pick<OpenRebuild, 'name' | 'shape'>[]): Promise<void> => {
  await db.query(
    `insert into ops.rebuilds (name, shape, reason) select name, shape, 'all'
     from unnest($1::text[], $2::int4[]) as r (name, shape)
     on conflict (name) do update set shape = excluded.shape, generation = null, reason = 'all', began_at = now(),
       position = null, up_to = null, events = 0, read_to = null, is_following = false`,
    [of.map(({ name }) => name), of.map(({ shape }) => shape)],
  );
};

/** The tables are made, and empty: in the transaction that makes them. */
export const noteTables = async (tx: Db, name: string, generation: number): Promise<void> => {
  await tx.query(
    `update ops.rebuilds set generation = $2, position = null, events = 0, read_to = null, is_following = false
     where name = $1`,
    [name, generation],
  );
};

/** The tables of these hold the store up to there. */
export const noteRead = async (db: Db, upTo: bigint, { position, readTo, events }: PageRead): Promise<void> => {
  await db.query({
    name: 'rebuild-read',
    text: `update ops.rebuilds b set position = greatest(b.position, $1::int8), up_to = $2, read_to = $3,
        events = b.events + r.events, is_following = false
      from unnest($4::text[], $5::int8[]) as r (name, events) where b.name = r.name`,
    values: [position, upTo, readTo, [...events.keys()], [...events.values()]],
  });
};

export const noteFollowing = async (db: Db, name: string): Promise<void> => {
  await db.query('update ops.rebuilds set is_following = true where name = $1', [name]);
};

/** In the transaction that switches, so that one which is noted has not switched. */
export const noteSwitched = async (tx: Db, name: string): Promise<void> => {
  await tx.query('delete from ops.rebuilds where name = $1', [name]);
};

/**
 * Those of all that were begun together and have not switched. None after a declared restore: then the store has other events
 * at their positions.
 */
export const leftOfAll = async (db: Db): Promise<readonly OpenRebuild[]> => {
  const { rows } = await db.query(
    `select name, shape, generation, position, events from ops.rebuilds where reason = 'all'
     and not exists (select from ops.restores where restored_at > began_at)`,
  );
  return rows.map(({ name, shape, generation, position, events }) => ({
    ...{ name, shape, generation, events: Number(events) },
    position: position === null ? null : BigInt(position),
  }));
};

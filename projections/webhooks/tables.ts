import type { Pool, PoolClient } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';
import { tablesSql } from './tables.sql.ts';
import { migrateTurns } from './turns.ts';

/**
 * Tables that the dispatcher mints into and the sender works off. They record what was sent to customers, and the log
 * does not hold that: so they are operational tables, backed up and never rebuilt.
 */

const weekMs = 7 * 86_400_000;

export const migrate = async (pool: Pool): Promise<void> => {
  await withMigrationLock(pool, async (tx) => {
    // One transaction makes them all: where the last table exists, all do. NOTE: `create index if not exists` locks its
    // table before it checks, so a start would wait for running writers and could deadlock with them.
    const made = await tx.query("select 1 where to_regclass('ops.webhook_marks') is not null");
    if (made.rowCount === 0) await tx.query(tablesSql);
    else await beginInclusively(tx);
    await migrateTurns(tx);
    await migrateLater(tx);
  });
  const now = Date.now();
  await ensurePartitions(pool, [now - weekMs, now, now + weekMs]);
};

/**
 * Tables of the release that began catch-ups at `from - 1`, which EventStoreDB refuses: it accepts only positions of
 * events. Where a mark stands at the cursor, the cursor is such a position and was intended.
 */
const beginInclusively = async (tx: PoolClient): Promise<void> => {
  const { rowCount } = await tx.query(
    `select 1 from pg_attribute where attrelid = 'ops.webhook_jobs'::regclass and attname = 'from_inclusive'`,
  );
  if (rowCount !== 0) return;
  await tx.query(`
    alter table ops.webhook_jobs add column from_inclusive int8;
    update ops.webhook_jobs j set from_inclusive = cursor + 1
    where kind = 'catch_up' and status = 'running' and settle_at is null and cursor >= 0
      and not exists (select from ops.webhook_marks m where m.position = j.cursor)`);
};

/** Additions of later releases, each where it is missing: see NOTE above. */
const migrateLater = async (tx: PoolClient): Promise<void> => {
  const { rows } = await tx.query<
    Record<'disabled' | 'epochs' | 'limits' | 'places' | 'rotations' | 'shares', boolean>
  >(
    `select to_regclass('ops.webhook_places') is not null as places,
       to_regclass('ops.webhook_rotations') is not null as rotations,
       to_regclass('ops.webhook_jobs_replays') is not null as shares,
       exists (select from pg_attribute where attrelid = 'ops.webhook_intervals'::regclass and attname = 'client_ids') as limits,
       exists (select from pg_attribute where attrelid = 'ops.webhook_jobs'::regclass and attname = 'known_epoch') as epochs,
       exists (select from pg_attribute where attrelid = 'ops.webhook_endpoints'::regclass and attname = 'disabled_at') as disabled`,
  );
  // When the event at the disabled position occurred. A process of the former release leaves what stood there: an
  // instant before that event, or null.
  if (rows[0]?.disabled !== true)
    await tx.query('alter table ops.webhook_endpoints add column disabled_at timestamptz');
  // For the catch-up of an interval that begins at its own event: the epoch of the dispatcher's only lane when the
  // interval was committed. Null where the log has several lanes, or where the past is read too.
  if (rows[0]?.epochs !== true) await tx.query('alter table ops.webhook_jobs add column known_epoch int8');
  // A replay queries this before each page: which endpoints share its host.
  if (rows[0]?.shares !== true) {
    await tx.query(`
      create index webhook_jobs_replays on ops.webhook_jobs (workspace_id) where kind = 'replay' and status = 'running';
      create index webhook_endpoints_active on ops.webhook_endpoints (workspace_id) where active`);
  }
  // The clients to whose events an interval is limited, null: all; and the client of a delivered event, null: none.
  if (rows[0]?.limits !== true) {
    await tx.query(`
      alter table ops.webhook_intervals add column client_ids uuid[];
      alter table ops.webhook_deliveries add column client_id uuid`);
  }
  // Secrets of endpoints as of their newest rotations, which senders read before the dispatcher has folded them.
  if (rows[0]?.rotations !== true) {
    await tx.query(`
      create table ops.webhook_rotations (
        endpoint_id uuid primary key,
        -- Of the endpoint's stream, at the rotation.
        revision int4 not null,
        secrets jsonb not null
      )`);
  }
  // Endpoints about to be registered: they count before the read model shows them.
  if (rows[0]?.places !== true) {
    await tx.query(`
      create table ops.webhook_places (
        webhook_id uuid primary key,
        workspace_id uuid not null,
        taken_at timestamptz not null default now()
      );
      create index webhook_places_workspace on ops.webhook_places (workspace_id)`);
  }
};

/** Tables partitioned by event time, one week each. */
export const partitioned = ['webhook_messages', 'webhook_deliveries'] as const;

const weekOf = (ms: number): number => Math.floor(ms / weekMs);
const nameOf = (table: string, week: number): string => `${table}_w${week}`;
const startOf = (week: number): string => new Date(week * weekMs).toISOString();

const known = new WeakMap<Pool, Set<number>>();

/** True when a partition holds rows of this event time; `ensurePartitions` makes one. */
export const hasPartition = (pool: Pool, eventTime: number): boolean =>
  known.get(pool)?.has(weekOf(eventTime)) === true;

/**
 * Makes partitions for rows of these event times (milliseconds). A partition is made apart and then attached, so that
 * writers of the others do not wait.
 */
export const ensurePartitions = async (pool: Pool, eventTimes: readonly number[]): Promise<void> => {
  const have = known.get(pool) ?? new Set<number>();
  known.set(pool, have);
  const missing = [...new Set(eventTimes.map(weekOf))].filter((week) => !have.has(week));
  if (missing.length === 0) return;
  await withMigrationLock(pool, async (tx) => {
    for (const week of missing) for (const table of partitioned) await attach(tx, table, week);
  });
  for (const week of missing) have.add(week);
};

const attach = async (tx: PoolClient, table: string, week: number): Promise<void> => {
  const name = nameOf(table, week);
  const found = await tx.query('select 1 from pg_class c where c.oid = to_regclass($1)', [`ops.${name}`]);
  if (found.rowCount !== 0) return;
  // Rows of deliveries are updated once or twice: on their own page, and without touching an index.
  const fill = table === 'webhook_deliveries' ? ' with (fillfactor = 60)' : '';
  await tx.query(`
    create table ops.${name} (like ops.${table} including defaults)${fill};
    alter table ops.${table} attach partition ops.${name}
      for values from ('${startOf(week)}') to ('${startOf(week + 1)}')`);
};

/** The existing partitions: name, and the exclusive upper bound of their rows (milliseconds). */
export const partitionsOf = async (
  pool: Pool,
  table: (typeof partitioned)[number],
): Promise<readonly { readonly name: string; readonly end: number }[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass order by 1`,
    [`ops.${table}`],
  );
  return rows.map(({ name }) => ({ name, end: (Number(name.slice(`${table}_w`.length)) + 1) * weekMs }));
};

/** A partition was dropped: rows of its time need a new one. */
export const forgetPartitions = (pool: Pool): void => {
  known.delete(pool);
};

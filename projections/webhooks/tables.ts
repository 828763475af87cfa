import type { Pool, PoolClient } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';

/**
 * Tables that the dispatcher mints into and the sender works off. They record what was sent to customers, and the log
 * does not hold that: so they are operational tables, backed up and never rebuilt.
 */

const weekMs = 7 * 86_400_000;

/** Tables partitioned by event time, one week each. */
export const partitioned = ['webhook_messages', 'webhook_deliveries'] as const;

const weekOf = (ms: number): number => Math.floor(ms / weekMs);
const nameOf = (table: string, week: number): string => `${table}_w${week}`;
const startOf = (week: number): string => new Date(week * weekMs).toISOString();

/** $1 weeks: those whose partitions all exist. */
const madeSql = `
  select week from unnest($1::int4[]) as week
  where ${partitioned.map((table) => `to_regclass('ops.${table}_w' || week) is not null`).join(' and ')}`;

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
  // Without the lock first: at most starts they are there.
  const { rows } = await pool.query<{ week: number }>(madeSql, [missing]);
  const made = new Set(rows.map(({ week }) => week));
  const lacking = missing.filter((week) => !made.has(week));
  if (lacking.length > 0) {
    await withMigrationLock(pool, async (tx) => {
      for (const week of lacking) for (const table of partitioned) await attach(tx, table, week);
    });
  }
  for (const week of missing) have.add(week);
};

/** Makes those of this week and of the ones around it: at a start. */
export const ensureWeeks = (pool: Pool): Promise<void> => {
  const now = Date.now();
  return ensurePartitions(pool, [now - weekMs, now, now + weekMs]);
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

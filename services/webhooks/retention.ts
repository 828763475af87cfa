import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { ensurePartitions, forgetPartitions, partitioned, partitionsOf } from '#projections/webhooks/tables.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { Logger } from '#runtime/process/telemetry.ts';

/**
 * Deliveries are kept for 30 days. A week of events is dropped as a whole when none of its deliveries is young or
 * pending. A replay makes young deliveries of old events; they are kept for 30 days too. What has waited 30 days for an
 * endpoint that is off fails: it would keep the week of all workspaces until somebody turns the endpoint on.
 */

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
export const keptMs = 30 * dayMs;
/** Between two rounds, milliseconds. */
const everyMs = 3_600_000;
/** Any constant: one round at a time in a database. */
const lockKey = 7_070_717;
/**
 * Longest wait for the lock of the tables, milliseconds: statements behind it wait as long. If it is too short, the
 * next round drops the week.
 */
const lockWaitMs = 500;

export interface RetentionDeps {
  readonly pool: Pool;
  readonly logger: Logger;
  /** The wall clock, milliseconds. Default `Date.now`. */
  readonly now?: () => number;
}

/** `$1`, `$2`: the week; deliveries made after `$3` are young. */
const neededSql = `
select exists (select from ops.webhook_queue where event_time >= $1 and event_time < $2)
  or exists (select from ops.webhook_deliveries where event_time >= $1 and event_time < $2 and created_at > $3)
  as needed`;

/** Deliveries that fail in one statement. */
const failedAtOnce = 1_000;
/**
 * `$1`: made at or before; `$2`: how many. What a person requested is sent although the endpoint is off, and an attempt
 * that is under way ends by its own result.
 */
const failWaitingSql = `
with waiting as (
  select q.delivery_id, q.event_time from ops.webhook_queue q
  where q.event_time <= $1 and not q.forced and not (q.leased and q.next_at > clock_timestamp())
    and not exists (select from ops.webhook_endpoints e where e.id = q.endpoint_id and e.active)
    and exists (select from ops.webhook_deliveries d
      where d.event_time = q.event_time and d.id = q.delivery_id and d.created_at <= $1)
  limit $2 for update of q skip locked
), gone as (
  delete from ops.webhook_queue q using waiting w where q.delivery_id = w.delivery_id
  returning q.delivery_id, q.event_time, q.attempt
)
update ops.webhook_deliveries d set status = 'failed', updated_at = clock_timestamp(), begun = gone.attempt
from gone where d.event_time = gone.event_time and d.id = gone.delivery_id`;

/** Each statement is whole by itself: a process that dies between two leaves the rest to the next round. */
const failWaiting = async (pool: Pool, young: Date, signal: AbortSignal | undefined): Promise<number> => {
  for (let failed = 0; ; ) {
    const { rowCount } = await pool.query(failWaitingSql, [young, failedAtOnce]);
    failed += rowCount ?? 0;
    if ((rowCount ?? 0) < failedAtOnce || signal?.aborted === true) return failed;
  }
};

/** Makes partitions ahead and drops those that are over. @returns names of the dropped partitions */
export const retain = async (
  { pool, logger, now = Date.now }: RetentionDeps,
  signal?: AbortSignal,
): Promise<readonly string[]> => {
  const at = now();
  await ensurePartitions(pool, [at, at + weekMs]);
  const young = new Date(at - keptMs);
  const failed = await failWaiting(pool, young, signal);
  if (failed > 0) logger.info({ deliveries: failed }, 'what waited 30 days for an endpoint that is off has failed');
  const ends = new Map<number, string[]>();
  for (const table of partitioned) {
    for (const { name, end } of await partitionsOf(pool, table)) {
      if (end <= young.getTime()) ends.set(end, [...(ends.get(end) ?? []), name]);
    }
  }
  const dropped: string[] = [];
  for (const [end, names] of ends) {
    const week = [new Date(end - weekMs), new Date(end), young];
    // The first check takes no lock: it may take a while, and mostly the week is still needed.
    if (await isNeeded(pool, week)) continue;
    try {
      if (await drop(pool, names, week)) dropped.push(...names);
    } catch (error) {
      logger.info({ err: error, partitions: names }, 'partitions could not be dropped now');
    }
  }
  if (dropped.length > 0) {
    forgetPartitions(pool);
    logger.info({ partitions: dropped }, 'old webhook deliveries were dropped');
  }
  return dropped;
};

const isNeeded = async (db: Pick<Pool, 'query'>, week: readonly Date[]): Promise<boolean> =>
  (await db.query<{ needed: boolean }>(neededSql, [...week])).rows[0]?.needed !== false;

/** Drops both tables of the week or neither. It checks again under the lock, while no row can be inserted. */
const drop = (pool: Pool, names: readonly string[], week: readonly Date[]): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    const free = await tx.query<{ free: boolean }>('select pg_try_advisory_xact_lock($1) as free', [lockKey]);
    if (free.rows[0]?.free !== true) return { commit: false, result: false };
    await tx.query(`set local lock_timeout = ${lockWaitMs}`);
    await tx.query('lock table ops.webhook_messages, ops.webhook_deliveries in access exclusive mode');
    if (await isNeeded(tx, week)) return { commit: false, result: false };
    await tx.query(`drop table ${names.map((name) => `ops.${name}`).join(', ')}`);
    return { commit: true, result: true };
  });

/** Runs a round at once, and then every hour until the signal aborts. */
export const runRetention = async (deps: RetentionDeps, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    try {
      await retain(deps, signal);
    } catch (error) {
      deps.logger.warn({ err: error }, 'old webhook deliveries could not be looked for');
    }
    await pause(everyMs, signal);
  }
};

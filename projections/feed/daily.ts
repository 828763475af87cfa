import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { hasNumbered } from './moments.ts';
import { checkpointAt } from './sign.ts';

/**
 * Signs without being asked what each workspace's feed had at the end of each day (UTC) on which it grew, and what a restore left
 * it, as soon as that begins an epoch. The size of an ended
 * day is the same for every process, so two that sign at once make one checkpoint. The key is stored before the first one:
 * if we die in between, the next round signs with that key. Each checkpoint is a statement of its own: if we die behind one,
 * the next round begins at the day behind it.
 */

const dayMs = 86_400_000;
/** How long behind its end a day is signed: the store's clock may be behind that of Postgres. Milliseconds. */
const graceMs = 5 * 60_000;
const lookMs = 60_000;
/** Checkpoints of one round; a round that reaches it is followed by another at once. */
const maxSigned = 1_000;
/** Workspaces of one look. */
const maxWorkspaces = 200;

export interface DailyOptions {
  readonly store: Pick<EventStore, 'head'>;
  readonly pool: Pool;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

interface Due {
  readonly workspace_id: string;
  readonly epoch: number;
  /** Events that the newest checkpoint has, or that a former epoch left. */
  readonly signed: string;
  readonly size: string;
}

/** Workspaces of which an event of an ended day stands behind the newest checkpoint of this epoch. */
const dueSql = `
select h.workspace_id, e.epoch, s.signed, h.size
from (select max(epoch) as epoch from ops.feed_epochs) e cross join ops.feed_heads h cross join lateral (
  select greatest(
    coalesce((select max(size) from ops.feed_checkpoints c where c.workspace_id = h.workspace_id and c.epoch = e.epoch), 0),
    coalesce((select k.sequence from ops.feed_kept k where k.workspace_id = h.workspace_id and k.epoch = e.epoch), 0)
  ) as signed
) s join ops.feed_events n on n.workspace_id = h.workspace_id and n.sequence = s.signed + 1
where h.workspace_id > $1 and n.at < $2 order by h.workspace_id limit ${maxWorkspaces}`;

/** The last event before that instant: times never fall along a feed. */
const lastBefore = async (pool: Pool, { workspace_id: id, signed, size }: Due, end: Date): Promise<number> => {
  let [within, beyond] = [Number(signed) + 1, Number(size) + 1];
  while (beyond - within > 1) {
    const middle = Math.floor((within + beyond) / 2);
    if ((await timeOf(pool, id, middle)) < end.getTime()) within = middle;
    else beyond = middle;
  }
  return within;
};

const timeOf = async (pool: Pool, workspaceId: string, sequence: number): Promise<number> => {
  const { rows } = await pool.query<{ readonly at: Date }>(
    'select at from ops.feed_events where workspace_id = $1 and sequence = $2',
    [workspaceId, sequence],
  );
  return rows[0]?.at.getTime() ?? Number.POSITIVE_INFINITY;
};

const dayBegin = (at: number): number => Math.floor(at / dayMs) * dayMs;

/**
 * Signs the ended days that have no checkpoint yet, at most 1,000 of them. Everything stored before `now` must have its number.
 * @returns how many it signed
 */
export const signEndedDays = async (
  { pool, secrets, signal }: Pick<DailyOptions, 'pool' | 'secrets' | 'signal'>,
  now: number,
): Promise<number> => {
  const today = new Date(dayBegin(now - graceMs));
  let signed = 0;
  for (let after = '00000000-0000-0000-0000-000000000000'; signed < maxSigned; ) {
    const { rows } = await pool.query<Due>(dueSql, [after, today]);
    for (const due of rows) {
      let reached = Number(due.signed);
      while (signed < maxSigned && !signal.aborted) {
        const first = await timeOf(pool, due.workspace_id, reached + 1);
        if (first >= today.getTime()) break;
        reached = await lastBefore(pool, { ...due, signed: String(reached) }, new Date(dayBegin(first) + dayMs));
        const { workspace_id: workspaceId, epoch } = due;
        await checkpointAt(pool, secrets, { workspaceId, epoch, size: reached, now });
        signed += 1;
      }
    }
    const last = rows.at(-1);
    if (last === undefined || signal.aborted) return signed;
    after = last.workspace_id;
  }
  return signed;
};

/** Workspaces that an epoch left something, of which no checkpoint says so. */
const begunSql = `
select k.workspace_id, k.sequence from ops.feed_kept k
where k.epoch = $1 and k.sequence > 0 and not exists (
  select from ops.feed_checkpoints c where c.workspace_id = k.workspace_id and c.epoch = k.epoch and c.size = k.sequence)
limit ${maxWorkspaces}`;

/** Signs what the newest epoch began with, for at most 1,000 workspaces. @returns how many it signed */
export const signBegunEpoch = async (
  { pool, secrets, signal }: Pick<DailyOptions, 'pool' | 'secrets' | 'signal'>,
  epoch: number,
  now: number,
): Promise<number> => {
  let signed = 0;
  while (signed < maxSigned && !signal.aborted) {
    const { rows } = await pool.query<{ readonly workspace_id: string; readonly sequence: string }>(begunSql, [epoch]);
    for (const { workspace_id: workspaceId, sequence } of rows) {
      await checkpointAt(pool, secrets, { workspaceId, epoch, size: Number(sequence), now });
    }
    signed += rows.length;
    if (rows.length < maxWorkspaces) break;
  }
  return signed;
};

/** Runs until the signal. A failure ends a round and never the numbering. */
export const signDaily = async (options: DailyOptions): Promise<void> => {
  const { pool, store, signal, logger } = options;
  let head: bigint | null = null;
  let headAt = 0;
  /** The day before which everything is signed, and the epoch whose begin is. */
  let [done, doneEpoch] = [0, 0];
  const rest = (ms: number) => delay(ms, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted) {
    try {
      const { rows } = await pool.query<{ readonly now: Date; readonly epoch: number | null }>(
        'select now() as now, (select max(epoch) from ops.feed_epochs) as epoch',
      );
      const [now, epoch] = [rows[0]?.now.getTime() ?? 0, rows[0]?.epoch ?? 0];
      if (epoch > doneEpoch) {
        const signed = await signBegunEpoch(options, epoch, now);
        if (signed > 0) logger.info({ signed, epoch }, 'signed what a restore left the feed');
        if (signed >= maxSigned) continue;
        doneEpoch = epoch;
      }
      if (dayBegin(now - graceMs) > done) {
        if (headAt < dayBegin(now - graceMs)) [head, headAt] = [await store.head(), now];
        if (await hasNumbered(pool, head)) {
          const signed = await signEndedDays(options, headAt);
          if (signed > 0) logger.info({ signed }, 'signed what the feed had at the end of its days');
          if (signed >= maxSigned) continue;
          done = dayBegin(headAt - graceMs);
        }
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'the checkpoints of ended days were not signed; retrying');
    }
    await rest(done === 0 ? 1_000 : lookMs);
  }
};

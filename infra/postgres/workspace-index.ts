/**
 * Fills the index of workspaces behind the appends, one process at a time: the rows that are there when it first runs, and
 * then what any release appends. A death costs nothing: rows and the position they reach to are one statement.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { EventTail } from './event-tail.ts';
import { acquireLease } from './log-lease.ts';
import { backoffMs, bigintTypes } from './pool.ts';
import { workspaceStatements } from './workspace-index.sql.ts';

/** Events of one piece: some tens of milliseconds. */
const pieceEvents = 5_000;
/** Rest after a full piece, in times of what the piece took: a long table takes a quarter of one processor, not all of it. */
const restShare = 3;
/** Least time between two pieces that are not full, milliseconds. Readers look through what lies behind the index themselves. */
const gatherMs = 1_000;
/** Between two lines about a table that is still being filled, milliseconds. */
const tellMs = 10_000;

export interface KeepIndexOptions {
  readonly signal: AbortSignal;
  readonly logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Most events of one piece. Default 5,000. */
  readonly pieceEvents?: number;
}

export interface WorkspaceIndexSource {
  readonly url: string;
  readonly schema: string;
  readonly pool: pg.Pool;
  readonly tail: Pick<EventTail, 'version' | 'changed'>;
}

/** Runs until the signal; stands by while another process does it. What fails is tried again. */
export const keepWorkspaceIndex = async (source: WorkspaceIndexSource, options: KeepIndexOptions): Promise<void> => {
  const { url, schema } = source;
  const { signal, logger } = options;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const lease = await acquireLease({ url, name: `workspace index ${schema}`, signal });
      if (lease === null) return;
      try {
        await fill(source, { ...options, signal: AbortSignal.any([signal, lease.lost]) });
      } finally {
        await lease.release();
      }
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (failures === 0) logger.warn({ err: error }, 'the index of workspaces waits for Postgres');
      await pause(backoffMs(failures++), signal);
    }
  }
};

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

const fill = async ({ pool, schema, tail }: WorkspaceIndexSource, options: KeepIndexOptions): Promise<void> => {
  const { signal, logger } = options;
  const most = options.pieceEvents ?? pieceEvents;
  const sql = workspaceStatements(schema);
  await pool.query(sql.forget);
  let filled = 0;
  let told = performance.now();
  while (!signal.aborted) {
    const { version } = tail;
    if ((await pool.query({ name: 'workspace-behind', text: sql.behind })).rowCount === 0) {
      await tail.changed(version, signal);
      continue;
    }
    const began = performance.now();
    const { rows } = await pool.query<[position: bigint, events: bigint]>({
      ...{ name: 'workspace-fill', text: sql.fill, values: [most], rowMode: 'array', types: bigintTypes },
    });
    const [position = null, count = 0n] = rows[0] ?? [];
    filled += Number(count);
    const isFull = count === BigInt(most);
    if (performance.now() - told >= tellMs && isFull) {
      told = performance.now();
      logger.info({ position: String(position), events: filled }, 'the index of workspaces is being filled');
    }
    if (isFull) await pause((performance.now() - began) * restShare, signal);
    else {
      if (filled > most)
        logger.info({ position: String(position), events: filled }, 'the index of workspaces is filled');
      filled = 0;
      await pause(gatherMs, signal);
    }
  }
};

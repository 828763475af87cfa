/**
 * Fills the index of workspaces behind the appends, one process at a time: first the existing rows, then the appends of
 * any release. A crash costs nothing: one statement writes the rows and their position.
 */

import type pg from 'pg';
import { pause } from '#contracts/base/pause.ts';
import type { EventTail } from './event-tail.ts';
import { type KeeperOptions, runInOneProcess } from './one-process.ts';
import { bigintTypes } from './pool.ts';
import { forgetInPieces, workspaceStatements } from './workspace-index.sql.ts';

/** Events of one piece: some tens of milliseconds. */
const pieceEvents = 5_000;
/** Rest after a full piece, in times of its duration: a long table takes a quarter of one processor, not all of it. */
const restShare = 3;
/** Rest after a piece that had little to do, milliseconds. Readers scan the events behind the index themselves. */
const gatherMs = 1_000;
/** Between two log lines while a table is still being indexed, milliseconds. */
const reportMs = 10_000;

export interface KeepIndexOptions extends KeeperOptions {
  /** Most events of one piece. Default 5,000. */
  readonly pieceEvents?: number;
}

export interface WorkspaceIndexSource {
  readonly url: string;
  readonly schema: string;
  readonly pool: pg.Pool;
  readonly tail: Pick<EventTail, 'version' | 'changed'>;
}

/** Runs until the signal; stands by while another process does it. */
export const keepWorkspaceIndex = (source: WorkspaceIndexSource, options: KeepIndexOptions): Promise<void> => {
  const { url, schema } = source;
  return runInOneProcess({ ...options, url, name: `workspace index ${schema}` }, (signal) =>
    fill(source, { ...options, signal }),
  );
};

const fill = async ({ pool, schema, tail }: WorkspaceIndexSource, options: KeepIndexOptions): Promise<void> => {
  const { signal, logger } = options;
  const max = options.pieceEvents ?? pieceEvents;
  const sql = workspaceStatements(schema);
  const forgetOthers = async (): Promise<void> => {
    const { rowCount } = await pool.query(sql.disbelieve);
    if (rowCount !== 0) logger.warn({}, 'the event table has another history: its index is rebuilt');
    await forgetInPieces(pool, schema, signal);
  };
  await forgetOthers();
  let filled = 0;
  let reportedAt = performance.now();
  while (!signal.aborted) {
    const { version } = tail;
    if ((await pool.query({ name: 'workspace-behind', text: sql.behind })).rowCount === 0) {
      await tail.changed(version, signal);
      continue;
    }
    const began = performance.now();
    const { rows } = await pool.query<[position: bigint, events: number, more: boolean]>({
      ...{ name: 'workspace-fill', text: sql.fill, values: [max], rowMode: 'array', types: bigintTypes },
    });
    const [position = null, count = 0, hasMore = false] = rows[0] ?? [];
    filled += count;
    if (performance.now() - reportedAt >= reportMs && hasMore) {
      reportedAt = performance.now();
      logger.info({ position: String(position), events: filled }, 'the index of workspaces is being filled');
    }
    // Another process fills it too, or the table was restored meanwhile.
    if (position === null) await forgetOthers();
    const isFull = hasMore && count > max / 2;
    if (isFull) await pause((performance.now() - began) * restShare, signal);
    else {
      if (filled > max && !hasMore)
        logger.info({ position: String(position), events: filled }, 'the index of workspaces is filled');
      filled = 0;
      await pause(gatherMs, signal);
    }
  }
};

import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '../postgres/transactions.ts';
import type { Logger } from '../process/telemetry.ts';
import { skipScan } from './due-work.ts';
import { Rest, type WakeSignal } from './wake-signal.ts';

/**
 * Work that an event asks for and whose size no bound limits: the consumer notes it in a row, and a loop carries it out
 * page by page. A page is one transaction, which also moves or deletes the row: a process that dies in it leaves the page
 * to the next one, and two processes never work on one row.
 */

/**
 * Locks the row to work on. Workspaces draw lots for each page, so that the rows of one never delay those of another.
 * NOTE: The table has `workspace_id`, `noted_at`, and an index of both.
 */
const drawSql = (table: string): string => `
with recursive ${skipScan({ name: table, where: 'true' }, 'workspace_id')}, drawn as materialized (
  select key from keys where key is not null order by random() limit 1
)
select one.* from ${table} one where one.workspace_id = (select key from drawn)
order by one.noted_at limit 1 for update skip locked`;

/** A walk by ids begins behind this one. NOTE: with `id > $1 or $1 is null` Postgres reads what the walk has passed. */
export const beforeAll = '00000000-0000-0000-0000-000000000000';

/** @returns whether there may be another page */
export const workOnPage = <Row extends object>(
  pool: Pool,
  table: string,
  page: (tx: PoolClient, row: Row) => Promise<void>,
): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<Row>(drawSql(table));
    if (rows[0] === undefined) return { commit: false, result: false };
    await page(tx, rows[0]);
    return { commit: true, result: true };
  });

export interface PagesOptions {
  readonly logger: Logger;
  /** Milliseconds between two searches when no signal wakes the loop. */
  readonly pollMs: number;
  readonly wakeSignal: WakeSignal;
  readonly signal: AbortSignal;
}

/** Works on pages until the signal aborts. @param what for the log */
export const runPages = async (
  what: string,
  page: () => Promise<boolean>,
  { logger, pollMs, wakeSignal, signal }: PagesOptions,
): Promise<void> => {
  const isOver = (): boolean => signal.aborted;
  const rest = new Rest(pollMs);
  signal.addEventListener('abort', () => wakeSignal.wake(), { once: true });
  while (!isOver()) {
    const more = await page().catch((error: unknown) => {
      logger.warn({ err: error }, `a page of ${what} failed and is tried again`);
      return false;
    });
    const waitMs = rest.after(more);
    if (!more) await wakeSignal.wait(waitMs, isOver);
  }
};

import type { Pool, PoolClient } from 'pg';
import { beforeAll, workOnPage } from '#runtime/work/noted-work.ts';
import { recount } from './accounts.ts';
import { settle } from './waiting.ts';

/**
 * Deletes the jobs of archived and erased clients page by page: a client may have a hundred thousand. The event closes
 * the client at once, and from then on nothing makes a job for its accounts and no network is asked about them: the
 * worker looks at the client's stream before and after it asks.
 */

export interface Closing {
  readonly clientId: string;
  readonly workspaceId: string;
  /** Answers that could not be parsed are deleted too. */
  readonly erased: boolean;
}

const closeSql = `
insert into ops.insights_zones (id, revision, closed) values ($1, -1, true)
on conflict (id) do update set closed = true`;
/** The walk begins again. */
const noteSql = `
insert into ops.insights_closings (client_id, workspace_id, erased) values ($1, $2, $3)
on conflict (client_id) do update set erased = insights_closings.erased or excluded.erased, after = null`;

/**
 * NOTE: Call it before the transaction locks accounts: a page locks its row here, and then accounts.
 */
export const noteClosed = async (tx: PoolClient, closings: readonly Closing[]): Promise<void> => {
  for (const { clientId, workspaceId, erased } of closings.toSorted((a, b) => (a.clientId < b.clientId ? -1 : 1))) {
    await tx.query(noteSql, [clientId, workspaceId, erased]);
    await tx.query(closeSql, [clientId]);
  }
};

const accountsAtOnce = 100;
/** Jobs, and parked answers, that a page deletes at most. */
const rowsAtOnce = 1_000;

interface NotedClosing {
  readonly client_id: string;
  readonly erased: boolean;
  readonly after: string | null;
}

const accountsSql = `
select account_id as id from ops.insights_accounts
where client_id = $1 and account_id > $2 order by account_id limit $3 for update`;
const deleteSql = (table: string): string => `
delete from ${table} where id = any(array(select id from ${table} where account_id = any($1::uuid[]) limit $2))`;

const page = async (tx: PoolClient, { client_id: clientId, erased, after }: NotedClosing): Promise<void> => {
  const found = await tx.query<{ id: string }>(accountsSql, [clientId, after ?? beforeAll, accountsAtOnce]);
  const ids = found.rows.map(({ id }) => id);
  const jobs = await tx.query(deleteSql('ops.insights_jobs'), [ids, rowsAtOnce]);
  const parked = erased ? await tx.query(deleteSql('ops.insights_parked'), [ids, rowsAtOnce]) : null;
  await recount(tx, ids);
  await settle(tx, ids, true);
  // The same accounts have more.
  if (jobs.rowCount === rowsAtOnce || parked?.rowCount === rowsAtOnce) return;
  if (ids.length < accountsAtOnce) await tx.query('delete from ops.insights_closings where client_id = $1', [clientId]);
  else await tx.query('update ops.insights_closings set after = $2 where client_id = $1', [clientId, ids.at(-1)]);
};

/** @returns whether there may be another page */
export const closePage = (pool: Pool): Promise<boolean> => workOnPage(pool, 'ops.insights_closings', page);

import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { webhook } from '#domain/webhook.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { Call } from '../operation.ts';
import { Turns } from '../turns.ts';

/**
 * How many endpoints a workspace may have. An endpoint is its own stream, and no append to one can tell how many others
 * there are: so a place is taken first, in a table, by one caller of a workspace at a time. The read model counts what it
 * shows, the table what it does not show yet. If we die between the place and the append, the place lapses.
 */

export const defaultPerWorkspace = 50;
/** No call works on that long after it took its place, milliseconds: whose stream has nothing by then is not coming. */
const lapseMs = 60_000;
/** Any constant; with the workspace it is the lock of whoever counts. */
const lockClass = 7_070_718;

/** Whoever counts waits for those before it with a connection in its hands: so one of a workspace does, and few of all. */
const turnsOf = new WeakMap<Pool, Turns>();
const inTurn = <T>(pool: Pool, workspaceId: string, work: () => Promise<T>): Promise<T> => {
  const shares = { noun: 'registrations of webhook endpoints', each: 1, total: 4, waiting: 100, waitMs: 5_000 };
  const turns = turnsOf.get(pool) ?? new Turns(shares);
  turnsOf.set(pool, turns);
  return turns.run(workspaceId, work);
};

/** `$1`: the workspace; `$2`: no need to count further. */
const countSql = `
select (select count(*) from (
    select from read.webhooks w where w.workspace_id = $1 and w.deleted_at is null limit $2) live)
  + (select count(*) from ops.webhook_places p
     where p.workspace_id = $1 and not exists (select from read.webhooks w where w.id = p.webhook_id)) as taken`;

/** False when there is no room. Taking the same place again succeeds. */
const takePlace = (pool: Pool, workspaceId: string, webhookId: string, most: number): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, workspaceId]);
    await tx.query(
      `delete from ops.webhook_places p using read.webhooks w where p.workspace_id = $1 and w.id = p.webhook_id`,
      [workspaceId],
    );
    const own = await tx.query(
      `select from ops.webhook_places where webhook_id = $1 union all select from read.webhooks where id = $1`,
      [webhookId],
    );
    if (own.rowCount !== 0) return { commit: true, result: true };
    const { rows } = await tx.query<{ taken: string }>(countSql, [workspaceId, most]);
    if (Number(rows[0]?.taken) >= most) return { commit: true, result: false };
    await tx.query('insert into ops.webhook_places (webhook_id, workspace_id) values ($1, $2)', [
      webhookId,
      workspaceId,
    ]);
    return { commit: true, result: true };
  });

/** Frees the places of those who died before their append. */
const lapse = async (pool: Pool, store: DomainStore, workspaceId: string): Promise<void> => {
  const { rows } = await pool.query<{ id: string }>(
    `select webhook_id as id from ops.webhook_places
     where workspace_id = $1 and taken_at < now() - $2 * interval '1 millisecond'`,
    [workspaceId, lapseMs],
  );
  for (const { id } of rows) {
    const { state } = await store.load(webhook, id);
    if (state.status !== 'live') await pool.query('delete from ops.webhook_places where webhook_id = $1', [id]);
  }
};

/** @throws Rejection `too_many_webhooks` */
export const requireRoom = async (
  { deps, workspaceId, behind }: Pick<Call, 'deps' | 'workspaceId' | 'behind'>,
  webhookId: string,
): Promise<void> => {
  const { pool, store, webhooksPerWorkspace: most = defaultPerWorkspace } = deps;
  const take = () => inTurn(pool, workspaceId, () => takePlace(pool, workspaceId, webhookId, most));
  if (await take()) return;
  // What the caller has just deleted leaves room, and so does what was never born.
  await behind(['webhooks']);
  await lapse(pool, store, workspaceId);
  if (await take()) return;
  throw new Rejection(
    'too_many_webhooks',
    `A workspace may have ${most} webhook endpoints: delete one that is no longer used, or let one endpoint hear more types.`,
  );
};

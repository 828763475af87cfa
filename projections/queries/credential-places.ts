import type { Pool, PoolClient } from 'pg';
import { apikey } from '#domain/apikey.ts';
import { grant } from '#domain/grant.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { view } from '../shapes.ts';

/**
 * Limits the keys and the grants of a workspace that have power. Each is a stream of its own, and an append to it cannot
 * count the others: the caller first takes a place in a table, under a lock of the workspace. The read model counts the
 * credentials that it shows, the table those that it does not show yet. If we die between the place and the append, the
 * place lapses.
 */

export const maxKeys = 100;
export const maxGrants = 1_000;

/** No call runs this long after it took its place, milliseconds: a stream that is still empty then stays empty. */
const lapseMs = 60_000;
/** Any constant; the lock has the workspace for its second half. */
const lockClass = 7_070_720;

export type CredentialKind = 'apikey' | 'grant';

const limits: Readonly<Record<CredentialKind, { readonly view: string; readonly most: number }>> = {
  apikey: { view: view('api_keys'), most: maxKeys },
  grant: { view: view('grants'), most: maxGrants },
};

const take = async (tx: PoolClient, kind: CredentialKind, workspaceId: string, id: string): Promise<boolean> => {
  const { view, most } = limits[kind];
  await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [lockClass, workspaceId]);
  await tx.query(
    `delete from ops.credential_places p using ${view} c where p.workspace_id = $1 and p.kind = $2 and c.id = p.id`,
    [workspaceId, kind],
  );
  const own = await tx.query(
    `select from ops.credential_places where id = $1 union all select from ${view} v where id = $1`,
    [id],
  );
  if (own.rowCount !== 0) return true;
  const taken = await tx.query(
    `insert into ops.credential_places (id, kind, workspace_id) select $3, $2, $1
     where (select count(*) from (
         select from ${view} v where workspace_id = $1 and revoked_at is null and expires_at > now() limit $4) live)
       + (select count(*) from ops.credential_places where workspace_id = $1 and kind = $2) < $4`,
    [workspaceId, kind, id, most],
  );
  return taken.rowCount === 1;
};

/** Frees the places of callers that died before their append. */
const lapse = async (pool: Pool, store: DomainStore, kind: CredentialKind, workspaceId: string): Promise<void> => {
  const { rows } = await pool.query<{ id: string }>(
    `select id::text from ops.credential_places
     where workspace_id = $1 and kind = $2 and taken_at < now() - $3 * interval '1 millisecond' limit $4`,
    [workspaceId, kind, lapseMs, limits[kind].most],
  );
  for (const { id } of rows) {
    const { state } = kind === 'apikey' ? await store.load(apikey, id) : await store.load(grant, id);
    if (state.status !== 'active') await freePlace(pool, id);
  }
};

export const freePlace = async (pool: Pool, id: string): Promise<void> => {
  await pool.query('delete from ops.credential_places where id = $1', [id]);
};

/**
 * Takes a place for a key or a grant that is about to be made. Taking the same place again succeeds.
 * @param shown waits until the read model shows what the caller has just ended
 * @returns false where the workspace has as many as it may have
 */
export const takePlace = async (
  { pool, store }: { readonly pool: Pool; readonly store: DomainStore },
  kind: CredentialKind,
  { workspaceId, id }: { readonly workspaceId: string; readonly id: string },
  shown: () => Promise<unknown> = async () => undefined,
): Promise<boolean> => {
  const taking = () =>
    inTransaction(pool, async (tx) => ({ commit: true, result: await take(tx, kind, workspaceId, id) }));
  if (await taking()) return true;
  await shown();
  await lapse(pool, store, kind, workspaceId);
  return taking();
};

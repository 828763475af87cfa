import type { Pool } from 'pg';
import { findGrants, type OpenGrant, openGrants } from '#projections/models/grants.ts';
import type { GrantEnder } from '#schemas/grant.ts';
import { type RevokeDeps, revokeGrant } from '../grants.ts';
import { isDocumentId } from './client-policy.ts';
import { dropRetiredKeys } from './keys.ts';

/** Deletes what has expired, and ends grants whose reason is gone. Each round does a bounded part of it. */

export interface Swept {
  readonly artifacts: number;
  readonly grants: number;
  readonly clients: number;
  readonly keys: number;
}

const batch = 1_000;
const maxBatches = 20;
const page = 500;
/**
 * A grant without a code by then never gets one, an access token without a refresh token has expired, and read models
 * that lag by then show its member.
 */
const settledMs = 3_600_000;
const zero = '00000000-0000-0000-0000-000000000000';

/** Spent refresh tokens stay until they would have expired: a reuse of one must find it. */
const deleteExpired = async (pool: Pool): Promise<number> => {
  let deleted = 0;
  for (let round = 0; round < maxBatches; round += 1) {
    const { rowCount } = await pool.query(
      `delete from auth.oauth_artifacts where (model, id_hash) in (
         select model, id_hash from auth.oauth_artifacts where expires_at < now() - interval '1 minute'
         order by expires_at limit $1 for update skip locked
       )`,
      [batch],
    );
    deleted += rowCount ?? 0;
    if ((rowCount ?? 0) < batch) break;
  }
  return deleted;
};

/** Registered clients that nobody gave anything: some programs register anew at each start. */
const deleteIdleClients = async (pool: Pool): Promise<number> => {
  const { rowCount } = await pool.query(
    `with idle as (
       delete from auth.oauth_clients where client_id in (
         select client_id from auth.oauth_clients c
         where coalesce(last_used_at, created_at) < now() - interval '7 days'
           and (last_used_at is null or last_used_at < now() - interval '180 days')
           and not exists (
             select 1 from auth.oauth_artifacts a
             where a.client_id = c.client_id and a.model in ('Grant', 'AuthorizationCode', 'RefreshToken')
           )
         limit $1
       ) returning client_id
     ), registrations as (
       delete from auth.oauth_artifacts where client_id in (select client_id from idle)
     )
     select client_id from idle`,
    [batch],
  );
  return rowCount ?? 0;
};

interface GrantUse {
  readonly grant_id: string;
  /** A code or refresh token that has not expired. Of a spent one another may be on its way. */
  readonly has_token: boolean;
  readonly has_client: boolean;
}

const usesOf = async (pool: Pool, open: readonly OpenGrant[]): Promise<ReadonlyMap<string, GrantUse>> => {
  const { rows } = await pool.query<GrantUse>(
    `select g.id::text as grant_id,
       exists (
         select 1 from auth.oauth_artifacts a
         where a.grant_id = g.id and a.model in ('AuthorizationCode', 'RefreshToken') and a.expires_at > now()
       ) as has_token,
       exists (select 1 from auth.oauth_clients c where c.client_id = g.client_id) as has_client
     from unnest($1::uuid[], $2::text[]) as g (id, client_id)`,
    [open.map(({ grantId }) => grantId), open.map(({ clientId }) => clientId)],
  );
  return new Map(rows.map((row) => [row.grant_id, row]));
};

export class OAuthSweep {
  readonly #deps: RevokeDeps;
  #afterOpen = zero;
  #afterKept = zero;

  constructor(deps: RevokeDeps) {
    this.#deps = deps;
  }

  /** One round: call it again and again, for example every ten minutes, in any number of processes. */
  async run(): Promise<Swept> {
    const { pool } = this.#deps;
    return {
      artifacts: (await deleteExpired(pool)) + (await this.#deleteRevoked()),
      grants: await this.#endGrants(),
      clients: await deleteIdleClients(pool),
      keys: await dropRetiredKeys(pool),
    };
  }

  /** Ends grants that have expired, that no token can come of, and whose member or app is gone. */
  async #endGrants(): Promise<number> {
    const open = await openGrants(this.#deps.pool, this.#afterOpen, page);
    this.#afterOpen = open.length < page ? zero : (open.at(-1)?.grantId ?? zero);
    const held = await usesOf(this.#deps.pool, open);
    let ended = 0;
    for (const one of open) {
      const by = this.#enderOf(one, held.get(one.grantId));
      if (by !== null && (await revokeGrant(this.#deps, one.grantId, by))) ended += 1;
    }
    return ended;
  }

  #enderOf({ clientId, expiresAt, givenAt, isMember }: OpenGrant, held: GrantUse | undefined): GrantEnder | null {
    const now = this.#deps.clock();
    if (Date.parse(expiresAt) <= now) return 'expired';
    if (held?.has_client === false && !isDocumentId(clientId)) return 'client';
    if (Date.parse(givenAt) + settledMs > now) return null;
    if (!isMember) return 'member_removed';
    return held?.has_token === false ? 'expired' : null;
  }

  /** Rows of grants that were revoked by a process that died before it deleted them. */
  async #deleteRevoked(): Promise<number> {
    const { pool } = this.#deps;
    const { rows } = await pool.query<{ grant_id: string }>(
      `select grant_id::text from auth.oauth_artifacts where model = 'Grant' and grant_id > $1 order by grant_id limit $2`,
      [this.#afterKept, page],
    );
    const ids = rows.map(({ grant_id }) => grant_id);
    this.#afterKept = ids.length < page ? zero : (ids.at(-1) ?? zero);
    const found = await findGrants(pool, ids);
    const revoked = ids.filter((id) => (found.get(id)?.revokedAt ?? null) !== null);
    const { rowCount } = await pool.query('delete from auth.oauth_artifacts where grant_id = any($1::uuid[])', [
      revoked,
    ]);
    return rowCount ?? 0;
  }
}

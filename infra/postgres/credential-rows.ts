/** The table of network credentials, and the statements that change one row by compare-and-set. */
import type pg from 'pg';
import type { EndingCredential } from '#contracts/ports/credentials.ts';
import type { Platform } from '#schemas/common.ts';

export interface CredentialRow {
  readonly accountId: string;
  readonly clientId: string;
  readonly version: number;
  readonly sealed: Buffer;
  readonly expiresAt: Date | null;
  /** Who refreshes it, or began to and did not end it; null: nobody. */
  readonly refresher: string | null;
  /** Whether that refresh may still be going on. */
  readonly isHeld: boolean;
  /** Whether the answer to an earlier refresh may have been lost. */
  readonly isLost: boolean;
  /** Unavailable refreshes in a row. */
  readonly failures: number;
  readonly lapseReason: string | null;
}

export const findSql = `
  select account_id::text as "accountId", client_id::text as "clientId", version, sealed,
         expires_at as "expiresAt", refresher::text, coalesce(refresh_until > now(), false) as "isHeld",
         lost_since is not null as "isLost", failures, lapse_reason as "lapseReason"
  from ops.network_credentials where account_id = any($1::uuid[])`;

/** One insert or one replacement of the version that the caller sealed against; else no row. */
export const keepSql = `
  insert into ops.network_credentials as kept
    (account_id, workspace_id, client_id, platform, version, sealed, expires_at, grant_id)
  values ($1, $2, $3, $4, $5, $6, $7, $8)
  on conflict (account_id) do update set
    workspace_id = excluded.workspace_id, client_id = excluded.client_id, platform = excluded.platform,
    version = excluded.version, sealed = excluded.sealed, expires_at = excluded.expires_at, kept_at = now(),
    grant_id = excluded.grant_id,
    refresher = null, refresh_until = null, lost_since = null, failures = 0, rests_until = null,
    lapse_reason = null, lapse_reported = false
  where kept.version = excluded.version - 1`;

/** A lease whose end has passed without a result marks that an answer may have been lost. */
export const leaseSql = `
  update ops.network_credentials set
    refresher = $3, refresh_until = now() + $4 * interval '1 millisecond',
    lost_since = case when refresher is null then lost_since else coalesce(lost_since, refresh_until) end
  where account_id = $1 and version = $2 and lapse_reason is null and (refresher is null or refresh_until <= now())
  returning client_id::text as "clientId", sealed, expires_at as "expiresAt"`;

/** NOTE: by the refresher, not by time: nobody else took the lease over, so the answer is the latest one. */
const held = 'where account_id = $1 and version = $2 and refresher = $3';

export const storeSql = `
  update ops.network_credentials set
    version = version + 1, sealed = $4, expires_at = $5, refresher = null, refresh_until = null, lost_since = null,
    failures = 0, rests_until = null
  ${held}`;

export const lapseSql = `
  update ops.network_credentials set
    lapse_reason = $4, refresher = null, refresh_until = null, failures = 0, rests_until = null
  ${held} returning lost_since is not null as "isLost"`;

/** $4: whether the answer may be lost. $5, $6: milliseconds of the first rest and of the longest. */
export const releaseSql = `
  update ops.network_credentials set
    refresher = null, refresh_until = null, failures = failures + 1,
    rests_until = now() + least($6, $5 * 2.0 ^ least(failures, 30)) * interval '1 millisecond',
    lost_since = case when $4 then coalesce(lost_since, now()) else lost_since end
  ${held}`;

export const endingSql = `
  select account_id::text as "accountId", workspace_id::text as "workspaceId", client_id::text as "clientId", platform,
         version, expires_at as "expiresAt"
  from (
    select account_id, workspace_id, client_id, platform, version, expires_at,
           row_number() over (partition by workspace_id order by expires_at, account_id) as place
    from ops.network_credentials
    where platform = $1 and expires_at < $2 and not lapse_reported
      and (refresh_until is null or refresh_until <= now()) and (rests_until is null or rests_until <= now())
  ) due
  order by place, expires_at, account_id limit $3`;

export const endingCredentials = async (
  pool: pg.Pool,
  platform: Platform,
  before: string,
  limit: number,
): Promise<readonly EndingCredential[]> => {
  type Ending = EndingCredential['owner'] & { readonly version: number; readonly expiresAt: Date };
  const { rows } = await pool.query<Ending>(endingSql, [platform, before, limit]);
  return rows.map(({ version, expiresAt, ...owner }) => ({ owner, version, expiresAt: expiresAt.toISOString() }));
};

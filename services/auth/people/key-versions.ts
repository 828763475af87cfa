import type { Pool } from 'pg';

/**
 * How many records need each version of the secret key to sign people in: their addresses, second factors and recovery
 * codes, and the keys and clients of the authorization server.
 */
export const personKeyUses = async (pool: Pool): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; n: number }>(`
    select version, count(*)::int as n from (
      select mac_version as version from auth.people
      union all select totp_version from auth.people
      union all select recovery_version from auth.people
      union all select key_version from auth.signing_keys
      union all select key_version from auth.oauth_clients
    ) uses where version is not null group by 1`);
  return new Map(rows.map(({ version, n }) => [version, n]));
};

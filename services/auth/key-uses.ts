import type { Pool } from 'pg';
import { oauthKeyVersions } from './oauth/tables.ts';

/**
 * How many records need each version of the secret key to sign people and apps in: addresses, second factors and
 * recovery codes of persons, and the keys and clients of the authorization server.
 */
export const signInKeyUses = async (pool: Pool): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; n: number }>(`
    select version, count(*)::int as n from (
      select mac_version as version from auth.people
      union all select totp_version from auth.people
      union all select recovery_version from auth.people
    ) uses where version is not null group by 1`);
  const uses = new Map(await oauthKeyVersions(pool));
  for (const { version, n } of rows) uses.set(version, (uses.get(version) ?? 0) + n);
  return uses;
};

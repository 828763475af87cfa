import { hash } from 'node:crypto';
import type { Pool } from 'pg';

/** How many stored values were encrypted with each version of SECRET_KEY: the list may not lose these. */
export const oauthKeyVersions = async (pool: Pool): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; count: string }>(
    `select key_version as version, count(*) from (
       select key_version from auth.signing_keys
       union all select key_version from auth.oauth_clients where key_version is not null
     ) used group by 1`,
  );
  return new Map(rows.map(({ version, count }) => [version, Number(count)]));
};

/** Ids of grants are no secrets, but one rule for all leaves no room for a mistake. */
export const hashOf = (id: string): Buffer => hash('sha256', id, 'buffer');

/** What the page of consent shows of the app, in the row of an authorization. */
export interface AppOfInteraction {
  readonly name: string | null;
  /** Its id is the address of its metadata document. */
  readonly hasDocument: boolean;
}

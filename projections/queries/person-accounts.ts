import type { Pool } from 'pg';
import type { Platform } from '#schemas/common.ts';
import { isAskedSql } from '../models/sql.ts';
import { view } from '../shapes.ts';

/** What networks know by one person: accounts of every workspace, and the work that waits for them. */

export interface PersonAt {
  readonly network: 'live' | 'sandbox';
  readonly platform: Platform;
  /** An account by its id on the network, or whose consent it was. */
  readonly person: string;
}

/**
 * All accounts of a person, of every client and state. Those of a consent are found for as long as its credentials are kept.
 * NOTE: those of the sandbox have no index; it calls where somebody who knows its secret lets it.
 * @param after id of the account that came last; null: from the beginning
 */
export const accountsOfPerson = async (
  pool: Pool,
  { network, platform, person }: PersonAt,
  after: string | null,
  limit: number,
): Promise<readonly { readonly id: string; readonly workspaceId: string }[]> => {
  const own = (where: string): string => `select a.id, a.workspace_id from ${view('accounts')} a where ${where}`;
  const ofConsent = `union ${own(`a.network = 'live' and a.id in (select c.account_id
    from ops.network_credentials c where c.platform = any(ops.networks_of_consent($1)) and c.grant_id = $2)`)}`;
  const { rows } = await pool.query<{ id: string; workspaceId: string }>(
    `select id::text as id, workspace_id::text as "workspaceId" from (
       ${own(`a.platform = $1 and a.external_id = $2 and a.network = '${network}'`)}
       ${network === 'live' ? ofConsent : ''}
     ) found where $3::uuid is null or id > $3 order by id limit $4`,
    [platform, person, after, limit],
  );
  return rows;
};

/** Whether credentials of any of these accounts are kept. */
export const haveCredentials = async (pool: Pool, accountIds: readonly string[]): Promise<boolean> => {
  const { rows } = await pool.query('select from ops.network_credentials where account_id = any($1::uuid[]) limit 1', [
    accountIds,
  ]);
  return rows.length > 0;
};

/** Targets of these accounts of which a network is asked what became of them, the newest first; nobody asks for longer than a week. */
export const askedTargetsOf = async (
  pool: Pool,
  accountIds: readonly string[],
  limit: number,
): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ id: string }>(
    `select t.id::text as id from ${view('post_targets')} t
     where t.account_id = any($1::uuid[]) and t.due_at > now() - interval '7 days' and ${isAskedSql('t')} order by t.due_at desc limit $2`,
    [accountIds, limit],
  );
  return rows.map(({ id }) => id);
};

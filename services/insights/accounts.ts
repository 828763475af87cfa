import type { PoolClient } from 'pg';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { aheadSql, nowSql } from '#runtime/work/sandbox-clocks.ts';
import type { AccountEvent } from '#schemas/account.ts';
import { idOf } from '#schemas/topics.ts';
import { nextNight } from './schedule.ts';
import { settle } from './waiting.ts';

/** Which accounts can be polled, and when the first job of each is due. */

/** Locks in the order of the ids, so that two transactions never deadlock. */
export const lockAccounts = async (tx: PoolClient, accountIds: readonly string[]): Promise<void> => {
  await tx.query(
    'select 1 from ops.insights_accounts where account_id = any($1::uuid[]) order by account_id for update',
    [accountIds],
  );
};

/** A job is due by the clock of the workspace; the account's row says when that is in real time. */
export const recount = async (tx: PoolClient, accountIds: readonly string[]): Promise<void> => {
  await tx.query(
    `update ops.insights_accounts a
     set next_at = (select min(j.due_at) from ops.insights_jobs j where j.account_id = a.account_id) - ${aheadSql('a.workspace_id')}
     where a.account_id = any($1::uuid[])`,
    [accountIds],
  );
};

/**
 * An account may get its row from the event of a post before its own first event comes. @param of account → workspace
 */
export const ensureAccounts = (tx: PoolClient, of: ReadonlyMap<string, string>) =>
  tx.query(
    `insert into ops.insights_accounts (account_id, workspace_id)
     select account, workspace from unnest($1::uuid[], $2::uuid[]) as o (account, workspace) order by account
     on conflict (account_id) do nothing`,
    [[...of.keys()], [...of.values()]],
  );

export const onAccountEvent = async (tx: PoolClient, event: DecodedEvent): Promise<void> => {
  const accountId = idOf(event.stream);
  const { workspaceId } = event.metadata;
  const { type, data } = { type: event.type, data: event.data } as unknown as AccountEvent;
  await ensureAccounts(tx, new Map([[accountId, workspaceId]]));
  const update = async (set: string, values: readonly unknown[]): Promise<boolean> => {
    const { rowCount } = await tx.query(
      `update ops.insights_accounts set revision = $2, ${set} where account_id = $1 and revision < $2`,
      [accountId, event.revision, ...values],
    );
    return rowCount === 1;
  };
  switch (type) {
    case 'AccountConnected': {
      const { clientId, platform, network, timezone } = data;
      const set = 'client_id = $3, platform = $4, network = $5, timezone = $6, connected = true, not_before = null';
      if (await update(set, [clientId, platform, network, timezone])) await makeNightly(tx, accountId, workspaceId);
      return;
    }
    case 'AccountReauthorized':
      if (await update('timezone = $3, connected = true, not_before = null', [data.timezone])) {
        await makeNightly(tx, accountId, workspaceId);
      }
      return;
    case 'AccountReauthRequired':
    case 'AccountDisconnected':
      // Its jobs stay as they are: when the account is connected again, the worker polls for the due ones.
      if (await update('connected = false', [])) await leave(tx, accountId);
      return;
    default:
  }
};

interface Zoned {
  readonly timezone: string | null;
  readonly workspaceTimezone: string | null;
  readonly closed: boolean;
  readonly now: Date;
}

export const zoneOf = async (
  tx: PoolClient,
  accountId: string,
): Promise<{
  readonly timezone: string;
  readonly workspaceTimezone: string;
  readonly closed: boolean;
  readonly now: number;
}> => {
  const { rows } = await tx.query<Zoned>(
    `select coalesce(a.timezone, c.timezone, w.timezone) as timezone, w.timezone as "workspaceTimezone",
       coalesce(c.closed, false) as closed, ${nowSql('a.workspace_id')} as now
     from ops.insights_accounts a
     left join ops.insights_zones c on c.id = a.client_id left join ops.insights_zones w on w.id = a.workspace_id
     where a.account_id = $1`,
    [accountId],
  );
  const [row] = rows;
  return {
    timezone: row?.timezone ?? 'UTC',
    workspaceTimezone: row?.workspaceTimezone ?? 'UTC',
    closed: row?.closed ?? false,
    now: row?.now.getTime() ?? Date.now(),
  };
};

const makeNightly = async (tx: PoolClient, accountId: string, workspaceId: string): Promise<void> => {
  await lockAccounts(tx, [accountId]);
  const { timezone, closed, now } = await zoneOf(tx, accountId);
  if (closed) return;
  await tx.query(
    `insert into ops.insights_jobs (id, kind, workspace_id, account_id, due_at) values ($1, 'account', $2, $1, $3)
     on conflict (id) do nothing`,
    [accountId, workspaceId, new Date(nextNight(now, timezone, accountId))],
  );
  await recount(tx, [accountId]);
};

/** Refreshes no longer wait for the account. */
const leave = async (tx: PoolClient, accountId: string): Promise<void> => {
  await lockAccounts(tx, [accountId]);
  await tx.query('update ops.insights_jobs set wanted = false where account_id = $1 and wanted', [accountId]);
  await settle(tx, [accountId], true);
};

/** The worker no longer polls these accounts, whose rows the caller has locked. */
export const forget = async (tx: PoolClient, accountIds: readonly string[]): Promise<void> => {
  await tx.query('delete from ops.insights_jobs where account_id = any($1::uuid[])', [accountIds]);
  await recount(tx, accountIds);
  await settle(tx, accountIds, true);
};

import type { Pool, PoolClient } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { workspace } from '#domain/workspace.ts';
import type { DecodedEvent } from '#runtime/codec.ts';
import { type DomainStore, uuidv7 } from '#runtime/domain-store.ts';
import { execute } from '#runtime/execute.ts';
import { faultPoint } from '#runtime/fault-point.ts';
import type { Logger } from '#runtime/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { hearAccount, lockAccounts, recount } from './accounts.ts';
import type { Network, SourceOf } from './deps.ts';
import type { Cadence } from './schedule.ts';

/**
 * Figures that a person wants fresh. A row for each account of a request says whether what is wanted of it was tried
 * once; when all were, the request is completed.
 */

interface Known {
  readonly accountId: string;
  readonly platform: Platform;
  readonly network: Network;
}

/** What was asked less than this ago is not asked again; null: it cannot be asked now. */
type LeastOf = (one: Known) => number | null;

type Requested = Extract<WorkspaceEvent, { type: 'AnalyticsRefreshRequested' }>['data'];

export const hearRefresh = async (
  tx: PoolClient,
  event: DecodedEvent,
  { refreshId, accountIds }: Requested,
  deps: { readonly store: DomainStore; readonly sourceOf: SourceOf; readonly cadence: Cadence },
): Promise<void> => {
  const { workspaceId, $correlationId } = event.metadata;
  await learnAccounts(tx, deps.store, workspaceId, accountIds);
  await lockAccounts(tx, accountIds);
  const { rows } = await tx.query<Known>(
    `select account_id as "accountId", platform, network from ops.metrics_accounts
     where account_id = any($1::uuid[]) and workspace_id = $2 and connected
       and (not_before is null or not_before <= now())`,
    [accountIds, workspaceId],
  );
  const leastOf: LeastOf = ({ network, platform }) => deps.sourceOf(network, platform)?.leastIntervalMs ?? null;
  const asked = rows.flatMap((one) => {
    const least = leastOf(one);
    return least === null ? [] : [{ accountId: one.accountId, least }];
  });
  const ids = asked.map(({ accountId }) => accountId);
  await tx.query(
    `update ops.metrics_jobs j set due_at = least(j.due_at, date_trunc('milliseconds', now())), wanted = true
     from unnest($1::uuid[], $2::float8[]) as asked (account_id, least)
     where j.account_id = asked.account_id
       and (j.told_at is null or j.told_at <= now() - asked.least * interval '1 millisecond')
       and (j.published_at is null or j.published_at > now() - $3 * interval '1 millisecond')`,
    [ids, asked.map(({ least }) => least), deps.cadence.lifeMs],
  );
  await recount(tx, ids);
  await tx.query(
    `insert into ops.metrics_refreshes (refresh_id, account_id, workspace_id, cause_id, correlation_id, failed, done)
     select $1, account_id, $3, $4, $5, not (account_id = any($6::uuid[])),
       not exists (select 1 from ops.metrics_jobs j where j.account_id = of_it.account_id and j.wanted)
     from unnest($2::uuid[]) as of_it (account_id) on conflict do nothing`,
    [refreshId, accountIds, workspaceId, event.id, $correlationId, ids],
  );
};

/** Accounts travel on other lanes: one that is not heard of yet is read from its stream. */
const learnAccounts = async (
  tx: PoolClient,
  store: DomainStore,
  workspaceId: string,
  accountIds: readonly string[],
): Promise<void> => {
  const { rows } = await tx.query<{ id: string }>(
    `select id from unnest($1::uuid[]) as asked (id)
     where not exists (select 1 from ops.metrics_accounts a where a.account_id = asked.id and a.revision >= 0) order by id`,
    [accountIds],
  );
  for (const { id } of rows) {
    const events = await store.readStream(`account-${id}`);
    if (events[0]?.metadata.workspaceId !== workspaceId) continue;
    for (const one of events) await hearAccount(tx, one);
  }
};

interface Complete {
  readonly refreshId: string;
  readonly workspaceId: string;
  readonly causeId: string;
  readonly correlationId: string;
  readonly told: readonly string[];
  readonly failed: readonly string[];
}

const completeSql = `
select refresh_id as "refreshId", workspace_id as "workspaceId", cause_id as "causeId", correlation_id as "correlationId",
  coalesce(array_agg(account_id::text order by account_id) filter (where not failed), '{}') as told,
  coalesce(array_agg(account_id::text order by account_id) filter (where failed), '{}') as failed
from ops.metrics_refreshes group by 1, 2, 3, 4 having bool_and(done) limit 20`;

/**
 * Says of each request whose accounts were all tried that it is complete; what could be had is in the log before. If we
 * die before the append its rows are still there and it is said by the next look; after it the decider finds it said.
 */
export const completeRefreshes = async (
  pool: Pool,
  store: DomainStore,
  logger: Pick<Logger, 'warn'>,
): Promise<void> => {
  const { rows } = await pool.query<Complete>(completeSql);
  for (const { refreshId, workspaceId, causeId, correlationId, told, failed } of rows) {
    const command = { type: 'CompleteRefresh', refreshId, accountIds: told, failedAccountIds: failed } as const;
    try {
      await execute(store, workspace, workspaceId, command, {
        workspaceId,
        actor: { type: 'service', id: 'metrics' },
        correlationId,
        causationId: causeId,
        causeEventId: causeId,
        commandId: uuidv7(),
        now: new Date().toISOString(),
      });
    } catch (error) {
      // A workspace without a stream: a store that was put back to an earlier day. Nobody waits for it any more.
      if (!(error instanceof Rejection)) throw error;
      logger.warn({ err: error, refreshId }, 'a refresh could not be completed');
    }
    faultPoint('metrics:after-refreshed');
    await pool.query('delete from ops.metrics_refreshes where refresh_id = $1', [refreshId]);
  }
};

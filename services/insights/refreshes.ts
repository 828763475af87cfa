import type { Pool, PoolClient } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { refresh } from '#domain/refresh.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { serviceContext } from '#runtime/eventing/service-context.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { workOnPage } from '#runtime/work/noted-work.ts';
import type { Platform } from '#schemas/common.ts';
import type { RefreshEvent } from '#schemas/refresh.ts';
import { idOf } from '#schemas/topics.ts';
import { lockAccounts, onAccountEvent, recount } from './accounts.ts';
import type { Network, SourceOf } from './deps.ts';
import type { Cadence } from './schedule.ts';

/**
 * Refreshes that a person requested. One row for each account of a request records whether its wanted jobs were tried
 * once. The request's row counts the accounts that still wait. When none waits, the worker completes the request.
 */

interface Known {
  readonly accountId: string;
  readonly platform: Platform;
  readonly network: Network;
}

/** Shortest time between two polls of the account, milliseconds; null: the account cannot be polled. */
type MinIntervalOf = (one: Known) => number | null;

type Requested = Extract<RefreshEvent, { type: 'AnalyticsRefreshRequested' }>['data'];

/**
 * Notes the request: nothing limits the posts of its accounts, so that its jobs are made due page by page. No row of its
 * accounts exists before their page, and `waiting` counts them all until then: the request cannot be complete too early.
 */
const noteSql = `
with made as (
  insert into ops.insights_refreshes (refresh_id, workspace_id, cause_id, correlation_id, waiting)
  values ($1, $2, $3, $4, cardinality($5::uuid[])) on conflict do nothing returning refresh_id
)
insert into ops.insights_asks (refresh_id, workspace_id, account_ids) select refresh_id, $2, $5 from made
on conflict do nothing`;

/** @returns whether there is something to ask for */
export const onRefreshEvent = async (tx: PoolClient, event: DecodedEvent): Promise<boolean> => {
  const { workspaceId, $correlationId } = event.metadata;
  const { accountIds } = event.data as unknown as Requested;
  // A refresh of no accounts is complete from the start.
  if (accountIds.length === 0) return false;
  const each = [...new Set(accountIds)];
  await tx.query(noteSql, [idOf(event.stream), workspaceId, event.id, $correlationId, each]);
  return true;
};

export interface AskDeps {
  readonly store: DomainStore;
  readonly sourceOf: SourceOf;
  readonly cadence: Cadence;
}

interface NotedAsk {
  readonly refresh_id: string;
  readonly workspace_id: string;
  readonly account_ids: readonly string[];
  /** How many of them are asked. */
  readonly asked: number;
}

/** Accounts of a page; each may have as many jobs as its network lets it have young posts. */
const accountsAtOnce = 20;

const knownSql = `
select a.account_id as "accountId", a.platform, a.network from ops.insights_accounts a
left join ops.insights_zones c on c.id = a.client_id
where a.account_id = any($1::uuid[]) and a.workspace_id = $2 and a.connected
  and (a.not_before is null or a.not_before <= now()) and c.closed is not true`;
const wantSql = `
update ops.insights_jobs j set due_at = least(j.due_at, date_trunc('milliseconds', now())), wanted = true
from unnest($1::uuid[], $2::float8[]) as asked (account_id, min_ms)
where j.account_id = asked.account_id
  and (j.answered_at is null or j.answered_at <= now() - asked.min_ms * interval '1 millisecond')
  and (j.published_at is null or j.published_at > now() - $3 * interval '1 millisecond')`;
/** `$2`: all accounts of the page; `$3`: those that are asked, the others have failed. */
const askedSql = `
with made as (
  insert into ops.insights_refresh_accounts (refresh_id, account_id, failed, done)
  select $1::uuid, account_id, not (account_id = any($3::uuid[])),
    not exists (select 1 from ops.insights_jobs j where j.account_id = of_it.account_id and j.wanted)
  from unnest($2::uuid[]) as of_it (account_id) on conflict do nothing returning done
)
update ops.insights_refreshes set waiting = waiting - (select count(*) from made where done) where refresh_id = $1`;

const ask = async (tx: PoolClient, row: NotedAsk, deps: AskDeps): Promise<void> => {
  const { refresh_id: refreshId, workspace_id: workspaceId } = row;
  const accountIds = row.account_ids.slice(row.asked, row.asked + accountsAtOnce);
  await lockAccounts(tx, accountIds);
  await learnAccounts(tx, deps.store, workspaceId, accountIds);
  const { rows } = await tx.query<Known>(knownSql, [accountIds, workspaceId]);
  const minIntervalOf: MinIntervalOf = ({ network, platform }) =>
    deps.sourceOf(network, platform)?.minIntervalMs ?? null;
  const asked = rows.flatMap((one) => {
    const minMs = minIntervalOf(one);
    return minMs === null ? [] : [{ accountId: one.accountId, minMs }];
  });
  const ids = asked.map(({ accountId }) => accountId);
  await tx.query(wantSql, [ids, asked.map(({ minMs }) => minMs), deps.cadence.lifeMs]);
  await recount(tx, ids);
  await tx.query(askedSql, [refreshId, accountIds, ids]);
  const passed = row.asked + accountIds.length;
  if (passed >= row.account_ids.length) {
    await tx.query('delete from ops.insights_asks where refresh_id = $1', [refreshId]);
  } else await tx.query('update ops.insights_asks set asked = $2 where refresh_id = $1', [refreshId, passed]);
};

/** @returns whether there may be another page */
export const askPage = (pool: Pool, deps: AskDeps): Promise<boolean> =>
  workOnPage<NotedAsk>(pool, 'ops.insights_asks', (tx, row) => ask(tx, row, deps));

/** The events of accounts come on other lanes: an account whose events have not come is read from its stream. */
const learnAccounts = async (
  tx: PoolClient,
  store: DomainStore,
  workspaceId: string,
  accountIds: readonly string[],
): Promise<void> => {
  const { rows } = await tx.query<{ id: string }>(
    `select id from unnest($1::uuid[]) as asked (id)
     where not exists (select 1 from ops.insights_accounts a where a.account_id = asked.id and a.revision >= 0) order by id`,
    [accountIds],
  );
  for (const { id } of rows) {
    const events = await store.readStream(`account-${id}`);
    if (events[0]?.metadata.workspaceId !== workspaceId) continue;
    for (const one of events) await onAccountEvent(tx, one);
  }
};

interface Complete {
  readonly refreshId: string;
  readonly workspaceId: string;
  readonly causeId: string;
  readonly correlationId: string;
}

const completeSql = `
select refresh_id as "refreshId", workspace_id as "workspaceId", cause_id as "causeId", correlation_id as "correlationId"
from ops.insights_refreshes where waiting = 0 and (not_before is null or not_before <= now()) order by refresh_id limit 20`;

/** Rest of a request that could not be completed, milliseconds. */
const restMs = 60_000;

type Log = Pick<Logger, 'warn' | 'error'>;

/**
 * Completes each request whose accounts were all tried; the log holds their observations before the completion. If the
 * process dies before the append, the rows stay and the next call completes the request; after the append the decider
 * yields no event. A request that cannot be completed does not delay the others.
 *
 * @returns how many requests it found
 */
export const completeRefreshes = async (pool: Pool, store: DomainStore, logger: Log): Promise<number> => {
  const { rows } = await pool.query<Complete>(completeSql);
  for (const one of rows) {
    const { refreshId } = one;
    try {
      await complete(pool, store, one);
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      // An event store that was restored to an earlier day has no such stream, so no caller waits for the refresh.
      if (!(error instanceof Rejection)) {
        logger.error({ err: error, refreshId }, 'a refresh could not be completed');
        const sql = `update ops.insights_refreshes set not_before = now() + $2 * interval '1 millisecond' where refresh_id = $1`;
        await pool.query(sql, [refreshId, restMs]);
        continue;
      }
      logger.warn({ err: error, refreshId }, 'an unknown refresh was not completed');
    }
    faultPoint('insights:after-refreshed');
    await inTransaction(pool, async (tx) => {
      await tx.query('delete from ops.insights_refresh_accounts where refresh_id = $1', [refreshId]);
      await tx.query('delete from ops.insights_refreshes where refresh_id = $1', [refreshId]);
      return { commit: true, result: null };
    });
  }
  return rows.length;
};

const complete = async (pool: Pool, store: DomainStore, one: Complete): Promise<void> => {
  const { refreshId, workspaceId, causeId, correlationId } = one;
  const { rows } = await pool.query<{ id: string; failed: boolean }>(
    'select account_id as id, failed from ops.insights_refresh_accounts where refresh_id = $1 order by account_id',
    [refreshId],
  );
  // Another process has completed it and deleted the rows.
  if (rows.length === 0) return;
  const idsOf = (failed: boolean) => rows.flatMap((row) => (row.failed === failed ? [row.id] : []));
  const command = { type: 'Complete', accountIds: idsOf(false), failedAccountIds: idsOf(true) } as const;
  const cause = { workspaceId, correlationId, causationId: causeId, causeEventId: causeId };
  await execute(store, refresh, refreshId, command, serviceContext('metrics', cause, Date.now()));
};

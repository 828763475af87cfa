/** What one event asks of many accounts is done page by page behind it: the end of a client, and a refresh. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { closePage } from '#services/insights/closings.ts';
import { onEvents } from '#services/insights/intake.ts';
import { askPage } from '#services/insights/refreshes.ts';
import { cadence } from '#services/insights/schedule.ts';
import { startInsights } from '#services/insights/worker.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { observerOf } from './world.ts';

const accounts = 250;
const jobsOfEach = 80;
const page = 1_000;

suite('events about many accounts', { timeoutMs: 120_000 }, (t) => {
  let parts: PublishingWorld;
  const workspaceId = randomUUID();
  t.before(async () => {
    parts = await PublishingWorld.open((await preparedDatabase()).url);
  });
  t.after(() => parts?.close());

  const number = async (sql: string, values: readonly unknown[] = []): Promise<number> =>
    (await parts.pool.query<{ n: number }>(`select count(*)::int as n from ${sql}`, [...values])).rows[0]?.n ?? 0;
  /** A client whose accounts have jobs that are not due, and each a parked answer. */
  const clientWith = async (count: number, workspace = workspaceId): Promise<string> => {
    const clientId = randomUUID();
    const sql = `
      with a as (
        insert into ops.insights_accounts (account_id, workspace_id, client_id, platform, network, connected, next_at)
        select gen_random_uuid(), $1, $2, 'x', 'sandbox', true, now() + interval '1 day' from generate_series(1, $3)
        returning account_id
      ), p as (
        insert into ops.insights_parked (workspace_id, account_id, platform, reason, raw) select $1, account_id, 'x', '', '' from a
      )
      insert into ops.insights_jobs (id, kind, workspace_id, account_id, due_at, published_at)
      select gen_random_uuid(), 'post', $1, account_id, now() + interval '1 day', now() from a, generate_series(1, $4)`;
    await parts.pool.query(sql, [workspace, clientId, count, jobsOfEach]);
    return clientId;
  };
  const of = (clientId: string) =>
    `account_id in (select account_id from ops.insights_accounts where client_id = '${clientId}')`;
  const jobs = (clientId: string) => number(`ops.insights_jobs where ${of(clientId)}`);
  const parked = (clientId: string) => number(`ops.insights_parked where ${of(clientId)}`);
  const touchedSql = `
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)::int as touched
    from pg_stat_xact_user_tables where schemaname = 'ops' and relname like 'metrics%'`;
  /** @returns the rows that the event touches in its own transaction */
  const applied = (type: string, stream: string, of: string, data: unknown = {}): Promise<number> =>
    inTransaction(parts.pool, async (tx) => {
      const metadata = { workspaceId: of, $correlationId: 'c' };
      const event = { id: randomUUID(), stream, type, revision: 1, data, metadata };
      const { store, sandbox } = parts;
      const touched = async () => (await tx.query<{ touched: number }>(touchedSql)).rows[0]?.touched ?? 0;
      const before = await touched();
      const deps = { store, sourceOf: () => sandbox, cadence, onNoted: () => undefined };
      await onEvents(tx, [event as unknown as DecodedEvent], deps);
      return { commit: true, result: (await touched()) - before };
    });
  const apply = (clientId: string, type: 'ClientArchived' | 'ClientErased', of = workspaceId): Promise<number> =>
    applied(type, `client-${clientId}`, of);

  t('the event touches no job; two processes delete them page by page, and a refresh waits no longer', async () => {
    const [archived, erased, other] = [await clientWith(accounts), await clientWith(3), await clientWith(2)];
    const refreshId = randomUUID();
    await parts.pool.query(
      `with r as (
         insert into ops.insights_refreshes (refresh_id, workspace_id, cause_id, correlation_id, waiting, not_before)
         values ($1, $2, $1, 'c', 3, now() + interval '1 day')
       ), j as (
         update ops.insights_jobs set wanted = true where ${of(erased)}
       )
       insert into ops.insights_refresh_accounts (refresh_id, account_id)
       select $1, account_id from ops.insights_accounts where client_id = $3`,
      [refreshId, workspaceId, erased],
    );
    for (const [clientId, type] of [
      [archived, 'ClientArchived'],
      [erased, 'ClientErased'],
    ] as const) {
      const touched = await apply(clientId, type);
      ok(touched <= page, `${type} touched ${touched} rows`);
    }
    equal(await jobs(archived), accounts * jobsOfEach);
    equal(await number('ops.insights_zones where closed and id = any($1)', [[archived, erased]]), 2);
    // A death here leaves the notes: the processes that start later find them.
    await closePage(parts.pool);
    const left = (await jobs(archived)) + (await jobs(erased));
    ok(left >= (accounts + 3) * jobsOfEach - page, `${left} are left after a page`);
    const foreign = await clientWith(2, randomUUID());
    await apply(foreign, 'ClientArchived', randomUUID());
    // Drawn by lot: four in a million that it is not drawn in eighteen pages.
    for (let pages = 0; pages < 18 && (await jobs(foreign)) > 0; pages += 1) await closePage(parts.pool);
    equal(await jobs(foreign), 0, 'another workspace does not wait for all of them');
    ok((await jobs(archived)) > 0);
    const stop = new AbortController();
    const running = [1, 2].map(() => startInsights(observerOf(parts, parts.log), stop.signal));
    await until('no note is left', async () => (await number('ops.insights_closings')) === 0);
    stop.abort();
    await Promise.all(running.map(({ done }) => done));
    deepEqual([await jobs(archived), await jobs(erased), await jobs(other)], [0, 0, 2 * jobsOfEach]);
    deepEqual([await parked(archived), await parked(erased), await parked(other)], [accounts, 0, 2]);
    equal(
      await number('ops.insights_accounts where client_id = any($1) and next_at is not null', [[archived, erased]]),
      0,
    );
    equal(await number('ops.insights_refreshes where refresh_id = $1 and waiting = 0', [refreshId]), 1);
  });

  t('a refresh of many accounts touches none of their jobs in its event; its pages ask for each, once', async () => {
    const clientId = await clientWith(accounts);
    await parts.pool.query('update ops.insights_accounts set revision = 0 where client_id = $1', [clientId]);
    const { rows } = await parts.pool.query<{ id: string }>(
      'select account_id as id from ops.insights_accounts where client_id = $1',
      [clientId],
    );
    const accountIds = rows.map(({ id }) => id);
    const wanted = () => number(`ops.insights_jobs where wanted and ${of(clientId)}`);
    const refreshId = randomUUID();
    const touched = await applied('AnalyticsRefreshRequested', `refresh-${refreshId}`, workspaceId, { accountIds });
    ok(touched <= page, `the event touched ${touched} rows`);
    deepEqual([await wanted(), await number('ops.insights_refreshes where waiting = $1', [accounts])], [0, 1]);
    const { store, sandbox, pool } = parts;
    const ask = () => askPage(pool, { store, sourceOf: () => sandbox, cadence });
    await ask();
    const first = await wanted();
    ok(first > 0 && first <= 2 * page, `a page asks for ${first} jobs`);
    const process = async () => {
      while (await ask());
    };
    while ((await number('ops.insights_asks')) > 0) await Promise.all([process(), process()]);
    equal(await wanted(), accounts * jobsOfEach);
    equal(await number('ops.insights_refresh_accounts where not done and refresh_id = $1', [refreshId]), accounts);
    equal(await number('ops.insights_refreshes where waiting = $1', [accounts]), 1);
  });
});

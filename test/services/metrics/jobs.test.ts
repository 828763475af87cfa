import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { refresh } from '#domain/refresh.ts';
import { execute } from '#runtime/execute.ts';
import { createLogger } from '#runtime/telemetry.ts';
import { Jobs } from '#services/metrics/jobs.ts';
import { completeRefreshes } from '#services/metrics/refreshes.ts';
import { migrateMetrics } from '#services/metrics/tables.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';

suite('what is to be asked', (t) => {
  let pool: pg.Pool;
  let parts: Awaited<ReturnType<typeof openPublishing>>;
  const workspaceId = randomUUID();
  t.before(async () => {
    const { url } = await testDatabase();
    parts = await openPublishing(url);
    pool = new pg.Pool({ connectionString: url, max: 2 });
    await migrateMetrics(pool);
  });
  t.after(async () => {
    await pool?.end();
    await parts?.close();
  });

  t('of the many accounts of one workspace not all stand before the one of another', async () => {
    const connected = (workspace: string, count: number, ago: string) =>
      pool.query(
        `insert into ops.metrics_accounts (account_id, workspace_id, connected, next_at)
         select gen_random_uuid(), $1, true, now() - $3::interval from generate_series(1, $2)`,
        [workspace, count, ago],
      );
    const jobs = new Jobs(pool);
    const [small, quiet] = [randomUUID(), randomUUID()];
    await connected(workspaceId, 10, '1 hour');
    await connected(small, 2, '1 minute');
    await connected(quiet, 3, '-1 minute');
    const countOf = async (workspace: string) =>
      (await jobs.due('metrics', 4)).filter((one) => one.workspaceId === workspace).length;
    deepEqual([await countOf(workspaceId), await countOf(small), await countOf(quiet)], [10, 2, 0]);
    await connected(workspaceId, 1_000, '2 hours');
    deepEqual([await countOf(workspaceId), await countOf(small), await countOf(quiet)], [4, 2, 0]);
    equal((await jobs.due('metrics', 4))[0]?.workspaceId, workspaceId, 'what waits longest comes first');
  });

  t('a refresh that cannot be completed keeps no other from it', async () => {
    const [bad, good] = [randomUUID(), randomUUID()].sort() as [string, string];
    const accountId = randomUUID();
    const context = {
      ...{ workspaceId, actor: { type: 'service', id: 'test' } as const, commandId: randomUUID() },
      ...{ correlationId: 'c', causationId: 'c', now: new Date().toISOString() },
    };
    for (const id of [bad, good]) {
      await execute(parts.store, refresh, id, { type: 'Request', accountIds: [accountId] }, context);
      await pool.query(
        `insert into ops.metrics_refreshes (refresh_id, workspace_id, cause_id, correlation_id, waiting)
         values ($1, $2, gen_random_uuid(), $3, 0)`,
        [id, workspaceId, id === bad ? '' : 'c'],
      );
      const sql = 'insert into ops.metrics_refresh_accounts (refresh_id, account_id, done) values ($1, $2, true)';
      await pool.query(sql, [id, accountId]);
    }
    await completeRefreshes(pool, parts.store, createLogger('metrics', 'silent'));
    const completed = async (id: string) => (await parts.store.load(refresh, id)).state.status;
    deepEqual([await completed(bad), await completed(good)], ['open', 'done']);
    const { rows } = await pool.query(
      'select refresh_id as id, not_before > now() as rests from ops.metrics_refreshes',
    );
    deepEqual(rows, [{ id: bad, rests: true }]);
    await pool.query('update ops.metrics_refreshes set correlation_id = $1, not_before = null', ['c']);
    await completeRefreshes(pool, parts.store, createLogger('metrics', 'silent'));
    equal(await completed(bad), 'done');
    ok((await pool.query('select 1 from ops.metrics_refresh_accounts')).rowCount === 0);
  });
});

import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { refresh } from '#domain/refresh.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import { type DueAccount, DueAccountSearch, firstSql, stepSql } from '#services/insights/due.ts';
import { completeRefreshes } from '#services/insights/refreshes.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';

suite('due accounts and refreshes', (t) => {
  let pool: pg.Pool;
  let parts: Awaited<ReturnType<typeof openPublishing>>;
  const workspaceId = randomUUID();
  t.before(async () => {
    const { url } = await preparedDatabase();
    parts = await openPublishing(url);
    pool = new pg.Pool({ connectionString: url, max: 2 });
  });
  t.after(async () => {
    await pool?.end();
    await parts?.close();
  });

  /** Accounts that became ready so long ago. */
  const ready = async (workspace: string, count: number, ago: string, platform: Platform = 'x', rest = '-3 hours') => {
    const { rows } = await pool.query<{ id: string }>(
      `insert into ops.insights_accounts (account_id, workspace_id, platform, connected, next_at, not_before)
       select gen_random_uuid(), $1, $4, true, now() - $3::interval, now() + $5::interval from generate_series(1, $2)
       returning account_id as id`,
      [workspace, count, ago, platform, rest],
    );
    return rows.map(({ id }) => id);
  };
  const idsOf = (due: readonly DueAccount[]) => due.map(({ accountId }) => accountId);
  const emptied = () => pool.query('delete from ops.insights_accounts');

  t(
    'a look finds the longest waiting accounts of each network, but none that is not due, delayed or leased',
    async () => {
      await emptied();
      const search = new DueAccountSearch(pool, 'metrics');
      const old = await ready(workspaceId, 3, '1 hour');
      await ready(workspaceId, 40, '1 minute');
      const other = await ready(workspaceId, 1, '1 second', 'bluesky');
      const [not, rests, leased, full] = [
        await ready(workspaceId, 1, '-1 minute'),
        await ready(workspaceId, 1, '2 hours', 'x', '1 minute'),
        await ready(workspaceId, 1, '2 hours'),
        await ready(workspaceId, 1, '2 hours', 'threads'),
      ];
      const lease = `insert into ops.work_leases (kind, id, holder, epoch, until) values ('metrics', $1, 'h', 1, now() + interval '1 hour')`;
      await pool.query(lease, leased);
      const found = idsOf(await search.find(['x', 'bluesky'], 4));
      for (const id of [...old, ...other]) ok(found.includes(id));
      for (const id of [...not, ...rests, ...leased, ...full]) ok(!found.includes(id));
      ok((await search.lag()) >= 7_200);
      await emptied();
      equal(await search.lag(), 0);
    },
  );

  t('a walk finds accounts behind a large workspace, and its steps cost the same however many there are', async () => {
    await emptied();
    const search = new DueAccountSearch(pool, 'metrics');
    const large = randomUUID();
    await ready(large, 3_000, '2 hours');
    await pool.query(
      `insert into ops.insights_accounts (account_id, workspace_id, platform, connected, next_at)
       select gen_random_uuid(), gen_random_uuid(), 'x', true, now() + n % 3 * interval '1 hour' - interval '1 minute'
       from generate_series(1, 1500) n`,
    );
    await pool.query('analyze ops.insights_accounts');
    const wanted = new Set(
      (
        await pool.query<{ id: string }>(
          'select account_id as id from ops.insights_accounts where workspace_id <> $1 and next_at <= now()',
          [large],
        )
      ).rows.map(({ id }) => id),
    );
    equal(wanted.size, 500);
    const begun = performance.now();
    let most = 0;
    while (wanted.size > 0) {
      const due = await search.find(['x'], 16);
      ok(performance.now() - begun < 30_000 * patience, `${wanted.size} are not found`);
      most = Math.max(most, due.length);
      for (const id of idsOf(due)) wanted.delete(id);
      search.taken(due);
    }
    ok(most <= 250 + 16, `${most} at once`);
    const plan = async (sql: string, values: readonly unknown[]) => {
      const { rows } = await pool.query(`explain (analyze, buffers, format json) ${sql}`, [...values]);
      const [{ Plan }] = rows[0]['QUERY PLAN'];
      return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
    };
    const zero = '00000000-0000-0000-0000-000000000000';
    const step = await plan(stepSql, ['metrics', ['x'], [zero], 16, 250]);
    ok(step < 250 * 12, `a step of 250 workspaces reads ${step} blocks`);
    const first = await plan(firstSql, ['metrics', ['x'], 16]);
    ok(first < 16 * 12, `the first 16 of 3,500 are found in ${first} blocks`);
    await emptied();
  });

  t('a refresh that cannot be completed delays no other', async () => {
    const [bad, good] = [randomUUID(), randomUUID()].sort() as [string, string];
    const accountId = randomUUID();
    const context = {
      ...{ workspaceId, actor: { type: 'service', id: 'test' } as const, commandId: randomUUID() },
      ...{ correlationId: 'c', causationId: 'c', now: new Date().toISOString() },
    };
    for (const id of [bad, good]) {
      await execute(parts.store, refresh, id, { type: 'Request', accountIds: [accountId] }, context);
      await pool.query(
        `insert into ops.insights_refreshes (refresh_id, workspace_id, cause_id, correlation_id, waiting)
         values ($1, $2, gen_random_uuid(), $3, 0)`,
        [id, workspaceId, id === bad ? '' : 'c'],
      );
      const sql = 'insert into ops.insights_refresh_accounts (refresh_id, account_id, done) values ($1, $2, true)';
      await pool.query(sql, [id, accountId]);
    }
    await completeRefreshes(pool, parts.store, createLogger('metrics', 'silent'));
    const completed = async (id: string) => (await parts.store.load(refresh, id)).state.status;
    deepEqual([await completed(bad), await completed(good)], ['open', 'done']);
    const { rows } = await pool.query(
      'select refresh_id as id, not_before > now() as rests from ops.insights_refreshes',
    );
    deepEqual(rows, [{ id: bad, rests: true }]);
    await pool.query('update ops.insights_refreshes set correlation_id = $1, not_before = null', ['c']);
    await completeRefreshes(pool, parts.store, createLogger('metrics', 'silent'));
    equal(await completed(bad), 'done');
    ok((await pool.query('select 1 from ops.insights_refresh_accounts')).rowCount === 0);
  });
});

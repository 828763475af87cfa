import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import { appLimitsCases } from '#contracts/ports/app-limits.suite.ts';
import type { AppBudget } from '#contracts/ports/app-limits.ts';
import { windowAt } from '#domain/platforms/index.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const dayMs = 86_400_000;

suite('limits of apps in memory', (t) => {
  // Its views are one.
  const limits = new MemoryAppLimits();
  appLimitsCases(t, () => limits);
});

suite('limits of apps in Postgres', (t) => {
  let pool: Pool;
  let url = '';
  t.before(async () => {
    url = (await preparedDatabase()).url;
    pool = openPool({ url });
  });
  t.after(() => pool?.end());

  appLimitsCases(t, () => new PostgresAppLimits({ pool }));

  t('two processes share one budget, which outlives both', async () => {
    const run = () =>
      promisify(execFile)(process.execPath, [
        path.join(import.meta.dirname, 'app-limits-process.ts'),
        ...[url, 'x:shared', '500'],
      ]);
    const said = await Promise.all([run(), run()]);
    const taken = said.map(({ stdout }) => Number(/taken (\d+)/.exec(stdout)?.[1]));
    assert.equal((taken[0] ?? 0) + (taken[1] ?? 0), 500, String(taken));
    assert.equal(Number(/taken (\d+)/.exec((await run()).stdout)?.[1]), 0, 'a process that begins later has none');
  });

  t('a refusal is seen by a process that has looked before, and the rests cost no query for each call', async () => {
    const [one, other] = [new PostgresAppLimits({ pool }), new PostgresAppLimits({ pool })];
    let queries = 0;
    const counting = {
      query: (...given: unknown[]) => {
        queries += 1;
        return (pool.query as (...all: unknown[]) => unknown).apply(pool, given);
      },
    };
    const looking = new PostgresAppLimits({ pool: counting as unknown as Pool });
    for (let n = 0; n < 100; n += 1) await looking.restOf('x:busy', true, 1);
    assert.ok(queries <= 2, `${queries} queries`);
    await other.restOf('x:late', false, 1);
    const failure = { category: 'rate_limited', code: 'network_rate_limited', message: 'Later.' } as never;
    await one.rest('x:late', 'all', { until: 5_000, failure });
    const begun = performance.now();
    while ((await other.restOf('x:late', false, 1)) === null) {
      assert.ok(performance.now() - begun < 5_000, 'the other process never sees it');
      await new Promise((resolve) => setImmediate(resolve));
    }
  });

  const budget = (begins: number): AppBudget => ({
    name: 'reads',
    limit: 100,
    isShared: true,
    begins,
    ends: begins + dayMs,
  });

  t('windows that are over are not kept, and only the clock of the database says which are', async () => {
    const [limits, app] = [new PostgresAppLimits({ pool }), `x:${randomUUID()}`];
    const today = Math.floor(Date.now() / dayMs) * dayMs;
    const kept = async (table: string) =>
      (await pool.query<{ begins: Date }>(`select begins from ops.${table} where app = $1 order by 1`, [app])).rows.map(
        ({ begins }) => Math.round((begins.getTime() - today) / dayMs),
      );
    const take = (days: number) =>
      limits.take({ app, workspaceId: randomUUID() }, 1, budget(today + days * dayMs), today + days * dayMs);
    for (const days of [-60, -45, -39, 7, 0]) assert.equal(await take(days), 'taken');
    for (const days of [-60, 0]) await limits.admit(app, String(days), budget(today + days * dayMs));
    for (const table of ['app_budgets', 'app_budget_shares']) assert.deepEqual(await kept(table), [-39, 0, 7], table);
    assert.deepEqual(await kept('app_budget_members'), [0]);
  });

  t(
    'an older copy in its place allows what the network then refuses, and one refusal ends the day for all',
    async () => {
      const own = await preparedDatabase();
      const [before, after] = [openPool({ url: own.url }), openPool({ url: own.url })];
      const one = { app: 'youtube:project', workspaceId: randomUUID() };
      const day = { ...budget(Math.floor(Date.now() / dayMs) * dayMs), name: 'videos.insert', limit: 3 };
      const { isShared: _, ...firstCome } = day;
      const take = (pool: Pool) => new PostgresAppLimits({ pool }).take(one, 1, firstCome, Date.now());
      await take(before);
      await before.query('create table copy as select * from ops.app_budgets');
      assert.deepEqual([await take(before), await take(before), await take(before)], ['taken', 'taken', 'spent']);
      await before.query('delete from ops.app_budgets');
      await before.query('insert into ops.app_budgets select * from copy');
      assert.equal(await take(after), 'taken', 'the copy knows of one alone');
      await new PostgresAppLimits({ pool: after }).exhaust(one.app, firstCome);
      assert.deepEqual([await take(before), await take(after)], ['spent', 'spent']);
      await Promise.all([before.end(), after.end()]);
      await own.drop();
    },
  );

  t('processes of the release before count in the same month', async () => {
    const [limits, app, workspaceId] = [new PostgresAppLimits({ pool }), `x:${randomUUID()}`, randomUUID()];
    const now = Date.now();
    const month = new Date(now).toISOString().slice(0, 7);
    const former = async (reads: number) =>
      (
        await pool.query<{ answer: string }>('select ops.take_app_reads($1, $2, $3, $4, $5, $6, $7) as answer', [
          ...[app, month, month, workspaceId, reads, 100, 200],
        ])
      ).rows[0]?.answer;
    const { begins, ends } = windowAt({ zone: 'UTC', every: 'month' }, now);
    const take = (amount: number) =>
      limits.take({ app, workspaceId: randomUUID() }, amount, { name: 'reads', limit: 100, begins, ends }, now);
    assert.equal(await former(60), 'taken');
    assert.equal(await take(41), 'spent');
    assert.equal(await take(40), 'taken');
    assert.equal(await former(1), 'month_spent');
  });

  t('without a database the app may call, and may do nothing that is counted', async () => {
    const gone = openPool({ url });
    await gone.end();
    const limits = new PostgresAppLimits({ pool: gone });
    assert.equal(await limits.restOf('x:any', true, 1), null);
    await limits.rest('x:any', 'all', { until: 5_000, failure: {} as never });
    assert.equal((await limits.restOf('x:any', true, 1))?.until, 5_000, 'the process itself knows it');
    const reader = { app: 'x:any', workspaceId: randomUUID() };
    await assert.rejects(limits.take(reader, 1, budget(0), 1));
    await assert.rejects(limits.admit('x:any', 'account', budget(0)));
    await limits.giveBack(reader, 1, budget(0));
    await limits.exhaust('x:any', budget(0));
  });
});

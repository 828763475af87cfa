import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import { appLimitsCases } from '#contracts/ports/app-limits.suite.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

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

  t('two processes share one month, which outlives both', async () => {
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

  t('shares of months that are over are not kept', async () => {
    const [limits, app] = [new PostgresAppLimits({ pool }), `x:${randomUUID()}`];
    const months = async () =>
      (await pool.query('select month from ops.app_read_shares where app = $1 order by 1', [app])).rows.map(
        ({ month }) => month,
      );
    const take = (at: string) => limits.take({ app, workspaceId: randomUUID() }, 1, 100, Date.parse(at));
    for (const at of ['2026-01-31T23:00:00Z', '2026-02-01T01:00:00Z']) await take(at);
    assert.deepEqual(await months(), ['2026-01', '2026-02'], 'a clock that is behind still counts in its month');
    await take('2026-02-02T01:00:00Z');
    assert.deepEqual(await months(), ['2026-02', '2026-02']);
  });

  t('without a database the app may call, and may read nothing that is billed', async () => {
    const gone = openPool({ url });
    await gone.end();
    const limits = new PostgresAppLimits({ pool: gone });
    assert.equal(await limits.restOf('x:any', true, 1), null);
    await limits.rest('x:any', 'all', { until: 5_000, failure: {} as never });
    assert.equal((await limits.restOf('x:any', true, 1))?.until, 5_000, 'the process itself knows it');
    const reader = { app: 'x:any', workspaceId: randomUUID() };
    await assert.rejects(limits.take(reader, 1, 10, 1));
    await limits.giveBack(reader, 1, 1);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import {
  clearMarks,
  firstUncounted,
  lockWaiting,
  markDirty,
  marksOf,
  type Touched,
  unlock,
} from '#projections/analytics/dirty.ts';
import { markOutdated, startsWithRule } from '#projections/analytics/rules.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('marks of days', (t) => {
  let pool: Pool;
  t.before(async () => {
    pool = new Pool({ connectionString: (await preparedDatabase()).url, max: 6 });
  });
  t.after(() => pool?.end());

  const mark = async (version: number, ...all: readonly Touched[]): Promise<void> => {
    const tx = await pool.connect();
    await markDirty(tx, version, all);
    tx.release();
  };
  const post = (workspaceId: string, day: string): Touched => ({ workspaceId, day, post: true, position: null });
  /** Workspaces that a process of its own locks, and keeps. */
  const process = async (version: number, limit: number) => {
    const session = await pool.connect();
    const close = async (): Promise<void> => {
      await unlock(session);
      session.release();
    };
    return { ours: await lockWaiting(session, version, [], limit), close };
  };

  t('two processes that search at the same time count different workspaces', async () => {
    const all = Array.from({ length: 5 }, () => randomUUID());
    for (const id of all) await mark(10, post(id, '2026-02-01'));
    const [one, two] = [await process(10, 3), await process(10, 3)];
    assert.deepEqual(one.ours, all.slice(0, 3));
    assert.deepEqual(two.ours, all.slice(3));
    await one.close();
    const three = await process(10, 2);
    assert.deepEqual(three.ours, all.slice(0, 2));
    await Promise.all([two.close(), three.close()]);
  });

  t('a workspace is found behind thousands of marks of another one that is being counted', async () => {
    const [large, small] = [randomUUID(), randomUUID()];
    await pool.query(
      `insert into ops.analytics_marked (version, workspace_id, kind, day, since, mark)
       select 11, $1, 'post', date '2015-01-01' + n, n, n from generate_series(1, 4500) n`,
      [large],
    );
    await mark(11, post(small, '2026-02-01'));
    const one = await process(11, 1);
    const two = await process(11, 1);
    assert.deepEqual([one.ours, two.ours], [[large], [small]]);
    await Promise.all([one.close(), two.close()]);
    const marks = await marksOf(pool, 11, [large, small], 1_000);
    assert.equal(marks.length, 1_000);
    assert.equal(marks.filter(({ workspaceId }) => workspaceId === small).length, 1);
  });

  t(
    'a workspace that is marked all the time keeps its place until it is counted, then queues behind the others',
    async () => {
      const [busy, quiet] = [randomUUID(), randomUUID()];
      await mark(12, post(busy, '2026-02-01'));
      await mark(12, post(quiet, '2026-02-01'));
      await mark(12, post(busy, '2026-02-01'));
      const order = async (): Promise<readonly string[]> => {
        const { ours, close } = await process(12, 9);
        await close();
        return ours;
      };
      assert.deepEqual(await order(), [busy, quiet]);
      const marks = await marksOf(pool, 12, [busy], 9);
      await mark(12, post(busy, '2026-02-01'));
      await clearMarks(pool, 12, marks);
      assert.deepEqual(await order(), [quiet, busy]);
      await clearMarks(pool, 12, await marksOf(pool, 12, [busy, quiet], 9));
      assert.deepEqual(await order(), []);
    },
  );

  t('an account observation marks no day of posts, and a late post marks all later days', async () => {
    const workspaceId = randomUUID();
    const kinds = async () =>
      (await marksOf(pool, 13, [workspaceId], 99)).map(({ kind, day }) => `${kind} ${day}`).sort();
    await mark(13, { workspaceId, day: '2026-02-05', post: false, position: null });
    assert.deepEqual(await kinds(), ['account 2026-02-05']);
    await mark(13, post(workspaceId, '2026-02-03'));
    assert.deepEqual(await kinds(), ['account 2026-02-05', 'post 2026-02-03', 'post 2026-02-05']);
    const asked = (from: string, to: string) => firstUncounted(pool, 13, workspaceId, { from, to });
    assert.equal(await asked('2026-01-01', '2026-01-30'), null);
    // Interpolated gains of the days before wait for it, too.
    assert.equal(await asked('2026-01-01', '2026-01-31'), '2026-01-31');
    assert.equal(await asked('2026-02-01', '2026-02-02'), '2026-02-01');
    assert.equal(await asked('2026-02-06', '2026-02-09'), null);
    assert.equal(await firstUncounted(pool, 13, randomUUID(), { from: '2026-01-01', to: '2026-03-01' }), null);
    // An observation of an account changes only its own day.
    await clearMarks(
      pool,
      13,
      (await marksOf(pool, 13, [workspaceId], 99)).filter(({ kind }) => kind === 'post'),
    );
    assert.equal(await asked('2026-02-01', '2026-02-04'), null);
    assert.equal(await asked('2026-02-01', '2026-02-28'), '2026-02-05');
  });

  t('the days after a late post read as uncounted before the recounter has marked them', async () => {
    const workspaceId = randomUUID();
    await mark(16, post(workspaceId, '2026-02-05'), post(workspaceId, '2026-02-20'));
    await clearMarks(pool, 16, await marksOf(pool, 16, [workspaceId], 9));
    const asked = (from: string, to: string) => firstUncounted(pool, 16, workspaceId, { from, to });
    assert.equal(await asked('2026-02-01', '2026-02-28'), null);
    await mark(16, post(workspaceId, '2026-02-06'));
    await mark(16, post(workspaceId, '2026-02-03'));
    await mark(16, post(workspaceId, '2026-02-04'));
    assert.equal(await asked('2026-02-18', '2026-02-28'), '2026-02-18');
    assert.equal(await asked('2026-02-10', '2026-02-28'), '2026-02-17');
    assert.equal(await asked('2026-02-21', '2026-02-28'), null);
    const days = (await marksOf(pool, 16, [workspaceId], 9)).map(({ day }) => day);
    assert.deepEqual(days.sort(), ['2026-02-03', '2026-02-04', '2026-02-05', '2026-02-06', '2026-02-20']);
    assert.equal(await asked('2026-02-18', '2026-02-28'), '2026-02-18');
  });

  t('a late post that arrives while the marks are read still marks every later day', async () => {
    const moments = ['analytics-late', 'analytics-marks'].flatMap((name) => [
      { name, before: true },
      { name, before: false },
    ]);
    for (const { name, before } of moments) {
      const workspaceId = randomUUID();
      await mark(17, post(workspaceId, '2026-02-05'));
      await clearMarks(pool, 17, await marksOf(pool, 17, [workspaceId], 9));
      let comes = true;
      const interrupted = {
        query: async (asked: { readonly name: string }) => {
          const now = comes && asked.name === name;
          if (now) comes = false;
          if (now && before) await mark(17, post(workspaceId, '2026-02-03'));
          const answer = await pool.query(asked as never);
          if (now && !before) await mark(17, post(workspaceId, '2026-02-03'));
          return answer;
        },
      };
      const counted = await marksOf(interrupted as unknown as Pool, 17, [workspaceId], 9);
      await clearMarks(pool, 17, counted);
      const found = await process(17, 9);
      const days = [...counted, ...(await marksOf(pool, 17, found.ours, 9))].map(({ day }) => day);
      await found.close();
      assert.deepEqual(
        [...new Set(days)].sort(),
        ['2026-02-03', '2026-02-05'],
        `${before ? 'before' : 'after'} ${name}`,
      );
      await clearMarks(pool, 17, await marksOf(pool, 17, [workspaceId], 9));
    }
  });

  t('a row of a late post without other marks is found; each statement marks one workspace', async () => {
    const ids = [randomUUID(), randomUUID(), randomUUID()].sort();
    await mark(19, ...ids.flatMap((id) => [post(id, '2026-02-05'), post(id, '2026-02-06')]));
    await clearMarks(pool, 19, await marksOf(pool, 19, ids, 99));
    await pool.query(`insert into ops.analytics_late select 19, id, '2026-02-01' from unnest($1::uuid[]) as id`, [ids]);
    const one = await process(19, 2);
    assert.deepEqual(one.ours, ids.slice(0, 2));
    const two = await process(19, 9);
    assert.deepEqual(two.ours, ids.slice(2));
    await Promise.all([one.close(), two.close()]);
    const written: (number | null)[] = [];
    const counting = {
      query: async (asked: { readonly name: string; readonly text: string; readonly values: unknown[] }) => {
        const answer = await pool.query(asked);
        if (asked.name === 'analytics-later') written.push(answer.rowCount);
        return answer;
      },
    };
    assert.equal((await marksOf(counting as unknown as Pool, 19, ids, 99)).length, 6);
    assert.deepEqual(written, [2, 2, 2]);
  });

  t('a late post writes one row for all later days of its workspace', async () => {
    const workspaceId = randomUUID();
    const days = Array.from({ length: 300 }, (_, n) => new Date(Date.UTC(2026, 2, 1 + n)).toISOString().slice(0, 10));
    await mark(18, ...days.map((day) => post(workspaceId, day)));
    await clearMarks(pool, 18, await marksOf(pool, 18, [workspaceId], 999));
    await mark(18, post(workspaceId, '2026-02-01'));
    const { rows } = await pool.query('select count(*)::int as n from ops.analytics_marked where version = 18');
    assert.deepEqual(rows, [{ n: 1 }]);
    assert.equal((await marksOf(pool, 18, [workspaceId], 999)).length, 301);
  });

  t('days counted by an earlier rule are marked once, in steps; days of new tables are not', async () => {
    const ids = [randomUUID(), randomUUID()].sort();
    await pool.query(
      `insert into ops.analytics_days (version, workspace_id, day)
       select 15, id, current_date - n from unnest($1::uuid[]) id, generate_series(1, 400) n`,
      [ids],
    );
    assert.equal(await markOutdated(pool, 15), 500);
    assert.equal((await marksOf(pool, 15, ids, 5_000)).length, 500);
    assert.equal(await markOutdated(pool, 15), 300);
    const marks = await marksOf(pool, 15, ids, 5_000);
    assert.deepEqual([marks.length, new Set(marks.map(({ kind }) => kind))], [800, new Set(['gains'])]);
    await clearMarks(pool, 15, marks);
    assert.equal(await markOutdated(pool, 15), 0);
    await pool.query(`insert into ops.analytics_days values (16, $1, current_date)`, [ids[0]]);
    await startsWithRule(pool, 16);
    assert.equal(await markOutdated(pool, 16), 0);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Mortals } from '#test/support/mortals.ts';
import { eventually } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { ReportsWorld } from './world.ts';

const script = fileURLToPath(new URL('./reports-process.ts', import.meta.url));

suite('reports deaths', { timeoutMs: 180_000 }, (t) => {
  let world: ReportsWorld;
  const mortals = new Mortals(script, () => [world.url, world.clickhouse.url]);
  t.before(async () => {
    world = await ReportsWorld.open();
    const account = await world.posts.connect(await world.posts.client(), 'x');
    await world.observe(account, '2026-02-10', { impressions: 100, likes: 10 });
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  /** Made once, and nothing is there that its event does not name. */
  const fine = async (id: string, runId: string): Promise<void> => {
    const { exports } = await world.ended(id, runId, 'completed');
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    assert.deepEqual(await world.keys(runId), exports.map(({ key }) => key).sort());
  };

  t('a run over which somebody dies at every gap is made once, and no blob is there that nobody names', async () => {
    const id = await world.define();
    const runId = await world.request(id);
    for (const point of ['consume:before-commit', 'reports:after-put', 'reports:after-outcome']) {
      await mortals.died(await mortals.child(point));
    }
    const last = world.start();
    await fine(id, runId);
    await last.stop();
  });

  t('figures that changed between a death and the next try leave no file of the first', async () => {
    const id = await world.define({ formats: ['json'] });
    const runId = await world.request(id);
    await mortals.died(await mortals.child('reports:after-put'));
    const [stray] = await world.keys(runId);
    const account = await world.posts.connect(await world.posts.client(), 'x');
    await world.observe(account, '2026-02-20', { impressions: 7 });
    const last = world.start();
    await fine(id, runId);
    assert.ok(stray !== undefined && !(await world.keys(runId)).includes(stray));
    await last.stop();
  });

  t('asleep past its lease with all exports in its hand: what it wakes up to do changes nothing', async () => {
    const sleeper = await mortals.child('reports:after-put', 'SIGSTOP');
    const id = await world.define({ formats: ['csv', 'json'] });
    const runId = await world.request(id);
    await eventually('it sleeps', async () => (await world.keys(runId)).length === 2);
    const next = world.start();
    await fine(id, runId);
    const keys = await world.keys(runId);
    sleeper.kill('SIGCONT');
    sleeper.kill('SIGTERM');
    if (sleeper.exitCode === null) await once(sleeper, 'exit');
    assert.equal(sleeper.exitCode, 0);
    await fine(id, runId);
    assert.deepEqual(await world.keys(runId), keys);
    await next.stop();
  });

  t('a run that kills whoever makes it has failed after five deaths, and the worker goes on', async () => {
    const id = await world.define({ formats: ['csv'] });
    const runId = await world.request(id);
    for (let death = 1; death <= 5; death += 1) await mortals.died(await mortals.child('reports:after-put'));
    const worker = world.start();
    const { code } = await world.ended(id, runId, 'failed');
    assert.equal(code, 'report_failed');
    assert.deepEqual(await world.keys(runId), []);
    const other = await world.define({ formats: ['csv'] });
    await fine(other, await world.request(other));
    await worker.stop();
  });

  t('who dies after a schedule asked for its run asks for the same one again', async () => {
    const at = { every: 'day', weekday: null, dayOfMonth: null, hour: 6 } as const;
    const id = await world.define({ formats: ['json'], schedule: at });
    const first = world.start();
    const plan = 'select due_at, after from ops.report_schedules where report_id = $1';
    await eventually('it is planned', async () => (await world.posts.pool.query(plan, [id])).rows[0]?.due_at != null);
    await first.stop();
    // Its day has come.
    await world.posts.pool.query(
      `update ops.report_schedules set after = after - interval '2 days', due_at = due_at - interval '2 days' where report_id = $1`,
      [id],
    );
    await mortals.died(await mortals.child('reports:after-request'));
    await mortals.died(await mortals.child('reports:after-request'));
    const last = world.start();
    await eventually('it is made', async () => (await world.story(id)).includes('ReportRunCompleted'));
    await eventually('the next day is planned', async () => {
      const { rows } = await world.posts.pool.query(
        'select due_at > now() as future from ops.report_schedules where report_id = $1',
        [id],
      );
      return rows[0]?.future === true;
    });
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    await last.stop();
  });
});

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { client } from '#domain/client.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Mortals } from '#test/support/mortals.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { ReportsWorld } from './world.ts';

const script = fileURLToPath(new URL('./reports-process.ts', import.meta.url));

suite('reports deaths', { drawn: true, costs: 8, timeoutMs: 180_000 }, (t) => {
  let world: ReportsWorld;
  const mortals = new Mortals(script, () => [world.url, world.clickhouse.url]);
  t.before(async () => {
    world = await ReportsWorld.open();
    const account = await world.posts.connect(await world.posts.client(), 'x');
    await world.observe(account, '2026-02-10', { impressions: 100, likes: 10 });
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.posts.stopAll();
  });
  t.after(() => world.close());

  /** Made once, and nothing is there that its event does not name. */
  const fine = async (id: string, runId: string): Promise<void> => {
    const { exports } = await world.ended(id, runId, 'completed');
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    assert.deepEqual(await world.keys(runId), exports.map(({ key }) => key).sort());
  };

  t('a run whose worker dies at every fault point is made once and leaves no unnamed blob', async () => {
    const id = await world.define();
    const runId = await world.request(id);
    for (const point of ['consume:before-commit', 'reports:after-put', 'reports:after-outcome']) {
      await mortals.died(await mortals.child(point));
    }
    const last = world.start();
    await fine(id, runId);
    await last.stop();
  });

  t('figures that change between a crash and the next try leave no file of the first try', async () => {
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

  t('a worker that slept past its lease with all exports made changes nothing when it wakes', async () => {
    const sleeper = await mortals.child('reports:after-put', 'SIGSTOP');
    const id = await world.define({ formats: ['csv', 'json'] });
    const runId = await world.request(id);
    await mortals.asleep(sleeper);
    const next = world.start();
    await fine(id, runId);
    const keys = await world.keys(runId);
    await mortals.wakeToEnd(sleeper);
    await fine(id, runId);
    assert.deepEqual(await world.keys(runId), keys);
    await next.stop();
  });

  t('a run that kills its worker fails after five deaths, and the worker continues with others', async () => {
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

  t('a process that died after it requested a scheduled run requests the same run again', async () => {
    // It comes again in half a day.
    const hour = (new Date().getUTCHours() + 12) % 24;
    const at = { every: 'day', weekday: null, dayOfMonth: null, hour } as const;
    const id = await world.define({ formats: ['json'], schedule: at }, undefined, 2);
    await mortals.died(await mortals.child('reports:after-request'));
    await mortals.died(await mortals.child('reports:after-request'));
    const last = world.start();
    await until('it is made', async () => (await world.story(id)).includes('ReportRunCompleted'));
    await until('the next day is planned', async () => {
      const { rows } = await world.posts.pool.query(
        'select due_at > now() as future from ops.report_schedules where report_id = $1',
        [id],
      );
      return rows[0]?.future === true;
    });
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    await last.stop();
  });

  t(
    'a crash before an erasure arrives, or while a run of the client is made, leaves no file of the client',
    async () => {
      const clientId = await world.posts.client();
      const filters = { clientId, socialAccountId: null, platform: null };
      const hour = (new Date().getUTCHours() + 12) % 24;
      const schedule = { every: 'day', weekday: null, dayOfMonth: null, hour } as const;
      const id = await world.define({ formats: ['json'], filters, schedule });
      const first = world.start();
      const done = await world.request(id);
      await world.ended(id, done, 'completed');
      await first.stop();
      const open = await world.request(id);
      await mortals.died(await mortals.child('reports:after-put'));
      assert.equal((await world.keys(open)).length, 1);
      const late = await world.request(id);
      await mortals.died(await mortals.child('reports:after-outcome'));
      await execute(world.posts.store, client, clientId, { type: 'Erase' }, world.posts.context());
      await mortals.died(await mortals.child('consume:before-commit'));
      const last = world.start();
      await until('no file is there', async () => {
        const left = await Promise.all([done, open, late].map((run) => world.keys(run)));
        return left.flat().length === 0;
      });
      await until('it is planned no more', async () => !(await world.plannedFor(id)));
      for (const run of [id, done, open, late])
        await until('nothing is left to do', async () => (await world.job(run)) === null);
      assert.equal((await world.story(id)).filter((type) => type === 'ReportDefined').length, 2);
      await last.stop();
    },
  );

  t('a crash while a run waits for its days neither restarts its wait nor makes it wait for ever', async () => {
    const account = await world.posts.connect(await world.posts.client(), 'x');
    const open = await world.lookedAtYesterday(account);
    const id = await world.define({ formats: ['json'] });
    const runId = await world.request(id, undefined, undefined, open.askedAt);
    await mortals.died(await mortals.child('reports:before-rest'));
    assert.deepEqual(await world.job(runId), { attempts: 1, written: [] });
    const asked = Date.parse((await world.run(id, runId))?.requestedAt ?? '');
    const last = world.start({ now: () => asked + 6 * 3_600_000 });
    await fine(id, runId);
    const run = await world.ended(id, runId, 'completed');
    assert.deepEqual(run.completeness, { complete: false, provisionalDays: [open.yesterday] });
    await last.stop();
  });
});

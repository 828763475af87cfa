import assert from 'node:assert/strict';
import { report } from '#domain/report.ts';
import { nextInstant } from '#domain/report-windows.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/execute.ts';
import { runIdOf } from '#services/reports/schedule.ts';
import { eventually } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { ReportsWorld } from './world.ts';

const daily = { every: 'day', weekday: null, dayOfMonth: null, hour: 6 } as const;

suite('schedules of reports at work', { timeoutMs: 120_000 }, (t) => {
  let world: ReportsWorld;
  t.before(async () => {
    world = await ReportsWorld.open();
  });
  t.after(() => world?.close());

  const row = async (id: string): Promise<{ due: string | null; after: string } | null> => {
    const { rows } = await world.posts.pool.query(
      'select due_at as due, after from ops.report_schedules where report_id = $1',
      [id],
    );
    const [one] = rows;
    return one === undefined ? null : { due: one.due?.toISOString() ?? null, after: one.after.toISOString() };
  };
  const planned = async (id: string) => {
    await eventually('it is planned', async () => (await row(id))?.due != null);
    return (await row(id)) as { due: string; after: string };
  };
  /** As if so many days had gone by. */
  const age = async (id: string, days: number): Promise<void> => {
    await world.posts.pool.query(
      `update ops.report_schedules set after = after - $2 * interval '1 day', due_at = due_at - $2 * interval '1 day'
       where report_id = $1`,
      [id, days],
    );
  };

  t('a due one runs once under the id of its instant, days missed are not made up for', async () => {
    const id = await world.define({ formats: ['json'], schedule: daily });
    const workers = [world.start(), world.start()];
    const { due, after } = await planned(id);
    assert.equal(due, nextInstant(daily, 'UTC', after));
    await Promise.all(workers.map((one) => one.stop()));
    await age(id, 5);
    const aged = await row(id);
    const next = [world.start(), world.start()];
    const runId = runIdOf(id, aged?.due ?? '');
    const run = await world.ended(id, runId, 'completed');
    assert.equal(run.by, 'schedule');
    assert.equal(run.to, new Date(Date.parse(aged?.due ?? '') - 86_400_000).toISOString().slice(0, 10));
    await eventually(
      'it is planned for a day to come',
      async () => Date.parse((await row(id))?.due ?? '') > Date.now(),
    );
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    await Promise.all(next.map((one) => one.stop()));
  });

  t('another zone, another schedule, none, removed', async () => {
    const worker = world.start();
    const id = await world.define({ formats: ['json'], schedule: daily });
    const { after } = await planned(id);
    const { store, workspaceId } = world.posts;
    const zone = { type: 'ChangeProfile', name: 'Agency', timezone: 'Asia/Tokyo' } as const;
    await execute(store, workspace, workspaceId, zone, world.posts.context());
    const there = nextInstant(daily, 'Asia/Tokyo', after);
    await eventually('the hour is that of the zone', async () => (await row(id))?.due === there);
    const { state } = await store.load(report, id);
    if (state.status !== 'live') throw new Error('it is not live');
    const { definition } = state;
    const weekly = { every: 'week', weekday: 3, dayOfMonth: null, hour: 9 } as const;
    await world.command(id, { type: 'Define', definition: { ...definition, schedule: weekly } });
    await eventually('it is weekly', async () => {
      const now = await row(id);
      return now !== null && now.due === nextInstant(weekly, 'Asia/Tokyo', now.after);
    });
    await world.command(id, { type: 'Define', definition: { ...definition, schedule: null } });
    await eventually('it is planned no more', async () => (await row(id)) === null);
    await world.command(id, { type: 'Define', definition: { ...definition, schedule: daily } });
    await planned(id);
    await world.command(id, { type: 'Remove' });
    await eventually('it is gone', async () => (await row(id)) === null);
    assert.ok(!(await world.story(id)).includes('ReportRunRequested'));
    await worker.stop();
  });
});

import assert from 'node:assert/strict';
import { client } from '#domain/client.ts';
import { report } from '#domain/report.ts';
import { lastInstant, nextInstant } from '#domain/report-windows.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { runIdOf } from '#services/reports/schedule.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { definition, ReportsWorld } from './world.ts';

const daily = { every: 'day', weekday: null, dayOfMonth: null, hour: 6 } as const;

suite('scheduled runs', { timeoutMs: 120_000 }, (t) => {
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
    await until('it is planned', async () => (await row(id))?.due != null);
    return (await row(id)) as { due: string; after: string };
  };
  t('a due schedule runs once under the id of its last instant: missed days collapse into it', async () => {
    const hour = (new Date().getUTCHours() + 12) % 24;
    const schedule = { ...daily, hour };
    const last = lastInstant(schedule, 'UTC', new Date(0).toISOString(), new Date().toISOString()) ?? '';
    const id = await world.define({ formats: ['json'], schedule }, undefined, 5);
    const workers = [world.start(), world.start()];
    const run = await world.ended(id, runIdOf(id, last), 'completed');
    assert.equal(run.by, 'schedule');
    assert.equal(run.to, new Date(Date.parse(last) - 86_400_000).toISOString().slice(0, 10));
    await until('it is planned for a day to come', async () => Date.parse((await row(id))?.due ?? '') > Date.now());
    const planned = (await row(id))?.due;
    assert.equal(planned, nextInstant(schedule, 'UTC', new Date().toISOString()));
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested', 'ReportRunCompleted']);
    await Promise.all(workers.map((one) => one.stop()));
  });

  t('a missed instant stays due when its report changes, but not when its schedule does', async () => {
    const hour = (new Date().getUTCHours() + 12) % 24;
    const schedule = { ...daily, hour };
    const [renamed, replanned] = [
      await world.define({ formats: ['json'], schedule }, undefined, 2),
      await world.define({ formats: ['json'], schedule }, undefined, 2),
    ];
    await world.command(renamed, {
      type: 'Define',
      definition: { ...definition, formats: ['json'], schedule, name: 'New' },
    });
    const other = { ...schedule, hour: (hour + 1) % 24 };
    await world.command(replanned, {
      type: 'Define',
      definition: { ...definition, formats: ['json'], schedule: other },
    });
    const worker = world.start();
    for (const id of [renamed, replanned])
      await until('it is planned', async () => Date.parse((await row(id))?.due ?? '') > Date.now());
    const requests = async (id: string) => (await world.story(id)).filter((type) => type === 'ReportRunRequested');
    assert.deepEqual([(await requests(renamed)).length, (await requests(replanned)).length], [1, 0]);
    await worker.stop();
  });

  t('a schedule of a client or its account ends with the client; one of the workspace continues', async () => {
    const { posts } = world;
    const [archived, erased, live] = [await posts.client(), await posts.client(), await posts.client()];
    const account = await posts.connect(archived, 'x');
    const filters = { clientId: null, socialAccountId: null, platform: null };
    const of = (clientId: string) => world.define({ schedule: daily, filters: { ...filters, clientId } });
    const ending = [
      await of(archived),
      await of(erased),
      await world.define({
        ...{ kind: 'account', schedule: daily },
        filters: { ...filters, clientId: archived, socialAccountId: account.id },
      }),
    ];
    const staying = [await of(live), await world.define({ schedule: daily })];
    const worker = world.start();
    for (const id of [...ending, ...staying]) await planned(id);
    await posts.archive(archived);
    await execute(posts.store, client, erased, { type: 'Erase' }, posts.context());
    // Defined when its client has ended already: it is found out too.
    const late = await of(archived);
    for (const id of [...ending, late]) {
      await until('it says that it has no schedule', async () => {
        const { state } = await posts.store.load(report, id);
        return state.status === 'live' && state.definition.schedule === null;
      });
      await until('it is planned no more', async () => (await row(id)) === null);
      assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportDefined']);
    }
    for (const id of staying) {
      await planned(id);
      assert.deepEqual(await world.story(id), ['ReportDefined']);
    }
    await worker.stop();
  });

  t('a change of zone or schedule moves the next run; no schedule or a removal ends it', async () => {
    const worker = world.start();
    const id = await world.define({ formats: ['json'], schedule: daily });
    const { after } = await planned(id);
    const { store, workspaceId } = world.posts;
    const zone = { type: 'ChangeProfile', name: 'Agency', timezone: 'Asia/Tokyo' } as const;
    await execute(store, workspace, workspaceId, zone, world.posts.context());
    const there = nextInstant(daily, 'Asia/Tokyo', after);
    await until('the hour follows the zone', async () => (await row(id))?.due === there);
    const { state } = await store.load(report, id);
    if (state.status !== 'live') throw new Error('it is not live');
    const { definition: own } = state;
    const weekly = { every: 'week', weekday: 3, dayOfMonth: null, hour: 9 } as const;
    await world.command(id, { type: 'Define', definition: { ...own, schedule: weekly } });
    await until('it is weekly', async () => {
      const now = await row(id);
      return now !== null && now.due === nextInstant(weekly, 'Asia/Tokyo', now.after);
    });
    await world.command(id, { type: 'Define', definition: { ...own, schedule: null } });
    await until('it is planned no more', async () => (await row(id)) === null);
    await world.command(id, { type: 'Define', definition: { ...own, schedule: daily } });
    await planned(id);
    await world.command(id, { type: 'Remove' });
    await until('it is gone', async () => (await row(id)) === null);
    assert.ok(!(await world.story(id)).includes('ReportRunRequested'));
    await worker.stop();
  });
});

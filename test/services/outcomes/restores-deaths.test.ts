import assert from 'node:assert/strict';
import { target } from '#domain/post-target/target.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { everyWorkspace, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { newestRestore, restored } from '#runtime/work/restores.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const hourMs = 3_600_000;

suite('deaths after a restore', { drawn: true, costs: 2, timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let accounts: readonly Account[];
  let recorders: Mortals;
  let publishers: Mortals;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const file = (name: string): string => new URL(name, import.meta.url).pathname;
    recorders = new Mortals(file('./rounds-process.ts'), () => [world.url, 'restores']);
    publishers = new Mortals(file('../../support/publisher-process.ts'), () => [world.url]);
    const clientId = await world.client();
    accounts = await Promise.all([world.connect(clientId, 'facebook'), world.connect(clientId, 'telegram')]);
  });
  t.after(async () => {
    await recorders?.end();
    await publishers?.end();
    await world?.close();
  });

  const hasRow = (id: string, next: string) =>
    until('the row is there', async () => {
      const sql = `select 1 from ${view('post_targets')} where id = $1 and ${next}`;
      return (await world.pool.query(sql, [id])).rowCount === 1;
    });
  const unknowns = async (id: string): Promise<number> =>
    (await world.story(`target-${id}`)).filter((one) => one === 'TargetOutcomeUnknown').length;
  const asOf = () => new Date(Date.now() - hourMs).toISOString();

  t('killed between two targets, the next process records the rest, and none twice', async () => {
    const { targetIds } = await world.schedule(accounts, { text: 'Recorded' });
    for (const id of targetIds) await hasRow(id, 'next_action_at is not null');
    await restored(world.pool, asOf(), 'ann');
    await recorders.died(await recorders.child('outcomes:after-restored'));
    assert.equal(
      (await Promise.all(targetIds.map(unknowns))).reduce((sum, one) => sum + one, 0),
      1,
    );
    assert.equal((await newestRestore(world.pool))?.completedAt, null);
    await recorders.child('');
    await world.all(targetIds, 'outcome_unknown');
    await until('all is recorded', async () => (await newestRestore(world.pool))?.completedAt !== null);
    assert.deepEqual(await Promise.all(targetIds.map(unknowns)), [1, 1]);
    await recorders.end();
  });

  t('a publisher that is killed at each step of a question makes no second post, and settles the target', async () => {
    const [facebook] = accounts;
    assert.ok(facebook !== undefined);
    await resumePublishing(world.pool, everyWorkspace);
    for (const [point, place] of [
      ['publisher:after-find', 1],
      ['publisher:after-restored', 2],
    ] as const) {
      const text = `Lost ${place}`;
      const early = await world.schedule([facebook], { text });
      const late = await world.schedule([facebook], { text, dueAt: Date.now() + hourMs });
      const [before = '', id = ''] = [...early.targetIds, ...late.targetIds];
      const running = world.publisher();
      await world.all([before], 'published');
      await running.stop();
      await hasRow(before, 'external_id is not null');
      // What the copy does not know: the network has the post, and no target here is known by it.
      await world.pool.query(`update ${view('post_targets')} set external_id = null where id = $1`, [before]);
      await restored(world.pool, asOf(), 'ann', { again: true });
      await resumePublishing(world.pool, everyWorkspace);
      // Later than the restore by its clock of milliseconds: what was due at the same one counts as due before it.
      const dueAt = new Date(Date.now() + 100).toISOString();
      const { state } = await world.store.load(target, id);
      assert.ok(state.status === 'pending');
      const move = {
        type: 'Reschedule',
        commandId: point,
        now: new Date().toISOString(),
        dueAt,
        scheduledLocal: null,
        jitterSeconds: 0,
      };
      await execute(world.store, target, id, move as never, world.context(), { partitionKey: state.common.postId });
      await publishers.died(await publishers.child(point));
      assert.equal((await world.target(id)).status, place === 1 ? 'pending' : 'outcome_unknown');
      const next = world.publisher();
      await world.all([id], 'published');
      await next.stop();
      assert.equal(await world.created(id), 0);
    }
  });
});

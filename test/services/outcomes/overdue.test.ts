import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { deferredLimitMs, overdueAfterMs, type TargetCommand, target } from '#domain/post-target/target.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { view } from '#projections/shapes.ts';
import { InvalidEvent } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger, createRegistry } from '#runtime/process/telemetry.ts';
import { Leases } from '#runtime/work/leases.ts';
import { sweepMetrics } from '#services/outcomes/metrics.ts';
import { tellOverdue } from '#services/outcomes/overdue.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, quick } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('./rounds-process.ts', import.meta.url));
const long = overdueAfterMs + 60_000;
const policy = { deferDelaysMs: [0, 0, 0], maxRateLimits: 9, jitter: 0 };

suite('overdue targets', { timeoutMs: 180_000 }, (t) => {
  let world: PublishingWorld;
  let account: Account;
  const mortals = new Mortals(script, () => [world.url, 'overdue']);
  const logger = createLogger('test', 'silent');

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  /** A target that was due so long ago; its row shows. */
  const due = async (agoMs: number) => {
    const { targetIds, postId } = await world.schedule([account], { dueAt: Date.now() - agoMs });
    const [id = ''] = targetIds;
    const act = (command: TargetCommand) =>
      execute(world.store, target, id, command, world.context(), { partitionKey: postId });
    return { id, postId, act };
  };
  const projected = (id: string) =>
    until('the row shows the stream', async () => {
      const { rows } = await world.pool.query(`select revision from ${view('post_targets')} where id = $1`, [id]);
      return rows[0]?.revision === (await world.story(`target-${id}`)).length - 1;
    });
  const tell = async (over: Partial<Parameters<typeof tellOverdue>[0]> = {}, ...ids: readonly string[]) => {
    await Promise.all(ids.map(projected));
    return tellOverdue({ store: world.store, pool: world.pool, logger, ...over }, new AbortController().signal);
  };
  const reportedOf = async (id: string) =>
    (await world.store.readStream(`target-${id}`))
      .filter(({ type }) => type === 'TargetOverdue')
      .map(({ data }) => data);

  t('while no publisher runs, a target is told of once, fifteen minutes after it was due', async () => {
    const late = await due(long);
    const early = await due(overdueAfterMs - 60_000);
    const registry = createRegistry('test');
    const { onOverdue } = sweepMetrics(registry, world.pool);
    assert.equal(await tell({ onOverdue }, late.id, early.id), 1);
    const state = await world.target(late.id);
    assert.ok(state.status === 'pending');
    assert.deepEqual(await reportedOf(late.id), [{ dueAt: state.common.dueAt }]);
    assert.deepEqual(await reportedOf(early.id), []);
    // Told is told, before its row shows it and after.
    assert.equal(await tell({ onOverdue }), 0);
    assert.equal(await tell({ onOverdue }, late.id), 0);
    assert.match(await registry.metrics(), /^targets_overdue_total\{thread="test"\} 1$/m);
    // The other one is told of when its time has come.
    assert.equal(await tell({ now: () => Date.now() + 60_000 }, early.id), 1);
    assert.equal((await reportedOf(early.id)).length, 1);
    await late.act({ type: 'Cancel', reason: 'requested', postRevision: null, now: new Date().toISOString() });
    await early.act({ type: 'Cancel', reason: 'requested', postRevision: null, now: new Date().toISOString() });
    await Promise.all([projected(late.id), projected(early.id)]);
  });

  t('a retry and another time begin anew; a wait for the network does until it is over', async () => {
    const one = await due(long);
    const claim = { attempt: 1, takeover: 0 };
    const now = new Date().toISOString();
    await one.act({ type: 'Start', now });
    await one.act({ type: 'RecordRateLimited', ...claim, retryAt: now, failure, policy });
    assert.equal(await tell({}, one.id), 0, 'its time is named');
    const later = { now: () => Date.now() + long };
    assert.equal(await tell(later, one.id), 1, 'the named time is over');
    assert.deepEqual(await reportedOf(one.id), [{ dueAt: now }]);
    await one.act({ type: 'Requeue', now: new Date().toISOString() });
    assert.equal(await tell(later, one.id), 0, 'nobody asked for another attempt');
    const dueAt = new Date().toISOString();
    await one.act({
      type: 'Reschedule',
      now: new Date().toISOString(),
      commandId: 'm',
      dueAt,
      scheduledLocal: null,
      jitterSeconds: 0,
    });
    assert.equal(await tell({}, one.id), 0);
    assert.equal(await tell(later, one.id), 1);
    assert.equal((await reportedOf(one.id)).length, 2);
    await one.act({ type: 'Cancel', reason: 'requested', postRevision: null, now: new Date().toISOString() });
    await projected(one.id);
  });

  t('a target that is put off again and again is told of after a day of it, once', async () => {
    const one = await due(-60_000);
    const state = await world.target(one.id);
    assert.ok(state.status === 'pending');
    const { dueAt } = state.common;
    const beyond = Date.parse(dueAt);
    const at = (ms: number) => new Date(beyond + ms).toISOString();
    const wait = (retryAt: string) => one.act({ type: 'DeferAtClaim', retryAt, failure });
    const [hour, day] = [3_600_000, deferredLimitMs];
    await wait(at(2 * day));
    const asOf = (ms: number) => tell({ now: () => beyond + ms }, one.id);
    assert.equal(await asOf(day - 1_000), 0);
    assert.equal(await asOf(day), 1);
    assert.deepEqual(await reportedOf(one.id), [{ dueAt: at(2 * day), deferredSince: dueAt }]);
    await wait(at(2 * day + hour));
    assert.equal(await asOf(day + hour), 0, 'told is told');
    const again = { commandId: 'again', dueAt: at(hour), scheduledLocal: null, jitterSeconds: 0 };
    await one.act({ type: 'Reschedule', now: at(0), ...again });
    await wait(at(3 * day));
    assert.equal(await asOf(day), 0, 'the wait begins anew');
    assert.equal(await asOf(day + hour), 1);
    await one.act({ type: 'Cancel', reason: 'requested', postRevision: null, now: at(0) });
    await projected(one.id);
  });

  t('a publishing target is told of only when no worker holds it', async () => {
    const one = await due(long);
    const leases = new Leases({ pool: world.pool, kind: leaseKindOfTargets, ttlMs: 60_000 });
    const [lease] = await leases.acquire([one.id]);
    await one.act({ type: 'Start', now: new Date().toISOString() });
    assert.equal(await tell({}, one.id), 0, 'an append would take the claim from its worker');
    lease?.release();
    await leases.flush();
    assert.equal(await tell({}, one.id), 1);
    await leases.close();
    // The next worker goes on from there.
    const publisher = world.publisher();
    await world.all([one.id], 'published');
    await publisher.stop();
    assert.deepEqual((await world.story(`target-${one.id}`)).slice(0, 4), [
      'TargetScheduled',
      'TargetPublishStarted',
      'TargetOverdue',
      'TargetPublishTakenOver',
    ]);
  });

  t('a worker that takes the target after the question is not disturbed', async () => {
    const one = await due(long);
    await one.act({ type: 'Start', now: new Date().toISOString() });
    await projected(one.id);
    // The worker takes over right before the append of the search.
    const store: DomainStore = Object.assign(Object.create(world.store), {
      append: async (...args: Parameters<DomainStore['append']>) => {
        await one.act({ type: 'TakeOver', attempt: 1, takeover: 0 });
        return world.store.append(...args);
      },
      load: world.store.load.bind(world.store),
    });
    assert.equal(await tell({ store }), 0);
    const there = { externalId: '1', permalink: null, publishedAt: '2026-01-01T00:00:00.000Z' };
    await one.act({ type: 'RecordPublished', attempt: 1, takeover: 1, ...there });
    assert.deepEqual(await world.story(`target-${one.id}`), [
      'TargetScheduled',
      'TargetPublishStarted',
      'TargetPublishTakenOver',
      'TargetPublished',
    ]);
    assert.equal(await tell({}, one.id), 0);
  });

  t(
    'publishing and the search at the same instant: the event comes before the publication, or not at all',
    async () => {
      const ids = (await Promise.all(Array.from({ length: 40 }, () => due(long)))).map(({ id }) => id);
      await Promise.all(ids.map(projected));
      const publisher = world.publisher();
      const stop = new AbortController();
      const telling = (async () => {
        while (!stop.signal.aborted) await tellOverdue({ store: world.store, pool: world.pool, logger }, stop.signal);
      })();
      try {
        await world.all(ids, 'published');
      } finally {
        // Else it would tell of the targets of the next tests.
        stop.abort();
        await telling;
        await publisher.stop();
      }
      for (const id of ids) {
        const story = await world.story(`target-${id}`);
        const overdue = story.filter((type) => type === 'TargetOverdue').length;
        assert.ok(overdue <= 1, `told ${overdue} times: ${story.join(' ')}`);
        assert.equal(story.at(-1), 'TargetPublished', story.join(' '));
        assert.equal(await world.created(id), 1);
      }
    },
  );

  t('a target that cannot be read delays no other', async () => {
    const [bad, good] = [await due(long + 60_000), await due(long)];
    const failed: string[] = [];
    const store: DomainStore = Object.assign(Object.create(world.store), {
      load: async (...args: Parameters<DomainStore['load']>) => {
        if (args[1] === bad.id) throw new InvalidEvent(`target-${bad.id}`, 'TargetScheduled', 'asked for');
        return world.store.load(...args);
      },
      append: world.store.append.bind(world.store),
    });
    assert.equal(await tell({ store, onFailure: (kind) => failed.push(kind) }, bad.id, good.id), 1);
    assert.deepEqual([failed, (await reportedOf(good.id)).length], [['target'], 1]);
    assert.equal(await tell({}, bad.id, good.id), 1);
    for (const one of [bad, good])
      await one.act({ type: 'Cancel', reason: 'requested', postRevision: null, now: new Date().toISOString() });
    await Promise.all([bad, good].map(({ id }) => projected(id)));
  });

  t('killed after the append: the next round tells of it no more', async () => {
    const one = await due(long);
    await mortals.died(await mortals.child('outcomes:after-overdue'));
    assert.equal((await reportedOf(one.id)).length, 1);
    const other = await due(long);
    await mortals.child('');
    await until('the next process tells of the other', async () => (await reportedOf(other.id)).length === 1);
    assert.equal((await reportedOf(one.id)).length, 1);
    await mortals.end();
  });

  t('the outcomes process runs the search', async () => {
    const one = await due(long);
    const running = world.outcomes(quick.leaseTtlMs / 3);
    await until('it is told of', async () => (await reportedOf(one.id)).length === 1);
    await running.stop();
  });
});

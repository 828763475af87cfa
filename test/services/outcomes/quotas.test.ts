import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { account } from '#domain/account.ts';
import { quotaIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { startOutcomes } from '#services/outcomes/outcomes.ts';
import { sweepQuotas } from '#services/outcomes/quotas.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { reservePlaces } from '#services/workflows/quota/reserve.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { Mortals } from '#test/support/mortals.ts';
import { monthsAhead, quotaWorld } from '#test/support/quotas.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('./quota-process.ts', import.meta.url));

suite('places of quotas that nobody needs any more', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  let workspaceId = '';
  const mortals = new Mortals(script, () => [world.db.url, workspaceId]);
  const child = (task: string, fault: string) => mortals.child(fault, 'SIGKILL', { QUOTA_TASK: task });
  t.before(async () => {
    world = await startWorld();
  });
  t.after(async () => {
    await mortals.end();
    await world.close();
  });

  const next = monthsAhead(1);
  const later = monthsAhead(2);
  const at = (instant: string) => ({ schedule: { type: 'at', scheduledAt: instant } });

  t('the consumer gives them back after a failure, a cancel and a disconnection', async () => {
    const stop = new AbortController();
    const running = startOutcomes(
      {
        ...{ log: world.log, eventStore: world.eventStore, store: world.store, codec: world.codec, pool: world.pool },
        ...{ config: { sweepIntervalMs: 60_000, leaseTtlMs: 5_000 }, logger: world.logger },
      },
      stop.signal,
    );
    try {
      const one = await quotaWorld(world, 20);
      const { by, composed } = one;
      const create = async () => {
        const made = await by.post('/posts', composed.body(at(next.at)));
        assert.equal(made.status, 200, made.text);
        return { postId: made.data.id, ids: (made.data.targets as readonly { id: string }[]).map(({ id }) => id) };
      };
      const [failing, canceled, left] = [await create(), await create(), await create()];
      assert.equal(await one.count(next.month), 6);
      const context = () => contextOf(world.operator, one.workspaceId);
      const tell = (id: string, postId: string, command: Parameters<typeof target.decide>[0]) =>
        execute(world.store, target, id, command, context(), { partitionKey: postId });
      await tell(failing.ids[0] ?? '', failing.postId, { type: 'RefuseAtClaim', failure });
      await tell(canceled.ids[1] ?? '', canceled.postId, {
        ...({ type: 'Cancel', reason: 'requested', postRevision: null } as const),
        now: new Date().toISOString(),
      });
      await until('two are free', async () => (await one.count(next.month)) === 4);
      await world.settled();
      const x = composed.accounts.x ?? '';
      await execute(world.store, account, x, { type: 'Disconnect', reason: 'requested' }, context());
      // Of each post the target on X: one of them had failed or was canceled before, or none was.
      await until('those of the account are free', async () => {
        const states = await Promise.all(
          [failing, canceled, left].flatMap(({ ids }) => ids).map((id) => world.store.load(target, id)),
        );
        const needed = states.filter(({ state }) => state.status === 'pending').length;
        return needed <= 3 && (await one.count(next.month)) === needed;
      });
      assert.equal((await world.store.readStream(`quota-${quotaIdOf(one.workspaceId, later.month)}`)).length, 0);
    } finally {
      stop.abort();
      await running.done;
    }
  });

  t(
    'the consumer gives back the place of the former month, where the network takes the new time of a post',
    async () => {
      const stop = new AbortController();
      const running = startOutcomes(
        {
          ...{ log: world.log, eventStore: world.eventStore, store: world.store, codec: world.codec, pool: world.pool },
          ...{ config: { sweepIntervalMs: 60_000, leaseTtlMs: 5_000 }, logger: world.logger },
        },
        stop.signal,
      );
      try {
        const one = await quotaWorld(world, 20, ['facebook']);
        const soon = new Date(Date.now() + 3_600_000).toISOString();
        const month = soon.slice(0, 7);
        const made = await one.by.post('/posts', one.composed.body({ ...at(soon), scheduleMode: 'native' }));
        assert.equal(made.status, 200, made.text);
        const id = (made.data.targets as readonly { id: string }[])[0]?.id ?? '';
        const [claim, now] = [{ attempt: 1, takeover: 0 }, new Date().toISOString()];
        const tell = (command: Parameters<typeof target.decide>[0]) => {
          const context = contextOf(world.operator, one.workspaceId);
          return execute(world.store, target, id, command, context, { partitionKey: made.data.id });
        };
        await tell({ type: 'Start', now });
        await tell({ type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: soon });
        await tell({ type: 'RecordHandedOver', ...claim, nativeId: 'n1' });
        const moved = await one.by.post(`/post-targets/${id}/reschedule`, { scheduledAt: next.at });
        assert.equal(moved.status, 200, moved.text);
        assert.deepEqual([await one.count(month), await one.count(next.month)], [1, 1]);
        await tell({ type: 'RecordTimeChanged', dueAt: next.at });
        await until('the former month has it no longer', async () => (await one.count(month)) === 0);
        assert.deepEqual(await one.held(next.month), [id]);
      } finally {
        stop.abort();
        await running.done;
      }
    },
  );

  t('a reservation is swept once, and looked at again only when it is taken anew', async () => {
    const one = await quotaWorld(world, 20);
    const { by, composed } = one;
    assert.equal((await by.post('/posts', composed.body(at(next.at)))).status, 200);
    const quotas = new Map();
    for (let round = 0; round < 3; round += 1) await one.sweep(quotas);
    const before = await world.head();
    await one.sweep(quotas);
    assert.deepEqual(await world.eventsAfter(before), []);
    assert.equal(await one.count(next.month), 2);
  });

  t(
    'later rounds read only months that were noted; a place of one is given back where its append never came',
    async () => {
      const one = await quotaWorld(world, 20);
      let reads = 0;
      const store = new Proxy(world.store, {
        get(of, name) {
          if (name === 'loadState') reads += 1;
          const member: unknown = Reflect.get(of, name, of);
          return typeof member === 'function' ? member.bind(of) : member;
        },
      });
      const quotas = new Map();
      const only = (id: string, work: () => Promise<void>) => (id === one.workspaceId ? work() : Promise.resolve());
      const readsOf = async (aheadMs: number): Promise<number> => {
        reads = 0;
        const now = () => Date.now() + aheadMs;
        await sweepQuotas({ store, pool: world.pool, now, quotas }, only, new AbortController().signal);
        return reads;
      };
      const notes = async () => {
        const sql = 'select month from ops.quota_months where workspace_id = $1 order by month';
        return (await world.pool.query<{ month: string }>(sql, [one.workspaceId])).rows.map(({ month }) => month);
      };
      const [soon, old] = [1_000, 120_000];
      assert.equal((await one.by.post('/posts', one.composed.body(at(next.at)))).status, 200);
      assert.deepEqual(await notes(), [next.month]);
      await world.settled();
      for (const _ of [1, 2]) assert.ok((await readsOf(soon)) > 20, 'every month');
      assert.equal(await readsOf(soon), 0, 'the place is young');
      assert.ok((await readsOf(old)) > 0);
      assert.deepEqual(await notes(), [], 'all is settled');
      assert.equal(await readsOf(old), 0);
      const rules = { timezone: 'Europe/Berlin', quota: 20 };
      const context = contextOf(world.operator, one.workspaceId);
      const targets = [{ targetId: randomUUID(), dueAt: later.at }];
      const awaits = { stream: 'post', revision: -1 } as const;
      const by = { store: world.store, pool: world.pool, context, rules };
      await reservePlaces(by, { postId: randomUUID(), awaits, targets });
      assert.deepEqual(await notes(), [later.month]);
      assert.equal(await readsOf(soon), 0, 'its caller may be about to append');
      assert.ok((await readsOf(old)) > 0);
      assert.equal(await one.count(later.month), 0);
      await readsOf(2 * old);
      assert.deepEqual(await notes(), []);
      assert.equal(await readsOf(2 * old), 0);
    },
  );

  /** A reservation whose caller died. */
  const orphan = async () => {
    const one = await quotaWorld(world, 20);
    const postId = randomUUID();
    const rules = { timezone: 'Europe/Berlin', quota: 20 };
    const context = contextOf(world.operator, one.workspaceId);
    const targets = [{ targetId: randomUUID(), dueAt: next.at }];
    const awaits = { stream: 'post', revision: -1 } as const;
    await reservePlaces({ store: world.store, pool: world.pool, context, rules }, { postId, awaits, targets });
    assert.equal(await one.count(next.month), 1);
    return { ...one, postId };
  };

  t('a sweeper that dies between the fence and the place: the next one gives it back, behind one fence', async () => {
    const one = await orphan();
    await mortals.died(await child('sweep', 'quota:after-fence'));
    assert.equal(await one.count(next.month), 1);
    const story = async () => (await world.store.readStream(`post-${one.postId}`)).map(({ type }) => type);
    assert.deepEqual(await story(), ['PostAbandoned']);
    await one.sweep();
    assert.equal(await one.count(next.month), 0);
    assert.deepEqual(await story(), ['PostAbandoned']);
  });

  t('an operator’s command that dies behind the set: the sweeper gives the targets their places', async () => {
    const agency = await world.agency();
    workspaceId = agency.workspaceId;
    const one = await quotaWorld(world, null, ['x'], {}, agency);
    assert.equal((await one.by.post('/posts', one.composed.body(at(next.at)))).status, 200);
    await world.settled();
    await mortals.died(await child('set 5', 'quota:after-set'));
    assert.equal(await one.count(next.month), 0);
    await one.sweep();
    assert.equal(await one.count(next.month), 1);
    await world.settled();
    assert.deepEqual([(await one.by.get('/quota')).data.limit], [5]);
  });
});

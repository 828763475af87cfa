import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { PlatformAdapter, PublishOutcome, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { FairQueue } from '#services/publisher/fair-queue.ts';
import { nextQuestionMs } from '#services/publisher/reconcile.ts';
import { Deadline } from '#services/publisher/time.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { type Account, eventually, PublishingWorld } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
const present: PublishOutcome = { kind: 'published', externalId: 'e', permalink: null, publishedAt: 'yesterday' };

/** An adapter that does what the test says; absent when asked. */
const adapter = (
  publish: (request: PublishRequest, steps: PublishSteps) => Promise<PublishOutcome>,
  over: Partial<PlatformAdapter> = {},
): PlatformAdapter => ({
  boundaryDeadlineMs: 400,
  settleWindowMs: () => 60_000,
  absenceIsProof: () => false,
  publish,
  reconcile: async () => ({ kind: 'absent' }),
  ...over,
});

suite('publisher and adapters that misbehave', (t) => {
  let world: PublishingWorld;
  let account: Account;
  const start = (one: PlatformAdapter) => world.publisher({}, { adapterOf: () => one });
  const schedule = async () => (await world.schedule([account])).targetIds[0] ?? '';

  t.before(async () => {
    world = await PublishingWorld.open((await testDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  t.after(() => world.close());

  t('an error before the boundary defers, one after it leaves the outcome unknown', async () => {
    let calls = 0;
    const before = start(
      adapter(async () => {
        calls += 1;
        throw new Error('broken');
      }),
    );
    const first = await schedule();
    await world.all([first], 'failed');
    assert.equal(calls, 4);
    await before.stop();
    const after = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        throw new Error('broken');
      }),
    );
    const second = await schedule();
    await world.all([second], 'outcome_unknown');
    await after.stop();
  });

  t('what an adapter says against the boundary is corrected', async () => {
    const unknownWithout = start(adapter(async () => ({ kind: 'unknown', failure })));
    const first = await schedule();
    await eventually('deferred', async () => (await world.story(`target-${first}`)).includes('TargetPublishDeferred'));
    await unknownWithout.stop();
    const deferredAfter = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        return { kind: 'deferred', failure };
      }),
    );
    const second = await schedule();
    await world.all([second], 'outcome_unknown');
    await deferredAfter.stop();
  });

  t('a call that ignores its deadline is let go, and its late answer is not believed', async () => {
    let answered = false;
    const publisher = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        await delay(1_500);
        answered = true;
        return present;
      }),
    );
    const id = await schedule();
    await world.all([id], 'outcome_unknown');
    assert.equal(answered, false);
    await eventually('the late answer', () => answered);
    assert.equal((await world.target(id)).status, 'outcome_unknown');
    await publisher.stop();
  });

  t('a second boundary in one attempt is refused', async () => {
    const seen: unknown[] = [];
    const publisher = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        await steps.boundary({}).catch((error: unknown) => seen.push(error));
        return present;
      }),
    );
    const id = await schedule();
    await world.all([id], 'published');
    assert.equal(seen.length, 1);
    await publisher.stop();
  });

  t('a lost lease aborts the work, and what it still tries is refused', async () => {
    const story: string[] = [];
    const publisher = start(
      adapter(async (_request, steps) => {
        if (story.length > 0) return present;
        story.push('begun');
        await untilAborted(steps.signal);
        story.push('aborted');
        await steps.checkpoint('late', {}).catch(() => story.push('checkpoint refused'));
        await steps.boundary({}).catch(() => story.push('boundary refused'));
        throw steps.signal.reason;
      }),
    );
    const id = await schedule();
    await eventually('begun', () => story.length > 0);
    await world.pool.query(
      `update ops.work_leases set epoch = nextval('ops.work_lease_epochs'), until = now() + interval '1 s' where id = $1`,
      [id],
    );
    await world.all([id], 'published');
    assert.deepEqual(story, ['begun', 'aborted', 'checkpoint refused', 'boundary refused']);
    const events = await world.story(`target-${id}`);
    assert.deepEqual(events, ['TargetScheduled', 'TargetPublishStarted', 'TargetPublishTakenOver', 'TargetPublished']);
    await publisher.stop();
  });

  t('a drain lets a call that was made come to its end, and leaves what was not to the next', async () => {
    const begun: string[] = [];
    const publisher = start(
      adapter(async ({ targetId }, steps) => {
        if (targetId === second) {
          begun.push('preparing');
          await untilAborted(steps.signal);
          steps.signal.throwIfAborted();
        }
        await steps.boundary({});
        begun.push('called');
        await delay(300);
        return present;
      }),
    );
    let second = '';
    const { targetIds } = await world.schedule([account, await world.connect(account.clientId, 'x')], {
      dueAt: Date.now() + 1_500,
    });
    const [first = '', other = ''] = targetIds;
    second = other;
    await eventually('both', () => begun.length === 2);
    await publisher.stop();
    assert.equal((await world.target(first)).status, 'published');
    assert.equal((await world.target(second)).status, 'publishing');
    const { rows } = await world.pool.query('select id from ops.work_leases where id = any($1)', [targetIds]);
    assert.deepEqual(rows, [], 'leases were given back');
    const next = start(adapter(async () => present));
    await world.all([second], 'published');
    assert.deepEqual((await world.story(`target-${second}`)).slice(-2), ['TargetPublishTakenOver', 'TargetPublished']);
    await next.stop();
  });

  t('text from the network is made well-formed and cut to its schema', async () => {
    const nasty = `\ud800\0${'é'.repeat(5_000)}`;
    const bad = start(
      adapter(async (_request, steps) => {
        await steps.checkpoint('upload', { url: 'a\0\udc00' });
        return {
          kind: 'failed',
          failure: { ...failure, message: nasty, platformCode: nasty, platformMessage: nasty },
        };
      }),
    );
    const first = await schedule();
    const [failed] = await world.all([first], 'failed');
    assert.ok(failed?.status === 'failed' && failed.failure.message.isWellFormed());
    assert.equal(failed?.status === 'failed' && failed.failure.platformCode?.length, 200);
    const story = await world.store.readStream(`target-${first}`);
    assert.deepEqual(story[2]?.data.data, { url: 'a\ufffd' });
    await bad.stop();
    const good = start(
      adapter(async () => ({ kind: 'published', externalId: '\0', permalink: nasty, publishedAt: 'never' })),
    );
    const second = await schedule();
    const [published] = await world.all([second], 'published');
    assert.ok(published?.status === 'published' && published.externalId === 'unknown');
    assert.match(published?.status === 'published' ? published.publishedAt : '', /^\d{4}-/);
    await good.stop();
  });

  t('an outcome that fits no event is still recorded', async () => {
    const publisher = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        return { kind: 'failed', failure: { ...failure, category: 'nonsense' } } as unknown as PublishOutcome;
      }),
    );
    const id = await schedule();
    const [state] = await world.all([id], 'outcome_unknown');
    assert.equal(state?.status, 'outcome_unknown');
    await publisher.stop();
  });

  t('a token that died is not told of an account connected anew meanwhile', async () => {
    const renewed = await world.connect(account.clientId, 'x', 'renewed');
    const publisher = start(
      adapter(async () => {
        await world.connect(account.clientId, 'x', 'renewed');
        const { account: decider } = await import('#domain/account.ts');
        const { execute } = await import('#runtime/execute.ts');
        await execute(world.store, decider, renewed.id, { type: 'Disconnect', reason: 'test' }, world.context());
        await world.connect(account.clientId, 'x', 'renewed');
        return { kind: 'failed', failure: { ...failure, category: 'reauth_required', code: 'reauth_required' } };
      }),
    );
    const { targetIds } = await world.schedule([renewed]);
    await world.all(targetIds, 'failed');
    await publisher.stop();
    assert.deepEqual(await world.story(`account-${renewed.id}`), [
      'AccountConnected',
      'AccountDisconnected',
      'AccountReauthorized',
    ]);
  });
});

suite('publisher parts', (t) => {
  t('the queue takes keys in turn and never more than its width', async () => {
    const queue = new FairQueue(2);
    const order: string[] = [];
    let running = 0;
    const work = (key: string) =>
      queue.run(key, async () => {
        running += 1;
        assert.ok(running <= 2);
        order.push(key);
        await delay(2);
        running -= 1;
        if (key === 'broken') throw new Error('broken');
      });
    const many = Array.from({ length: 20 }, () => work('big'));
    await Promise.allSettled([...many, work('small'), work('broken'), work('small')]);
    assert.ok(order.indexOf('small') < 6, order.join(' '));
    assert.equal(order.length, 23);
    await queue.run('after', async () => undefined);
  });

  t('an unknown outcome is asked for by its plan, hourly at last, and given up after 72 hours', () => {
    const delays = [0, 5_000, 30_000, 120_000, 600_000];
    const ask = (elapsed: number, provable: number | null = null) => nextQuestionMs(elapsed, 0, delays, provable);
    assert.equal(ask(0), 5_000);
    assert.equal(ask(5_000), 30_000);
    assert.equal(ask(40_000), 115_000);
    assert.equal(ask(755_000), 3_600_000);
    assert.equal(ask(6_000, 13_000), 7_000);
    assert.equal(ask(14_000, 13_000), 21_000);
    assert.equal(ask(72 * 3_600_000), null);
  });

  t('a deadline that passed while the process stood still is seen before its timer runs', () => {
    const deadline = new Deadline(30);
    assert.equal(deadline.signal.aborted, false);
    const until = performance.now() + 40;
    while (performance.now() < until);
    assert.equal(deadline.signal.aborted, true);
    assert.throws(() => deadline.signal.throwIfAborted());
  });
});

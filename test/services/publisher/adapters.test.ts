import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  PlatformAdapter,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
} from '#contracts/ports/platform.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { FairQueue } from '#runtime/work/fair-queue.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import { Deadline } from '#services/publisher/deps.ts';
import type { LeasedTarget } from '#services/publisher/leased-target.ts';
import { nextQuestionMs, windowEndsAt } from '#services/publisher/reconcile-schedule.ts';
import { Steps } from '#services/publisher/steps.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

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
  listsOwnPosts: () => false,
  publish,
  reconcile: async () => ({ kind: 'absent' }),
  comment: async () => ({ kind: 'posted', externalId: 'c' }),
  ...over,
});

suite('publisher and adapters that misbehave', { waits: true }, (t) => {
  let world: PublishingWorld;
  let account: Account;
  const start = (one: PlatformAdapter) => world.publisher({}, { adapterOf: () => one });
  const schedule = async () => (await world.schedule([account])).targetIds[0] ?? '';

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
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

  t('a call that left nothing behind is made again by a new attempt, and in the end the target fails', async () => {
    let calls = 0;
    let answers: readonly PublishOutcome[] = [];
    const one = start(
      adapter(async (_request, steps) => {
        if (calls > 0) await steps.boundary({});
        const answer = answers[Math.min(calls, answers.length - 1)];
        calls += 1;
        return answer ?? present;
      }),
    );
    const nothing: PublishOutcome = { kind: 'nothing_sent', failure };
    const types = async (id: string) =>
      (await world.story(`target-${id}`)).filter((type) => type !== 'TargetScheduled');
    answers = [nothing, nothing, nothing, present];
    const first = await schedule();
    await world.all([first], 'published');
    assert.equal(calls, 4);
    assert.deepEqual(
      (await types(first)).filter((type) => type !== 'TargetPublishCheckpointed' && type !== 'TargetPublishStarted'),
      [...Array(3).fill('TargetPublishDeferred'), 'TargetPublished'],
    );
    [calls, answers] = [1, [nothing]];
    const second = await schedule();
    await world.all([second], 'failed');
    assert.equal(calls, 5, 'four attempts, each behind a boundary of its own');
    assert.ok(!(await types(second)).includes('TargetOutcomeUnknown'));
    await one.stop();
  });

  t(
    'an instant that a network names for the next try is at most a day away, and the event tells of a later one',
    async () => {
      const dayMs = 86_400_000;
      for (const [named, text] of [
        ['2036-01-01T00:00:00.000Z', /2036-01-01T00:00:00.000Z.*within a day/],
        ['9999-12-31T23:59:59.999Z', /9999-12-31T23:59:59.999Z/],
        [new Date(Date.now() + dayMs - 60_000).toISOString(), /^The network did not answer.$/],
      ] as const) {
        const limiting = start(adapter(async () => ({ kind: 'rate_limited', retryAt: named, failure })));
        const id = await schedule();
        const [limited] = await world.all([id], 'rate_limited');
        assert.ok(limited?.status === 'rate_limited');
        const away = Date.parse(limited.retryAt) - Date.now();
        assert.ok(away <= dayMs && away > dayMs - 120_000, limited.retryAt);
        const event = (await world.store.readStream(`target-${id}`)).at(-1);
        assert.match(String((event?.data.failure as typeof failure | undefined)?.message), text);
        await limiting.stop();
      }
    },
  );

  t('whatever instant a network names, the waits after its refusals grow', async () => {
    const now = () => new Date().toISOString();
    const past = () => new Date(Date.now() - 2_000).toISOString();
    for (const named of [now, past, () => '1970-01-01T00:00:00Z', () => 'tomorrow', () => '-0']) {
      const limiting = world.publisher(
        { maxRateLimits: 4 },
        {
          adapterOf: () => adapter(async () => ({ kind: 'rate_limited', retryAt: named(), failure })),
          random: () => 1,
        },
      );
      const id = await schedule();
      await world.all([id], 'failed');
      const limits = (await world.store.readStream(`target-${id}`)).filter(({ type }) => type === 'TargetRateLimited');
      const waits = limits.map(
        ({ data, metadata }) => Date.parse(String(data.retryAt)) - Date.parse(metadata.occurredAt),
      );
      assert.equal(waits.length, 4);
      // A tenth of each is its jitter, and the event is stored a moment after its instant was counted.
      for (const [at, ms] of [55, 220, 440, 440].entries()) {
        const wait = waits[at] ?? 0;
        assert.ok(wait > ms - 50 && wait <= ms, `${named()}: ${waits.join(', ')} ms`);
      }
      await limiting.stop();
    }
  });

  t('the publisher corrects an answer that contradicts the boundary', async () => {
    const unknownWithout = start(adapter(async () => ({ kind: 'unknown', failure })));
    const first = await schedule();
    await until('deferred', async () => (await world.story(`target-${first}`)).includes('TargetPublishDeferred'));
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

  t(
    'a call that a network limits and may have carried out is not repeated before the named time, though nothing is out',
    async () => {
      const called: string[] = [];
      const retryAt = new Date(Date.now() + 20 * 3_600_000).toISOString();
      const blocked = start(
        adapter(
          async ({ targetId }, steps) => {
            await steps.boundary({});
            called.push(targetId);
            return { kind: 'unknown', failure, retryAt };
          },
          { absenceIsProof: () => true, settleWindowMs: () => 0 },
        ),
      );
      const id = await schedule();
      await until('it is known that nothing is out', async () =>
        (await world.story(`target-${id}`)).includes('TargetOutcomeSettled'),
      );
      const state = await world.target(id);
      assert.deepEqual(state.status === 'pending' && [state.retryAt, called.filter((one) => one === id)], [
        retryAt,
        [id],
      ]);
      await blocked.stop();
    },
  );

  t('the publisher abandons a call that ignores its deadline, and ignores its late answer', async () => {
    let answered = false;
    const late = Promise.withResolvers<void>();
    const publisher = start(
      adapter(async (_request, steps) => {
        await steps.boundary({});
        await late.promise;
        answered = true;
        return present;
      }),
    );
    const id = await schedule();
    await world.all([id], 'outcome_unknown');
    assert.equal(answered, false);
    late.resolve();
    await until('the late answer', () => answered);
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

  t('a lost lease aborts the work, and later steps of it are refused', async () => {
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
    await until('begun', () => story.length > 0);
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

  t('a drain lets calls in flight end, and leaves other work to the next worker', async () => {
    const begun: string[] = [];
    const drained = Promise.withResolvers<void>();
    const publisher = start(
      adapter(
        async ({ targetId }, steps) => {
          if (targetId === second) {
            begun.push('preparing');
            await untilAborted(steps.signal);
            drained.resolve();
            steps.signal.throwIfAborted();
          }
          await steps.boundary({});
          begun.push('called');
          await drained.promise;
          return present;
        },
        { boundaryDeadlineMs: 60_000 },
      ),
    );
    let second = '';
    const { targetIds } = await world.schedule([account, await world.connect(account.clientId, 'x')], {
      dueAt: Date.now() + 1_500,
    });
    const [first = '', other = ''] = targetIds;
    second = other;
    await until('both', () => begun.length === 2);
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

  t('an expired token is not reported for an account reauthorized meanwhile', async () => {
    const renewed = await world.connect(account.clientId, 'x', 'renewed');
    const publisher = start(
      adapter(async () => {
        await world.connect(account.clientId, 'x', 'renewed');
        const { account: decider } = await import('#domain/account.ts');
        const { execute } = await import('#runtime/eventing/execute.ts');
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

  t('a network that hangs delays no target of another network', async () => {
    const hanging = new Set<string>();
    const startedAt = new Map<string, number>();
    const publisher = world.publisher(
      { publishConcurrency: 8 },
      {
        adapterOf: () =>
          adapter(async ({ targetId, platform }, steps) => {
            if (platform === 'x') {
              hanging.add(targetId);
              await untilAborted(steps.signal);
              throw steps.signal.reason;
            }
            startedAt.set(targetId, Date.now());
            await steps.boundary({});
            return present;
          }),
      },
    );
    const { clientId } = account;
    await world.schedule(await Promise.all(Array.from({ length: 16 }, () => world.connect(clientId, 'x'))));
    await until('it hangs', () => hanging.size > 1);
    const dueAt = Date.now() + 1_500;
    const { targetIds } = await world.schedule([await world.connect(clientId, 'linkedin')], { dueAt });
    await world.all(targetIds, 'published', 10_000);
    const lateMs = (startedAt.get(targetIds[0] ?? '') ?? Number.NaN) - dueAt;
    assert.ok(lateMs >= 0 && lateMs < 1_000 * patience, `${lateMs} ms late`);
    assert.ok(hanging.size <= 4, `${hanging.size} of 8 hang`);
    await publisher.stop();
  });

  t('networks that do not answer reconcile calls delay no target', async () => {
    // As many networks as there would be places, were the questions asked in those of publishing.
    const networks = (['linkedin', 'threads', 'bluesky', 'facebook'] as const).flatMap((one) => [one, one, one]);
    const accounts = await Promise.all(networks.map((one) => world.connect(account.clientId, one)));
    const { targetIds: unknown, postId } = await world.schedule(accounts, { dueAt: Date.now() - 1_000 });
    for (const id of unknown) {
      const claim = { attempt: 1, takeover: 0 };
      const act = (command: TargetCommand) =>
        execute(world.store, target, id, command, world.context(), { partitionKey: postId });
      await act({ type: 'Start', now: new Date().toISOString() });
      const deadline = new Date().toISOString();
      await act({ ...claim, type: 'Checkpoint', step: 'boundary', data: {}, deadline });
      await act({ ...claim, type: 'RecordUnknown', failure, reconcileAt: new Date().toISOString() });
    }
    await until('the read model knows', async () => {
      const known = `select from ${view('post_targets')} where status = 'outcome_unknown' and id = any($1)`;
      return (await world.pool.query(known, [unknown])).rowCount === unknown.length;
    });
    let asked = 0;
    const silence = Promise.withResolvers<ReconcileOutcome>();
    const publisher = world.publisher(
      { publishConcurrency: 2 },
      {
        adapterOf: () =>
          adapter(async () => present, {
            boundaryDeadlineMs: 60_000,
            reconcile: () => {
              asked += 1;
              return silence.promise;
            },
          }),
      },
    );
    await until('it is asked', () => asked >= 4);
    const { targetIds } = await world.schedule([account]);
    await world.all(targetIds, 'published', 10_000);
    assert.ok(
      (await Promise.all(unknown.map((id) => world.target(id)))).every(({ status }) => status === 'outcome_unknown'),
    );
    silence.resolve({ kind: 'undecided' });
    await publisher.stop();
  });

  t('the slots of targets that could not be leased are given back', async () => {
    let fault: string | null = 'asked for';
    let asked = 0;
    const clock = {
      ...wallClock,
      fault: () => {
        asked += 1;
        return fault;
      },
    };
    const publisher = world.publisher({ publishConcurrency: 1 }, { clock });
    const { targetIds } = await world.schedule([account]);
    await until('it was found, and not leased, more often than there are slots', async () => asked > 4);
    fault = null;
    await world.all(targetIds, 'published');
    await publisher.stop();
  });

  t('a preparation ends when no byte moves, and at its limit in any case', async () => {
    const aborted: string[] = [];
    const idle = { preparationIdleMs: 500, preparationLimitMs: 60_000 };
    const goingOn = async (steps: PublishSteps, ms: number, step: (at: number) => unknown) => {
      for (let at = 0; at < ms / 100 && !steps.signal.aborted; at += 1) {
        await step(at);
        await delay(100);
      }
      if (steps.signal.aborted) aborted.push('moving');
      steps.signal.throwIfAborted();
    };
    const hangs = world.publisher(
      { deferDelaysMs: [60_000] },
      {
        ...idle,
        adapterOf: () =>
          adapter(async ({ content }, steps) => {
            if (content === 'moves') await goingOn(steps, 1_200, () => steps.moved(1));
            else if (content === 'steps') await goingOn(steps, 1_200, (at) => steps.checkpoint(`step ${at}`, {}));
            else {
              await goingOn(steps, 200, () => steps.moved(0));
              await untilAborted(steps.signal);
              aborted.push(content);
              throw steps.signal.reason;
            }
            await steps.boundary({});
            return present;
          }),
      },
    );
    const ids = await Promise.all(
      ['moves', 'steps', 'hangs'].map(async (text) => (await world.schedule([account], { text })).targetIds[0] ?? ''),
    );
    await world.all(ids.slice(0, 2), 'published');
    const deferred = async (id = '') => (await world.story(`target-${id}`)).includes('TargetPublishDeferred');
    await until('what hangs is put off', () => deferred(ids[2]));
    assert.deepEqual(aborted, ['hangs']);
    await hangs.stop();
    const limited = world.publisher(
      { deferDelaysMs: [60_000] },
      {
        preparationIdleMs: 500,
        preparationLimitMs: 900,
        adapterOf: () =>
          adapter(async (_request, steps) => {
            await goingOn(steps, 30_000, () => steps.moved(1));
            return present;
          }),
      },
    );
    const { targetIds } = await world.schedule([account]);
    await until('what never ends is put off', () => deferred(targetIds[0]));
    await until('and stopped', () => aborted.includes('moving'));
    await limited.stop();
  });
});

suite('publisher parts', (t) => {
  t('fetched bytes count as movement, also after a restarted fetch', () => {
    const steps = new Steps({} as LeasedTarget, new AbortController().signal, 1_000, null);
    const seen = [steps.movedAt];
    for (const bytes of [0, 10, 10, 4, 6]) {
      const end = performance.now() + 2;
      while (performance.now() < end);
      steps.fetched(bytes);
      seen.push(steps.movedAt);
    }
    const moves = seen.slice(1).map((at, index) => at > (seen[index] ?? 0));
    assert.deepEqual(moves, [false, true, false, false, true]);
  });

  t('the queue takes keys in turn and never more than its width', async () => {
    const queue = new FairQueue({ slots: new Slots(2, atMost(2)) });
    const order: string[] = [];
    let running = 0;
    const work = (key: string) =>
      queue.run({ workspaceId: key }, async () => {
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
    await queue.run({ workspaceId: 'after' }, async () => undefined);
  });

  t('the publisher asks about an unknown outcome by its delays, then hourly, and gives up after 72 hours', () => {
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

  t('a move of the clock of a sandbox shortens no window of a call', () => {
    const call = { attempt: 1, step: 'boundary', data: {}, segment: null, deadline: '2026-01-31T08:00:10.000Z' };
    const ends = Date.parse('2026-01-31T08:00:15.000Z');
    assert.equal(windowEndsAt(call, 5_000, 0), ends);
    // The deadline was told an hour ahead of real time, and the clock is a day ahead by now.
    const [then, now] = [3_600_000, 86_400_000];
    assert.equal(windowEndsAt({ ...call, aheadMs: then }, 5_000, now), ends - then + now);
  });

  t('a deadline that passed while the process stood still aborts before its timer runs', () => {
    const deadline = new Deadline(30);
    assert.equal(deadline.signal.aborted, false);
    const end = performance.now() + 40;
    while (performance.now() < end);
    assert.equal(deadline.signal.aborted, true);
    assert.throws(() => deadline.signal.throwIfAborted());
  });
});

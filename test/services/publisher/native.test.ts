import assert from 'node:assert/strict';
import { post } from '#domain/post/post.ts';
import { type TargetCommand, type TargetIn, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { PostBody } from '#schemas/post.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld, quickNetwork, type Running } from '#test/support/publishing.ts';
import { failure } from '#test/support/samples.ts';
import { random, seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const minuteMs = 60_000;

suite('posts for the network’s own scheduler', { waits: true, timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let facebook: Account;
  let youtube: Account;
  let publisher: Running;
  const clock = new MovedClock();

  /** Moves our clock and the network's. */
  const pass = async (ms: number): Promise<void> => {
    await world.sandbox.advance(ms);
    clock.pass(ms);
  };
  const start = (): Running => world.publisher({}, { clock });
  const inMinutes = (minutes: number): number => clock.now() + minutes * minuteMs;
  const schedule = async (account: Account, minutes: number, text = 'hello', body: Partial<PostBody> = {}) => {
    const dueAt = inMinutes(minutes);
    const { postId, targetIds } = await world.schedule([account], { text, dueAt, scheduleMode: 'native', body });
    return { postId, id: targetIds[0] ?? '', dueAt: new Date(dueAt).toISOString() };
  };
  const ask = async (postId: string, id: string, command: TargetCommand): Promise<void> => {
    const context = { ...world.context(), now: new Date(clock.now()).toISOString() };
    const commandId = 'commandId' in command ? command.commandId : context.commandId;
    await execute(world.store, target, id, command, { ...context, commandId }, { partitionKey: postId });
  };
  const cancel = (postId: string, id: string) =>
    ask(postId, id, {
      type: 'Cancel',
      reason: 'requested',
      postRevision: null,
      now: new Date(clock.now()).toISOString(),
    });
  /** @returns when it is due then */
  const move = async (postId: string, id: string, minutes: number): Promise<string> => {
    const dueAt = new Date(inMinutes(minutes)).toISOString();
    await ask(postId, id, {
      type: 'Reschedule',
      commandId: `move-${id}-${minutes}`,
      dueAt,
      scheduledLocal: null,
      jitterSeconds: 0,
      now: new Date(clock.now()).toISOString(),
    });
    return dueAt;
  };
  const state = async <S extends 'published' | 'failed' | 'pending' | 'outcome_unknown' | 'handed_to_platform'>(
    id: string,
    status: S,
  ) => {
    const [found] = await world.all([id], status);
    return found as TargetIn<S>;
  };
  /** What the network has of a target: its time if it is scheduled, and whether it was deleted. */
  const rows = async (id: string) =>
    (await world.sandbox.creates(id))
      .filter(({ outcome }) => outcome === 'created')
      .map(({ scheduledFor, undoneAt }) => [scheduledFor?.toISOString() ?? 'at once', undoneAt === null]);
  const story = (id: string) => world.story(`target-${id}`);
  /** The network has the post no longer, and nobody of ours knows why. */
  const lose = async (id: string, nativeId: string): Promise<void> => {
    const scheduler = world.sandbox.nativeScheduler('facebook');
    const account = { id: facebook.id, externalId: '', username: null };
    const request = { content: '', account, platform: 'facebook', targetId: id };
    await scheduler?.undo(request as Parameters<typeof scheduler.undo>[0], nativeId);
  };

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const clientId = await world.client();
    facebook = await world.connect(clientId, 'facebook');
    youtube = await world.connect(clientId, 'youtube');
    publisher = start();
  });
  t.after(() => world.close());

  t('the post is handed over at once, and published by the network at its time', async () => {
    for (const account of [facebook, youtube]) {
      const { id, dueAt } = await schedule(account, 20);
      const handed = await state(id, 'handed_to_platform');
      assert.deepEqual(await rows(id), [[dueAt, true]]);
      assert.ok((await story(id)).includes('TargetHandedToPlatform'));
      await pass(19 * minuteMs);
      assert.equal((await world.target(id)).status, 'handed_to_platform', 'nobody asks before its time');
      await pass(minuteMs);
      const published = await state(id, 'published');
      assert.deepEqual([published.externalId, published.publishedAt], [handed.nativeId, dueAt]);
      assert.deepEqual(await rows(id), [[dueAt, true]]);
      assert.equal(published.common.attempts, 1);
    }
  });

  t('too late for the window of the network, it is published by us at its time', async () => {
    const { id, dueAt } = await schedule(facebook, 9);
    await until('it is managed', async () => (await story(id)).includes('TargetScheduleModeChanged'));
    assert.deepEqual(await story(id), ['TargetScheduled', 'TargetScheduleModeChanged']);
    await pass(9 * minuteMs);
    await state(id, 'published');
    const [create] = await world.sandbox.creates(id);
    assert.ok(create !== undefined && create.scheduledFor === null);
    const started = (await world.store.readStream(`target-${id}`)).find(({ type }) => type === 'TargetPublishStarted');
    assert.ok(String(started?.metadata.occurredAt) >= dueAt, 'published early');
  });

  t('a cancel deletes the post on the network first', async () => {
    const { postId, id } = await schedule(facebook, 20);
    const { common } = await state(id, 'handed_to_platform');
    await cancel(postId, id);
    await world.all([id], 'canceled');
    assert.deepEqual(await rows(id), [[common.dueAt, false]]);
    assert.deepEqual((await story(id)).slice(-3), ['TargetHandedToPlatform', 'TargetUndoRequested', 'TargetCanceled']);
    await pass(21 * minuteMs);
    assert.equal((await world.target(id)).status, 'canceled');
  });

  const movedTo = (id: string, dueAt: string) =>
    until(`it is due ${dueAt}`, async () => {
      const now = await world.target(id);
      return now.status === 'handed_to_platform' && now.undo === null && now.common.dueAt === dueAt ? now : null;
    });

  t('the network publishes the same post at its new time, later or sooner, without another hand-over', async () => {
    for (const account of [facebook, youtube]) {
      const { postId, id } = await schedule(account, 20);
      const { nativeId } = await state(id, 'handed_to_platform');
      await movedTo(id, await move(postId, id, 60));
      await pass(20 * minuteMs);
      assert.equal((await world.target(id)).status, 'handed_to_platform', 'nobody asks at its former time');
      const sooner = await move(postId, id, 20);
      await movedTo(id, sooner);
      assert.deepEqual((await story(id)).slice(-4), [
        ...['TargetUndoRequested', 'TargetNativeTimeChanged', 'TargetUndoRequested', 'TargetNativeTimeChanged'],
      ]);
      await pass(20 * minuteMs);
      const published = await state(id, 'published');
      assert.deepEqual([published.externalId, published.publishedAt], [nativeId, sooner]);
      assert.deepEqual([published.common.attempts, await rows(id)], [1, [[sooner, true]]]);
    }
  });

  /** As the api does it: the intent, then the fan-out. */
  const revise = async (postId: string, id: string, over: Partial<PostBody>): Promise<void> => {
    const { state: now } = await world.store.load(post, postId);
    assert.ok(now.status === 'live');
    const context = { ...world.context(), now: new Date(clock.now()).toISOString() };
    const body = { ...now.body, ...over };
    const command = { type: 'Revise', commandId: context.commandId, changed: ['content'], body } as const;
    const loaded = await execute(world.store, post, postId, { ...command, targetIds: [id], times: null }, context);
    await fanOut(world.store, postId, context, { loaded });
  };
  const contents = async (id: string) =>
    (await world.sandbox.creates(id)).flatMap(({ outcome, content, undoneAt }) =>
      outcome === 'created' ? [[content, undoneAt === null]] : [],
    );

  t(
    'the network publishes the same post with its new content, without another hand-over, minutes before its time too',
    async () => {
      for (const account of [facebook, youtube]) {
        const { postId, id, dueAt } = await schedule(account, 20, 'first');
        const { nativeId } = await state(id, 'handed_to_platform');
        for (const content of ['better', 'best']) {
          if (content === 'best') await pass(15 * minuteMs);
          await revise(postId, id, { content });
          await until(`it says ${content}`, async () => (await contents(id))[0]?.[0] === content);
          await until('nothing is wanted', async () => (await story(id)).at(-1) === 'TargetNativeRevised');
        }
        await pass(5 * minuteMs);
        const published = await state(id, 'published');
        assert.deepEqual([published.externalId, published.publishedAt], [nativeId, dueAt]);
        assert.deepEqual([published.common.attempts, published.common.postRevision], [1, 2]);
        assert.deepEqual([await rows(id), await contents(id)], [[[dueAt, true]], [['best', true]]]);
      }
    },
  );

  t('what the network changes of no scheduled post, such as a file, takes it back and hands over another', async () => {
    const clip = [(await world.clip()).id];
    const changes: readonly (readonly [Partial<PostBody>, Partial<PostBody>])[] = [
      [{}, { content: 'other', aiDisclosure: true }],
      [{ mediaIds: clip }, { content: 'other', mediaIds: [] }],
    ];
    for (const [body, over] of changes) {
      const { postId, id, dueAt } = await schedule(facebook, 30, 'first', body);
      const { nativeId } = await state(id, 'handed_to_platform');
      await revise(postId, id, over);
      const again = await until('it is handed over anew', async () => {
        const now = await world.target(id);
        return now.status === 'handed_to_platform' && now.nativeId !== nativeId ? now : null;
      });
      assert.deepEqual([again?.common.attempts, again?.common.dueAt], [2, dueAt]);
      assert.deepEqual(await contents(id), [
        ['first', false],
        ['other', true],
      ]);
      assert.ok((await story(id)).includes('TargetRevised') && !(await story(id)).includes('TargetNativeRevised'));
      await cancel(postId, id);
      await world.all([id], 'canceled');
    }
  });

  t('a time outside of the window of the network takes the post back, and we publish it', async () => {
    const { postId, id } = await schedule(youtube, 20);
    await state(id, 'handed_to_platform');
    await move(postId, id, 5);
    const managed = await state(id, 'pending');
    assert.deepEqual(
      [managed.common.scheduleMode, managed.common.scheduleModeReason],
      ['managed', 'outside_native_window'],
    );
    await pass(5 * minuteMs);
    await state(id, 'published');
    assert.deepEqual(
      (await rows(id)).map(([, there]) => there),
      [false, true],
    );
  });

  t('a hand-over whose answer was lost is found by asking, and never repeated on a guess', async () => {
    const found = await schedule(facebook, 30, 'a [[sandbox:timeout_after once]]');
    await state(found.id, 'handed_to_platform');
    assert.deepEqual(await rows(found.id), [[found.dueAt, true]]);
    const late = await schedule(facebook, 30, 'b [[sandbox:late once 700ms]]');
    await state(late.id, 'handed_to_platform');
    assert.ok((await story(late.id)).includes('TargetOutcomeUnknown'));
    assert.deepEqual(await rows(late.id), [[late.dueAt, true]]);
    // Absence is proof on youtube: the next attempt uses the same upload.
    const proven = await schedule(youtube, 30, 'c [[sandbox:error_before once]]');
    await state(proven.id, 'handed_to_platform');
    assert.deepEqual(await rows(proven.id), [[proven.dueAt, true]]);
    assert.ok((await story(proven.id)).includes('TargetOutcomeSettled'));
    // It is none on facebook: a person decides.
    const lost = await schedule(facebook, 30, 'd [[sandbox:error_before once]]');
    await state(lost.id, 'outcome_unknown');
    await cancel(lost.postId, lost.id);
    assert.deepEqual(await rows(lost.id), []);
    await pass(31 * minuteMs);
    for (const { id } of [found, late, proven]) await state(id, 'published');
    assert.equal((await world.target(lost.id)).status, 'outcome_unknown');
    const now = new Date(clock.now()).toISOString();
    const settle = { type: 'Settle', by: 'admin', now, outcome: { kind: 'failed', failure } } as const;
    await execute(world.store, target, lost.id, settle, world.context(), { partitionKey: lost.postId });
    assert.equal((await world.target(lost.id)).status, 'canceled');
  });

  t('a refusal fails the target; a retry hands it over again', async () => {
    const { postId, id, dueAt } = await schedule(facebook, 30, 'no [[sandbox:reject once]]');
    await state(id, 'failed');
    assert.deepEqual(await rows(id), []);
    await ask(postId, id, { type: 'Retry', commandId: `retry-${id}`, now: new Date(clock.now()).toISOString() });
    await state(id, 'handed_to_platform');
    assert.deepEqual(await rows(id), [[dueAt, true]]);
    await cancel(postId, id);
    await world.all([id], 'canceled');
  });

  t('a rate limit and an unavailable network are waited for, but not past the window', async () => {
    const limited = await schedule(facebook, 30, 'a [[sandbox:rate_limit once 300ms]]');
    await state(limited.id, 'handed_to_platform');
    assert.ok((await story(limited.id)).includes('TargetRateLimited'));
    const down = await schedule(facebook, 30, 'b [[sandbox:down 2x]]');
    await state(down.id, 'handed_to_platform');
    // The network names its time by the clock that nobody moves.
    const limitMinutes = Math.round((inMinutes(25) - Date.now()) / minuteMs);
    const long = await schedule(facebook, 30, `c [[sandbox:rate_limit once ${limitMinutes}m]]`);
    const managed = await until('it is managed', async () => {
      const now = await world.target(long.id);
      return now.status === 'pending' && now.common.scheduleMode === 'managed' ? now : null;
    });
    assert.equal(managed?.common.scheduleModeReason, 'outside_native_window');
    const tired = await schedule(facebook, 30, 'd [[sandbox:down 4x]]');
    await until('it is managed', async () => {
      const now = await world.target(tired.id);
      return now.status === 'pending' && now.common.scheduleModeReason === 'network_unavailable';
    });
    assert.deepEqual(await rows(tired.id), []);
    await pass(31 * minuteMs);
    const all = [limited.id, down.id, long.id, tired.id];
    await world.all(all, 'published');
    for (const id of all) assert.equal(await world.created(id), 1);
  });

  t('an undo whose answer was lost is asked after, never assumed', async () => {
    const done = await schedule(facebook, 30, 'a [[sandbox:undo_timeout_after once]]');
    const not = await schedule(facebook, 30, 'b [[sandbox:undo_timeout_before 2x]]');
    for (const { postId, id } of [done, not]) {
      await state(id, 'handed_to_platform');
      await cancel(postId, id);
      await world.all([id], 'canceled');
      assert.deepEqual(
        (await rows(id)).map(([, there]) => there),
        [false],
      );
    }
  });

  t(
    'what the network published before it could be taken back is published, and the undo is told as failed',
    async () => {
      const early = await schedule(facebook, 30, 'a [[sandbox:native_early once 1ms]]');
      await state(early.id, 'handed_to_platform');
      await pass(10);
      await cancel(early.postId, early.id);
      await state(early.id, 'published');
      assert.deepEqual((await story(early.id)).slice(-3), [
        'TargetUndoRequested',
        'TargetUndoFailed',
        'TargetOutcomeSettled',
      ]);
      // The network closes before the post is out.
      const late = await schedule(facebook, 30);
      await state(late.id, 'handed_to_platform');
      await publisher.stop();
      await cancel(late.postId, late.id);
      await pass(30 * minuteMs - 10_000);
      publisher = start();
      await until('the undo failed', async () => (await story(late.id)).includes('TargetUndoFailed'));
      assert.equal((await world.target(late.id)).status, 'handed_to_platform');
      await assert.rejects(cancel(late.postId, late.id), /too soon to take it back/);
      await pass(10_000);
      await state(late.id, 'published');
      // The publisher was down over the due time.
      const missed = await schedule(facebook, 30);
      await state(missed.id, 'handed_to_platform');
      await publisher.stop();
      await cancel(missed.postId, missed.id);
      await pass(31 * minuteMs);
      publisher = start();
      await state(missed.id, 'published');
      for (const { id } of [early, late, missed]) assert.equal(await world.created(id), 1);
    },
  );

  t('a post that the network never publishes, loses, or refuses at its time', async () => {
    const never = await schedule(facebook, 30, 'a [[sandbox:native_never once]]');
    const failed = await schedule(facebook, 30, 'b [[sandbox:native_failed once]]');
    const gone = await schedule(facebook, 30, 'c');
    for (const { id } of [never, failed, gone]) await state(id, 'handed_to_platform');
    const { nativeId } = await state(gone.id, 'handed_to_platform');
    await lose(gone.id, nativeId);
    await pass(30 * minuteMs);
    const refused = await state(failed.id, 'failed');
    assert.equal(refused.failure.code, 'native_publish_failed');
    await pass(minuteMs);
    const lost = await state(gone.id, 'failed');
    assert.equal(lost.failure.code, 'native_post_gone');
    const open = await state(never.id, 'outcome_unknown');
    assert.equal(open.nativeId !== null, true);
    await ask(failed.postId, failed.id, {
      type: 'Retry',
      commandId: `retry-${failed.id}`,
      now: new Date(clock.now()).toISOString(),
    });
    const published = await state(failed.id, 'published');
    assert.deepEqual([published.common.scheduleMode, published.common.scheduleModeReason], ['managed', 'due_now']);
  });

  t('while the network may publish a post, its absence does not make it taken back', async () => {
    const { postId, id, dueAt } = await schedule(facebook, 30);
    const { nativeId } = await state(id, 'handed_to_platform');
    await publisher.stop();
    await cancel(postId, id);
    await lose(id, nativeId);
    await pass(30 * minuteMs);
    publisher = start();
    await world.all([id], 'canceled');
    const [canceled] = (await world.store.readStream(`target-${id}`)).filter(({ type }) => type === 'TargetCanceled');
    const at = Date.parse(canceled?.metadata.occurredAt ?? '');
    assert.ok(at >= Date.parse(dueAt) + quickNetwork.settleWindowMs, `${at} is before the network is sure`);
  });

  t('a change of many targets takes back those that the network has', async () => {
    const accounts = [facebook, youtube];
    const { postId, targetIds } = await world.schedule(accounts, { dueAt: inMinutes(30), scheduleMode: 'native' });
    await world.all(targetIds, 'handed_to_platform');
    const context = { ...world.context(), now: new Date(clock.now()).toISOString() };
    const intent = { type: 'CancelTargets', targetIds, reason: 'client_archived' } as const;
    await execute(world.store, post, postId, intent, context);
    await fanOut(world.store, postId, context);
    await world.all(targetIds, 'canceled');
    for (const id of targetIds) {
      assert.deepEqual(
        (await rows(id)).map(([, there]) => there),
        [false],
      );
      const events = await world.store.readStream(`target-${id}`);
      assert.equal(events.at(-1)?.data.reason, 'client_archived');
    }
  });

  t('publishers, cancels and moves race: every target ends, with at most one post', async () => {
    const { seed } = seeded('native races');
    const draw = random(seed);
    const others = [start(), start()];
    const faults = [
      '',
      '',
      '[[sandbox:timeout_after once]]',
      '[[sandbox:undo_timeout_after once]]',
      '[[sandbox:undo_timeout_before once]]',
    ];
    const made = await Promise.all(
      Array.from({ length: 24 }, (_none, at) =>
        schedule(at % 2 === 0 ? facebook : youtube, draw.int(16, 20), `race ${at} ${draw.pick(faults)}`),
      ),
    );
    await Promise.all(
      made.map(async ({ postId, id }) => {
        for (let step = 0; step < 3; step += 1) {
          const does = draw.pick<((p: string, i: string) => Promise<unknown>) | null>([
            ...[cancel, (p: string, i: string) => move(p, i, draw.int(5, 30)), null],
          ]);
          await does?.(postId, id).catch(() => undefined);
          await new Promise((resolve) => setTimeout(resolve, draw.int(1, 120)));
        }
      }),
    );
    const ids = made.map(({ id }) => id);
    const over = ['published', 'canceled'];
    await until(
      'no target is under way',
      async () => {
        const states = await Promise.all(ids.map((id) => world.target(id)));
        return states.every((one) =>
          one.status === 'handed_to_platform' ? one.undo === null : ['pending', ...over].includes(one.status),
        );
      },
      { withinMs: 60_000 },
    );
    await pass(40 * minuteMs);
    await until(
      'every target ended',
      async () => {
        const states = await Promise.all(ids.map((id) => world.target(id)));
        return states.every(({ status }) => over.includes(status));
      },
      { withinMs: 60_000 },
    );
    for (const id of ids) {
      const there = (await rows(id)).filter(([, is]) => is).length;
      const { status } = await world.target(id);
      assert.equal(there, status === 'published' ? 1 : 0, `${id} is ${status}: ${(await story(id)).join(' ')}`);
    }
    for (const one of others) await one.stop();
  });

  t('no target has two posts', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});

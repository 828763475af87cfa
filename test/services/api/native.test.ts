import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { undoClosesMs } from '#domain/post/scheduling.ts';
import { type TargetCommand, target as targetDecider } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, refused } from '#test/support/composing.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: one } = await composedWorld(['facebook', 'x']);

suite('native targets over HTTP', (t) => {
  const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();
  interface Shown {
    readonly id: string;
    readonly platform: string;
    readonly status: string;
    readonly scheduledAt: string;
    readonly scheduleMode: string;
    readonly scheduleModeReason: string | null;
    readonly undo: string | null;
    readonly content: string;
  }
  const made = async (minutes: number, more: Record<string, unknown> = {}) => {
    const schedule = { type: 'at', scheduledAt: inMinutes(minutes) };
    const post = await tester.post('/posts', one.body({ scheduleMode: 'native', schedule, ...more }));
    assert.equal(post.status, 200, post.text);
    const targets = post.data.targets as Shown[];
    const facebook = targets.find(({ platform }) => platform === 'facebook');
    assert.ok(facebook);
    return { postId: String(post.data.id), targets, facebook };
  };
  /** What a publisher would tell the target. */
  const tell = async (postId: string, id: string, ...commands: TargetCommand[]) => {
    for (const command of commands) {
      const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
      await execute(world.store, targetDecider, id, command, context, { partitionKey: postId });
    }
  };
  const claim = { attempt: 1, takeover: 0 };
  const now = () => new Date().toISOString();
  const handOver = (postId: string, id: string) =>
    tell(
      postId,
      id,
      { type: 'Start', now: now() },
      { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: inMinutes(1) },
      { type: 'RecordHandedOver', ...claim, nativeId: 'n1' },
    );
  const act = (id: string, action: string, body?: unknown) => tester.post(`/post-targets/${id}/${action}`, body);
  const shown = async (id: string): Promise<Shown> => {
    await world.settled();
    return (await tester.get(`/post-targets/${id}`)).data as unknown as Shown;
  };

  t('each target says its mode, and why it is not native', async () => {
    const modes = async (minutes: number, more: Record<string, unknown> = {}) => {
      const { targets } = await made(minutes, more);
      return Object.fromEntries(
        targets.map(({ platform, scheduleMode, scheduleModeReason }) => [platform, [scheduleMode, scheduleModeReason]]),
      );
    };
    const x = ['managed', 'platform_has_no_scheduler'];
    assert.deepEqual(await modes(60), { facebook: ['native', null], x });
    assert.deepEqual(await modes(5), { facebook: ['managed', 'outside_native_window'], x });
    assert.deepEqual(await modes(60, { schedule: { type: 'now' } }), { facebook: ['managed', 'due_now'], x });
    const story = { platform: 'facebook', overrides: { contentType: 'story' } };
    const mediaIds: readonly string[] = [];
    const refusedStory = await tester.post(
      '/posts',
      one.body({
        scheduleMode: 'native',
        schedule: { type: 'at', scheduledAt: inMinutes(60) },
        variants: [story],
        mediaIds,
      }),
    );
    assert.equal(refusedStory.status, 422, 'a story needs a file');
    assert.deepEqual(await modes(60, { scheduleMode: 'managed' }), {
      facebook: ['managed', null],
      x: ['managed', null],
    });
  });

  t('a setting of any JSON value is refused as one of a wrong type, alone and beside others', async () => {
    const schedule = { type: 'at', scheduledAt: inMinutes(60) };
    const contentType = { toString: 'story', valueOf: 'story' };
    const variants = [{ platform: 'facebook', overrides: { contentType } }];
    const odd = one.body({ scheduleMode: 'native', schedule, variants });
    const send = (path: string, body: unknown) => tester.post(path, undefined, { raw: JSON.stringify(body) });
    refused(await send('/posts', odd), 422, 'validation_failed', ['/variants/0/overrides/contentType']);
    const preview = await send('/posts/preview', odd);
    assert.deepEqual([preview.status, preview.data.valid], [200, false], preview.text);
    const draft = await send('/posts', { ...odd, saveDraft: true });
    assert.equal(draft.status, 200, draft.text);
    refused(await tester.post(`/posts/${draft.data.id}/publish`, {}), 422, 'validation_failed');
    const bulk = await send('/posts/bulk', { posts: [odd, one.body()] });
    assert.deepEqual([bulk.status, bulk.data.created, bulk.data.rejected], [200, 1, 1], bulk.text);
  });

  t('a cancel of a handed-over target is pending until the network has deleted the post', async () => {
    const { postId, facebook } = await made(60);
    await handOver(postId, facebook.id);
    assert.equal((await shown(facebook.id)).status, 'handed_to_platform');
    const asked = await act(facebook.id, 'cancel');
    assert.equal(asked.status, 200, asked.text);
    assert.deepEqual([asked.data.status, asked.data.undo], ['handed_to_platform', 'pending']);
    const again = await act(facebook.id, 'cancel');
    assert.deepEqual([again.status, again.data.undo, again.data.revision], [200, 'pending', asked.data.revision]);
    refused(await act(facebook.id, 'reschedule', { shiftMinutes: 5 }), 409, 'target_not_pending');
    await tell(postId, facebook.id, { type: 'RecordUndone', now: now() });
    const done = await shown(facebook.id);
    assert.deepEqual([done.status, done.undo], ['canceled', 'done']);
    assert.equal((await act(facebook.id, 'cancel')).data.undo, 'done');
  });

  t('a handed-over target that is due within a minute is neither canceled nor moved', async () => {
    const { postId, facebook } = await made(60);
    await handOver(postId, facebook.id);
    const closes = Date.parse(facebook.scheduledAt) - undoClosesMs;
    try {
      world.clock.shiftMs = closes + 1_000 - Date.now();
      refused(await act(facebook.id, 'cancel'), 409, 'target_not_pending');
      refused(await act(facebook.id, 'reschedule', { shiftMinutes: 5 }), 409, 'target_not_pending');
      world.clock.shiftMs = closes - 30_000 - Date.now();
      assert.equal((await act(facebook.id, 'cancel')).data.undo, 'pending');
    } finally {
      world.clock.shiftMs = 0;
    }
  });

  t(
    'a revise to a setting that the network does not schedule takes the target back from it, and returns it',
    async () => {
      const picture = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
      await world.settled();
      const { postId, facebook } = await made(60, { mediaIds: [picture.id] });
      const { scheduledAt } = facebook;
      const revise = async (contentType: string) => {
        const variants = [{ platform: 'facebook', overrides: { contentType } }];
        const answer = await tester.post(`/posts/${postId}/revise`, { variants });
        assert.equal(answer.status, 200, answer.text);
        const left = await shown(facebook.id);
        return [left.scheduleMode, left.scheduleModeReason, left.scheduledAt];
      };
      assert.deepEqual(await revise('story'), ['managed', 'setting_not_schedulable', scheduledAt]);
      assert.deepEqual(await revise('feed'), ['native', null, scheduledAt]);
      // Time alone decides where the setting does not: what was too near stays with this service.
      const near = await made(5, { mediaIds: [picture.id] });
      const answer = await tester.post(`/posts/${near.postId}/revise`, { content: 'Other words.' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal((await shown(near.facebook.id)).scheduleModeReason, 'outside_native_window');
    },
  );

  t('a post of which only the network has targets is deleted there, until it is too late for that', async () => {
    const only = { targets: { mode: 'selection', accountIds: [one.accounts.facebook] } };
    const { postId, facebook } = await made(60, only);
    await handOver(postId, facebook.id);
    const deleted = await tester.delete(`/posts/${postId}`);
    assert.equal(deleted.status, 200, deleted.text);
    assert.equal((await shown(facebook.id)).undo, 'pending');
    assert.equal((await tester.delete(`/posts/${postId}`)).status, 200);
    await tell(postId, facebook.id, { type: 'RecordUndone', now: now() });
    assert.equal((await shown(facebook.id)).status, 'canceled');
  });

  t('a reschedule of a handed-over target keeps its old time until then, and is native again or managed', async () => {
    const { postId, facebook } = await made(60);
    await handOver(postId, facebook.id);
    const at = inMinutes(120);
    const asked = await act(facebook.id, 'reschedule', { scheduledAt: at });
    assert.equal(asked.status, 200, asked.text);
    assert.deepEqual(
      [asked.data.status, asked.data.undo, asked.data.scheduledAt],
      ['handed_to_platform', 'pending', facebook.scheduledAt],
    );
    await tell(postId, facebook.id, { type: 'RecordUndone', now: now() });
    const moved = await shown(facebook.id);
    assert.deepEqual(
      [moved.status, moved.undo, moved.scheduledAt, moved.scheduleMode],
      ['pending', 'done', at, 'native'],
    );
    const second = { attempt: 2, takeover: 0 };
    await tell(
      postId,
      facebook.id,
      { type: 'Start', now: now() },
      { type: 'Checkpoint', ...second, step: 'boundary', data: {}, deadline: inMinutes(1) },
      { type: 'RecordHandedOver', ...second, nativeId: 'n2' },
    );
    assert.equal((await act(facebook.id, 'reschedule', { scheduledAt: inMinutes(5) })).data.undo, 'pending');
    await tell(postId, facebook.id, { type: 'RecordUndone', now: now() });
    const soon = await shown(facebook.id);
    assert.deepEqual(
      [soon.status, soon.scheduleMode, soon.scheduleModeReason],
      ['pending', 'managed', 'outside_native_window'],
    );
    // It is never handed over later.
    const later = await act(facebook.id, 'reschedule', { scheduledAt: inMinutes(240) });
    assert.deepEqual([later.data.status, later.data.scheduleMode], ['pending', 'managed']);
  });

  t('a network that takes the new time keeps the target, which says it is done and may be moved again', async () => {
    const { postId, facebook } = await made(60);
    await handOver(postId, facebook.id);
    for (const minutes of [120, 90]) {
      const at = inMinutes(minutes);
      assert.equal((await act(facebook.id, 'reschedule', { scheduledAt: at })).data.undo, 'pending');
      await tell(postId, facebook.id, { type: 'RecordTimeChanged', dueAt: at });
      const moved = await shown(facebook.id);
      assert.deepEqual(
        [moved.status, moved.undo, moved.scheduledAt, moved.scheduleMode],
        ['handed_to_platform', 'done', at, 'native'],
      );
    }
  });

  t(
    'a revise of a handed-over target keeps its content until the network has the new one, and says why it passes over one',
    async () => {
      const revise = (postId: string, body: unknown) => tester.post(`/posts/${postId}/revise`, body);
      const skipsOf = (answer: Awaited<ReturnType<typeof revise>>) =>
        (answer.data.revise as { skipped: readonly { targetId: string; reason: string }[] }).skipped;
      const { postId, facebook } = await made(60, { content: 'first' });
      await handOver(postId, facebook.id);
      const asked = await revise(postId, { content: 'better' });
      assert.equal(asked.status, 200, asked.text);
      assert.deepEqual(skipsOf(asked), []);
      const at = inMinutes(120);
      const [, later] = [
        await revise(postId, { content: 'best' }),
        await act(facebook.id, 'reschedule', { scheduledAt: at }),
      ];
      assert.equal(later.status, 200, later.text);
      const waiting = await shown(facebook.id);
      assert.deepEqual(
        [waiting.status, waiting.undo, waiting.content, waiting.scheduledAt],
        ['handed_to_platform', 'pending', 'first', facebook.scheduledAt],
      );
      // The network took none of them: it shows what it had.
      await tell(postId, facebook.id, { type: 'RecordUndoFailed', failure });
      assert.deepEqual([(await shown(facebook.id)).undo, (await shown(facebook.id)).content], ['failed', 'first']);
      assert.equal((await revise(postId, { content: 'last', schedule: { type: 'at', scheduledAt: at } })).status, 200);
      await tell(postId, facebook.id, { type: 'RecordRevised', postRevision: 3, dueAt: at });
      const revised = await shown(facebook.id);
      assert.deepEqual(
        [revised.status, revised.undo, revised.content, revised.scheduledAt],
        ['handed_to_platform', 'done', 'last', at],
      );
      // Only another post has it: it is taken back, and handed over anew.
      await revise(postId, { content: 'other' });
      await tell(postId, facebook.id, { type: 'RecordUndone', now: now() });
      const back = await shown(facebook.id);
      assert.deepEqual(
        [back.status, back.undo, back.content, back.scheduleMode],
        ['pending', 'done', 'other', 'native'],
      );
      const soon = await made(60);
      await handOver(soon.postId, soon.facebook.id);
      world.clock.shiftMs = 60 * 60_000 - undoClosesMs / 2;
      try {
        assert.deepEqual(skipsOf(await revise(soon.postId, { content: 'late' })), [
          { targetId: soon.facebook.id, reason: 'handed_to_platform' },
        ]);
      } finally {
        world.clock.shiftMs = 0;
      }
    },
  );

  t('a content that needs an approval passes over what the network has, which keeps the approved one', async () => {
    const { postId, facebook, targets } = await made(60, { content: 'approved' });
    await handOver(postId, facebook.id);
    await tester.patch(`/clients/${one.clientId}`, { approvalRequired: true });
    const answer = await tester.post(`/posts/${postId}/revise`, { content: 'asked for' });
    await tester.patch(`/clients/${one.clientId}`, { approvalRequired: false });
    assert.equal(answer.status, 200, answer.text);
    const { skipped } = answer.data.revise as { skipped: unknown };
    assert.deepEqual(skipped, [{ targetId: facebook.id, reason: 'handed_to_platform' }]);
    const kept = await shown(facebook.id);
    assert.deepEqual([kept.status, kept.undo, kept.content], ['handed_to_platform', null, 'approved']);
    const x = targets.find(({ platform }) => platform === 'x');
    assert.equal((await shown(x?.id ?? '')).status, 'awaiting_approval');
  });

  t('what the network publishes before it can be taken back is published, with a failed undo', async () => {
    const { postId, facebook } = await made(60);
    await handOver(postId, facebook.id);
    await act(facebook.id, 'cancel');
    await tell(postId, facebook.id, { type: 'RecordUndoFailed', failure });
    const kept = await shown(facebook.id);
    assert.deepEqual([kept.status, kept.undo], ['handed_to_platform', 'failed']);
    await act(facebook.id, 'cancel');
    const outcome = { kind: 'published', externalId: 'n1', permalink: null, publishedAt: now() } as const;
    await tell(postId, facebook.id, { type: 'Settle', by: 'reconcile', now: now(), outcome });
    const published = await shown(facebook.id);
    assert.deepEqual([published.status, published.undo], ['published', 'failed']);
    refused(await act(facebook.id, 'cancel'), 409, 'target_not_pending');
  });

  const start = (postId: string, id: string) => tell(postId, id, { type: 'Start', now: now() });
  const cross = (postId: string, id: string) =>
    tell(postId, id, { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: inMinutes(1) });
  const lose = (postId: string, id: string) =>
    tell(postId, id, { type: 'RecordUnknown', ...claim, failure, reconcileAt: inMinutes(1) });
  const answered = (postId: string, id: string) =>
    tell(postId, id, { type: 'RecordHandedOver', ...claim, nativeId: 'n1' });
  const found = (postId: string, id: string) =>
    tell(postId, id, {
      ...{ type: 'Settle', by: 'reconcile', now: now() },
      outcome: { kind: 'handed_over', nativeId: 'n1' },
    });
  /** Every way to cancel a target; each answers with the target. */
  const cancels: Readonly<Record<string, (postId: string, id: string) => Promise<Shown | undefined>>> = {
    cancel: async (_, id) => (await act(id, 'cancel')).data as unknown as Shown,
    bulk: async (_, id) => {
      const answer = await tester.post('/post-targets/bulk', { action: 'cancel', targetIds: [id] });
      return (answer.data.results as { target?: Shown }[])[0]?.target;
    },
    selection: async (postId, id) => {
      await world.settled();
      const answer = await tester.post('/post-targets/bulk', { action: 'cancel', select: { postId } });
      const found = (answer.data.results as { target?: Shown }[]).map(({ target }) => target);
      return found.find((one) => one?.id === id);
    },
    delete: async (postId, id) => {
      const answer = await tester.delete(`/posts/${postId}`);
      assert.equal(answer.status, 200, answer.text);
      return (answer.data.targets as Shown[]).find((one) => one.id === id);
    },
  };
  const only = { targets: { mode: 'selection', accountIds: [one.accounts.facebook] } };

  t('every cancel that meets the call of a hand-over, or its lost answer, is carried out on what follows', async () => {
    for (const [how, cancel] of Object.entries(cancels)) {
      for (const isLost of [false, true]) {
        for (const more of [{}, only]) {
          const { postId, facebook } = await made(60, more);
          const { id } = facebook;
          await start(postId, id);
          await cross(postId, id);
          if (isLost) await lose(postId, id);
          for (const _ of [1, 2]) {
            const asked = await cancel(postId, id);
            const status = isLost ? 'outcome_unknown' : 'publishing';
            assert.deepEqual([asked?.status, asked?.undo], [status, 'pending'], how);
          }
          await (isLost ? found(postId, id) : answered(postId, id));
          const handed = await shown(id);
          assert.deepEqual([handed.status, handed.undo], ['handed_to_platform', 'pending'], how);
          await tell(postId, id, { type: 'RecordUndone', now: now() });
          const done = await shown(id);
          assert.deepEqual([done.status, done.undo], ['canceled', 'done'], how);
        }
      }
    }
  });

  t('every cancel before the call of a hand-over holds at once', async () => {
    for (const [how, cancel] of Object.entries(cancels)) {
      const { postId, facebook } = await made(60, only);
      await start(postId, facebook.id);
      const asked = await cancel(postId, facebook.id);
      assert.deepEqual([asked?.status, asked?.undo], ['canceled', null], how);
      await assert.rejects(cross(postId, facebook.id), { code: 'claim_lost' });
    }
  });

  t('nothing brings back a target that is canceled during its hand-over, and a published one says so', async () => {
    const { postId, facebook } = await made(60);
    const { id } = facebook;
    await start(postId, id);
    await cross(postId, id);
    assert.equal((await act(id, 'cancel')).data.undo, 'pending');
    const { skipped } = (await tester.post(`/posts/${postId}/revise`, { content: 'Other words.' })).data.revise as {
      readonly skipped: readonly unknown[];
    };
    assert.deepEqual(skipped, [{ targetId: id, reason: 'publishing' }]);
    for (const [action, body] of [['reschedule', { shiftMinutes: 5 }], ['retry']] as const) {
      const code = action === 'retry' ? 'target_not_retryable' : 'target_not_pending';
      refused(await act(id, action, body), 409, code);
    }
    await tell(postId, id, {
      type: 'RecordPublished',
      ...claim,
      externalId: 'n1',
      permalink: null,
      publishedAt: now(),
    });
    const left = await shown(id);
    assert.deepEqual([left.status, left.undo], ['published', 'failed']);
  });

  t(
    'a lost answer to the hand-over leaves nothing to move, and nothing to cancel within a minute of its time',
    async () => {
      const { postId, facebook } = await made(60);
      await start(postId, facebook.id);
      await cross(postId, facebook.id);
      refused(await act(facebook.id, 'reschedule', { shiftMinutes: 5 }), 409, 'target_not_pending');
      await lose(postId, facebook.id);
      refused(await act(facebook.id, 'reschedule', { shiftMinutes: 5 }), 409, 'target_not_pending');
      try {
        world.clock.shiftMs = Date.parse(facebook.scheduledAt) - undoClosesMs + 1_000 - Date.now();
        refused(await act(facebook.id, 'cancel'), 409, 'target_not_pending');
      } finally {
        world.clock.shiftMs = 0;
      }
    },
  );
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { post as postDecider } from '#domain/post/post.ts';
import { type TargetCommand, target as targetDecider } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { composedWorld, composer, refused, tomorrow } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester, composed: one } = await composedWorld(['x']);

suite('post targets over HTTP', (t) => {
  const made = async (more: Record<string, unknown> = {}) => {
    const post = await tester.post('/posts', one.body(more));
    assert.equal(post.status, 200, post.text);
    const [target] = post.data.targets as { id: string; scheduledAt: string }[];
    assert.ok(target);
    return { postId: post.data.id, ...target };
  };
  /** What a publisher would tell the target. */
  const tell = (postId: string, id: string, ...commands: TargetCommand[]) =>
    commands.reduce<Promise<unknown>>(
      (before, command) =>
        before.then(() =>
          execute(world.store, targetDecider, id, command, contextOf(world.operator, testTwinIdOf(world.workspaceId)), {
            partitionKey: postId,
          }),
        ),
      Promise.resolve(),
    );
  const claim = { attempt: 1, takeover: 0 };
  const started = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
  const failed = { type: 'RecordFailed', ...claim, failure } as const;
  const crossed = {
    type: 'Checkpoint',
    ...claim,
    step: 'boundary',
    data: {},
    deadline: '2099-01-01T00:00:00.000Z',
  } as const;
  const unknown = { type: 'RecordUnknown', ...claim, failure, reconcileAt: '2099-01-01T00:00:00.000Z' } as const;
  const act = (
    id: string,
    action: string,
    body?: unknown,
    ask: { key?: string; headers?: Record<string, string> } = {},
  ): Promise<Answered> => tester.post(`/post-targets/${id}/${action}`, body, ask);

  t('a list in a query may be separated by commas, repeated, or both; any other parameter is sent once', async () => {
    const { postId, id } = await made({ schedule: { type: 'at', scheduledAt: tomorrow() } });
    const found = async (query: string) => {
      const { status, text, rows } = await tester.get(`/post-targets?postId=${postId}&${query}`);
      assert.equal(status, 200, text);
      return rows.map((row) => row.id);
    };
    await world.settled();
    for (const query of [
      'status=failed,pending',
      'status=failed&status=pending',
      'status=failed&status=canceled,pending',
    ])
      assert.deepEqual(await found(query), [id], query);
    assert.deepEqual(await found('status=failed&status=canceled'), []);
    const twice = await tester.get(`/post-targets?postId=${postId}&limit=1&limit=2`);
    refused(twice, 400, 'invalid_parameter', ['/limit']);
    assert.equal(twice.body.errors?.[0]?.message, 'may be sent once');
  });

  t('reschedule: to an instant, by minutes, and its refusals', async () => {
    const { id, scheduledAt } = await made({ schedule: { type: 'at', scheduledAt: tomorrow(), spreadMinutes: 60 } });
    const shifted = await act(id, 'reschedule', { shiftMinutes: 30 });
    assert.equal(shifted.status, 200, shifted.text);
    assert.equal(shifted.data.scheduledAt, new Date(Date.parse(scheduledAt) + 1_800_000).toISOString());
    assert.ok(Number(shifted.data.jitterSeconds) >= 0);
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const moved = await act(id, 'reschedule', { scheduledAt: at });
    assert.deepEqual([moved.data.scheduledAt, moved.data.jitterSeconds, moved.data.revision], [at, 0, 2]);
    assert.deepEqual((await tester.get(`/post-targets/${id}`)).data, moved.data);
    refused(await act(id, 'reschedule', {}), 422, 'validation_failed', ['']);
    refused(await act(id, 'reschedule', { scheduledAt: at, shiftMinutes: 1 }), 422, 'validation_failed', ['']);
    refused(await act(id, 'reschedule', { shiftMinutes: 525_601 }), 422, 'validation_failed', ['/shiftMinutes']);
    refused(await act(id, 'reschedule', { shiftMinutes: -525_600 }), 422, 'schedule_in_past', ['/shiftMinutes']);
    refused(await act(id, 'reschedule', { scheduledAt: '2090-01-01T00:00:00Z' }), 422, 'schedule_too_far', [
      '/scheduledAt',
    ]);
    refused(
      await act(id, 'reschedule', { shiftMinutes: 1 }, { headers: { 'if-match': '"0"' } }),
      412,
      'revision_mismatch',
    );
    refused(await act(randomUUID(), 'reschedule', { shiftMinutes: 1 }), 404, 'not_found');
    refused(await act(id, 'reschedule', { scheduledAt: '2027-06-30T23:59:60Z' }), 422, 'validation_failed', [
      '/scheduledAt',
    ]);
    refused(await world.owner.post(`/post-targets/${id}/reschedule`, { shiftMinutes: 1 }), 404, 'not_found');
  });

  t(
    'If-Match holds against concurrent callers: of 20 at once one moves the target, with a key or without',
    async () => {
      const { id } = await made();
      for (const [revision, key] of [
        [0, null],
        [1, undefined],
      ] as const) {
        const headers = { 'if-match': `"${revision}"` };
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_none, at) =>
            tester.post(
              `/post-targets/${id}/reschedule`,
              { shiftMinutes: at + 1 },
              { headers, ...(key === null ? { key } : {}) },
            ),
          ),
        );
        assert.equal(answers.filter(({ status }) => status === 200).length, 1);
        for (const answer of answers) if (answer.status !== 200) refused(answer, 412, 'revision_mismatch');
      }
      assert.equal((await tester.get(`/post-targets/${id}`)).data.revision, 2);
    },
  );

  t('a shift under one key moves once, however often it is sent', async () => {
    const { id, scheduledAt } = await made();
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => act(id, 'reschedule', { shiftMinutes: 5 }, { key })),
    );
    assert.deepEqual(
      [...new Set(answers.map((answer) => answer.data.scheduledAt))],
      [new Date(Date.parse(scheduledAt) + 300_000).toISOString()],
    );
    await act(id, 'reschedule', { shiftMinutes: 5 });
    const replay = await act(id, 'reschedule', { shiftMinutes: 5 }, { key });
    assert.deepEqual(replay.data, answers[0]?.data);
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    refused(await act(id, 'reschedule', { shiftMinutes: 6 }, { key }), 422, 'idempotency_key_reused');
  });

  t('cancel: from pending; again unchanged; not from publishing, unknown or published', async () => {
    const { id, postId } = await made();
    const canceled = await act(id, 'cancel');
    assert.equal(canceled.data.status, 'canceled');
    const again = await act(id, 'cancel');
    assert.deepEqual(again.data, canceled.data);
    refused(await act(id, 'reschedule', { shiftMinutes: 1 }), 409, 'target_not_pending');
    refused(await act(id, 'retry'), 409, 'target_not_retryable');
    const busy = await made();
    await tell(busy.postId, busy.id, started);
    refused(await act(busy.id, 'cancel'), 409, 'target_not_pending');
    await tell(busy.postId, busy.id, crossed, unknown);
    refused(await act(busy.id, 'cancel'), 409, 'target_not_pending');
    refused(await act(busy.id, 'retry'), 409, 'target_not_retryable');
    assert.ok(postId);
  });

  t('retry: from failed and rate_limited, due at once; the refused call leaves its key free', async () => {
    const { id, postId, scheduledAt } = await made();
    const key = randomUUID();
    refused(await act(id, 'retry', undefined, { key }), 409, 'target_not_retryable');
    await tell(postId, id, started, failed);
    const retried = await act(id, 'retry', undefined, { key });
    assert.equal(retried.status, 200, retried.text);
    assert.deepEqual([retried.data.status, retried.data.attempts, retried.data.failure], ['pending', 1, null]);
    assert.equal(retried.data.scheduledAt, scheduledAt);
    assert.ok(Math.abs(Date.parse(String(retried.data.retryAt)) - Date.now()) < 5_000);
    const limited = await made();
    const policy = { deferDelaysMs: [], jitter: 0, maxRateLimits: 10 };
    const retryAt = tomorrow();
    await tell(limited.postId, limited.id, started, { type: 'RecordRateLimited', ...claim, retryAt, failure, policy });
    await world.settled();
    const shown = await tester.get(`/post-targets/${limited.id}`);
    assert.deepEqual([shown.data.status, shown.data.retryAt], ['rate_limited', retryAt]);
    assert.equal((await act(limited.id, 'retry')).data.status, 'pending');
  });

  t('a deferral and a retry move neither the planned time nor the place in a list', async () => {
    const { id, postId, scheduledAt } = await made({ schedule: { type: 'at', scheduledAt: tomorrow() } });
    const planned = `postId=${postId}&from=${scheduledAt}&to=${new Date(Date.parse(scheduledAt) + 1).toISOString()}`;
    const shown = async () => {
      await world.settled();
      const [row] = (await tester.get(`/post-targets?${planned}`)).rows;
      const { data } = await tester.get(`/post-targets/${id}`);
      assert.deepEqual(row, data);
      const post = await tester.get(`/posts/${postId}`);
      assert.deepEqual([data.scheduledAt, post.data.scheduledAt], [scheduledAt, scheduledAt]);
      return [data.status, data.retryAt, data.failure];
    };
    const policy = { deferDelaysMs: [30_000], jitter: 0, maxRateLimits: 10 };
    const now = '2099-01-01T00:00:00.000Z';
    await tell(postId, id, started, { type: 'RecordDeferred', ...claim, now, failure, policy });
    assert.deepEqual(await shown(), ['pending', '2099-01-01T00:00:30.000Z', failure]);
    const next = { attempt: 2, takeover: 0 };
    await tell(postId, id, { type: 'Start', now: '2099-01-01T00:00:30.000Z' });
    assert.deepEqual(await shown(), ['publishing', null, null]);
    await tell(postId, id, { ...failed, ...next });
    const retried = await act(id, 'retry');
    assert.deepEqual(await shown(), ['pending', retried.data.retryAt, null]);
    assert.notEqual(retried.data.retryAt, null);
    const back = await act(id, 'reschedule', { shiftMinutes: 0 });
    assert.deepEqual([back.data.scheduledAt, back.data.retryAt], [scheduledAt, null]);
  });

  t('a thread shows each of its segments wherever the target is shown; other targets show none', async () => {
    const many = await composer(world, ['x', 'bluesky']);
    const thread = { segments: [{ content: 'one' }, { content: 'two' }, { content: 'three' }] };
    const post = await tester.post('/posts', many.body({ thread }));
    assert.equal(post.status, 200, post.text);
    const targets = post.data.targets as { id: string; platform: string; segments: unknown[]; title: null }[];
    const [x, bluesky] = ['x', 'bluesky'].map((platform) => targets.find((target) => target.platform === platform));
    assert.ok(x && bluesky);
    const none = { externalId: null, permalink: null, publishedAt: null };
    const waiting = [0, 1, 2].map((index) => ({ index, status: 'pending', ...none }));
    assert.deepEqual([x.segments, bluesky.segments, x.title], [waiting, [], null]);
    const segment = { index: 0, of: 3 };
    const head = { externalId: '17', permalink: 'https://x.com/i/status/17', publishedAt: '2027-01-01T00:00:00.000Z' };
    await tell(post.data.id, x.id, started, { ...crossed, segment });
    await tell(post.data.id, x.id, { type: 'RecordPublished', ...claim, ...head, segment });
    await tell(post.data.id, x.id, { ...crossed, segment: { index: 1, of: 3 } }, unknown);
    await world.settled();
    const { data } = await tester.get(`/post-targets/${x.id}`);
    assert.deepEqual(data.segments, [
      { index: 0, status: 'published', ...head },
      { index: 1, status: 'outcome_unknown', ...none },
      { index: 2, status: 'pending', ...none },
    ]);
    for (const query of ['platform=x', 'status=outcome_unknown'])
      assert.deepEqual((await tester.get(`/post-targets?postId=${post.data.id}&${query}`)).rows, [data], query);
    const whole = await tester.get(`/posts/${post.data.id}`);
    assert.deepEqual(
      (whole.data.targets as { id: string }[]).find((target) => target.id === x.id),
      data,
    );
    const shown = await tester.get(`/post-targets/${bluesky.id}`);
    assert.deepEqual([shown.data.segments, shown.data.content], [[], one.body({}).content]);
  });

  t('a first comment says why it is not there yet, why it failed, and its id once it is', async () => {
    const variants = [{ platform: 'x', overrides: { firstComment: 'And more.' } }];
    const past = '2026-01-01T00:00:00.000Z';
    const out = { externalId: '17', permalink: null, publishedAt: past };
    const published = { type: 'RecordPublished', ...claim, ...out, commentDueAt: past } as const;
    const issue = { code: 'network_rate_limited', message: 'Too many.', platformCode: '429' };
    const call = { type: 'StartFirstComment', now: '2099-01-02T00:00:00.000Z', deadline: past } as const;
    const retryAt = '2099-01-01T00:00:00.000Z';
    const ends = (tried: number, outcome: Extract<TargetCommand, { type: 'EndFirstComment' }>['outcome']) =>
      [call, { type: 'EndFirstComment', try: tried, outcome }] as const;
    /** What one target answers and what the list does. */
    const shown = async ({ id, postId }: { readonly id: string; readonly postId: string }) => {
      await world.settled();
      const { data } = await tester.get(`/post-targets/${id}`);
      assert.deepEqual((await tester.get(`/post-targets?postId=${postId}`)).rows, [data]);
      const last = (await world.store.readStream(`target-${id}`)).at(-1)?.metadata.occurredAt;
      return { last, said: [data.status, data.firstComment, data.firstCommentExternalId, data.firstCommentIssue] };
    };
    const of = async (...commands: TargetCommand[]) => {
      const one = await made({ variants });
      await tell(one.postId, one.id, started, crossed, published, ...commands);
      return one;
    };
    const waits = await of(...ends(1, { kind: 'refused', issue, retryAt }));
    const before = await shown(waits);
    assert.deepEqual(before.said, ['published', 'And more.', null, { ...issue, at: before.last, retryAt }]);
    await tell(waits.postId, waits.id, ...ends(2, { kind: 'posted', externalId: '18' }));
    assert.deepEqual((await shown(waits)).said, ['published', 'And more.', '18', null]);
    const failed = await of(...ends(1, { kind: 'refused', issue: { ...issue, platformCode: null }, retryAt: null }));
    const after = await shown(failed);
    const final = { ...issue, platformCode: null, at: after.last, retryAt: null };
    assert.deepEqual(after.said, ['published', 'And more.', null, final]);
  });

  t('shows the title that its network gets', async () => {
    const many = await composer(world, ['youtube', 'pinterest']);
    const video = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'video');
    const titles = async (youtube: Record<string, unknown>, pinterest: Record<string, unknown>) => {
      const variants = [
        { platform: 'youtube', overrides: youtube },
        { platform: 'pinterest', overrides: { boardId: '1', ...pinterest } },
      ];
      const post = await tester.post('/posts', many.body({ content: 'One\nTwo', mediaIds: [video.id], variants }));
      assert.equal(post.status, 200, post.text);
      await world.settled();
      const { rows } = await tester.get(`/post-targets?postId=${post.data.id}`);
      for (const row of rows) assert.deepEqual((await tester.get(`/post-targets/${row.id}`)).data, row);
      return Object.fromEntries(rows.map(({ platform, title }) => [platform, title]));
    };
    assert.deepEqual(await titles({}, {}), { youtube: 'One', pinterest: null });
    assert.deepEqual(await titles({ title: 'A film' }, { title: 'A pin' }), { youtube: 'A film', pinterest: 'A pin' });
  });

  t('lists in the order they are due, by keyset, with every filter', async () => {
    const many = await composer(world, ['x', 'bluesky', 'linkedin']);
    const range = { type: 'range', from: tomorrow(), to: new Date(Date.now() + 2 * 86_400_000).toISOString() };
    const post = await tester.post('/posts', many.body({ schedule: range }));
    const targets = post.data.targets as { id: string; scheduledAt: string; platform: string }[];
    await act(targets[1]?.id ?? '', 'cancel');
    await world.settled();
    const filter = `postId=${post.data.id}`;
    const first = await tester.get(`/post-targets?${filter}&limit=2`);
    const second = await tester.get(`/post-targets?${filter}&limit=2&cursor=${first.body.page?.nextCursor}`);
    assert.deepEqual(
      [...first.rows, ...second.rows].map((row) => row.id),
      targets.map((target) => target.id),
    );
    assert.equal(second.body.page?.nextCursor, null);
    const count = async (query: string) => (await tester.get(`/post-targets?${filter}&${query}`)).rows.length;
    assert.equal(await count('status=canceled'), 1);
    assert.equal(await count('status=canceled,pending'), 3);
    assert.equal(await count('platform=x,bluesky'), 2);
    assert.equal(await count(`accountId=${many.accounts.x}`), 1);
    assert.equal(await count(`clientId=${many.clientId}`), 3);
    assert.equal(await count(`clientId=${randomUUID()}`), 0);
    assert.equal(await count(`from=${targets[1]?.scheduledAt}`), 2);
    assert.equal(await count(`to=${targets[1]?.scheduledAt}`), 1);
    refused(await tester.get(`/post-targets?cursor=${first.body.page?.nextCursor}`), 400, 'invalid_cursor');
  });

  t('a planned target is never 404, though its fan-out died', async () => {
    const source = await tester.post('/posts', one.body({ saveDraft: true }));
    const { state, revision } = await world.store.load(postDecider, source.data.id);
    assert.equal(state.status, 'draft');
    const published = await tester.post(`/posts/${source.data.id}/publish`, {});
    const [planned] = published.data.targets as { id: string }[];
    assert.ok(planned && revision === 0);
    // The same plan under another post, appended without its fan-out: what a death in between leaves behind.
    const [scheduled] = (await world.store.readStream(`post-${source.data.id}`)).slice(-1);
    const postId = randomUUID();
    const targetId = randomUUID();
    const data = structuredClone(scheduled?.data) as { plan: { targets: { targetId: string }[] } };
    for (const target of data.plan.targets) target.targetId = targetId;
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await world.store.append(`post-${postId}`, -1, [{ type: 'PostScheduled', data }], context, postId);
    await world.settled();
    const read = await tester.get(`/post-targets/${targetId}`);
    assert.equal(read.status, 200, read.text);
    const canceled = await act(targetId, 'cancel');
    assert.equal(canceled.data.status, 'canceled');
  });
});

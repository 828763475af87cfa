import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { seenCall } from '#runtime/egress/seen-call.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { maxKeptAnswer, maxKeptCalls } from '#schemas/targetcalls.ts';
import { NetworkCalls } from '#services/publisher/network-calls.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, refused } from '#test/support/composing.ts';
import { type Answered, startWorld, type World } from '#test/support/http.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** The course of a target as auditors read it, from the ledger and from the calls that are kept of its network. */

const start = Date.parse('2026-03-02T08:00:00.000Z');
const at = (seconds: number): string => new Date(start + seconds * 1_000).toISOString();
const claim = { attempt: 1, takeover: 0 };

suite('the timeline of a target', { timeoutMs: 60_000 }, (t) => {
  const keys = new TestKeys();
  let world: World;
  t.before(async () => {
    world = await startWorld({ codec: new EventCodec(keys) });
  });
  t.after(() => world?.close());

  interface Made {
    readonly postId: string;
    readonly targetId: string;
    readonly clientId: string;
    readonly accountId: string;
  }

  const ids = (): Made => ({
    ...{ postId: randomUUID(), targetId: randomUUID(), clientId: randomUUID(), accountId: randomUUID() },
  });

  /** Appends events that were decided so many seconds after the target was due. */
  const stored = async (stream: string, postId: string, events: readonly (readonly [number, string, object])[]) => {
    for (const [revision, [seconds, type, data]] of events.entries()) {
      const context = { ...contextOf(world.operator, testTwinIdOf(world.workspaceId)), now: at(seconds) };
      await world.store.append(stream, revision - 1, [{ type, data }], context, postId);
    }
  };

  const callOf = ({ targetId, accountId, clientId }: Made, seconds: number, more: object = {}) => ({
    ...{ targetId, accountId, clientId, attempt: 1, method: 'POST', host: 'api.x.com', path: '/2/tweets' },
    headers: { authorization: '…', 'content-type': 'application/json' },
    bodySha256: 'a'.repeat(64),
    ...{ outcome: 'answered', status: 201, reason: null, answer: '{"data":{"id":"x-1"}}', calls: 1 },
    ...{ startedAt: at(seconds), endedAt: at(seconds + 1) },
    ...more,
  });

  const scheduled = async (made: Made, more: readonly (readonly [number, string, object])[]): Promise<void> => {
    const { postId, clientId } = made;
    const target = planned({ ...made, dueAt: at(0) });
    const other = planned({ ...ids(), clientId });
    const plan = { number: 1, targets: [target, other] };
    const createdBy = { type: 'member', id: 'm' };
    await stored(`post-${postId}`, postId, [
      [-60, 'PostScheduled', { clientId, createdBy, body: postBody({ content: 'Not told here.' }), plan }],
      [-50, 'PostTargetsChanged', { change: { kind: 'cancel', reason: 'post_canceled' }, targetIds: [other.targetId] }],
    ]);
    await stored(`target-${made.targetId}`, postId, [
      [-60, 'TargetScheduled', { ...target, postId, postRevision: 0 }],
      ...more,
    ]);
    await world.settled();
  };

  const timelineOf = async ({ targetId }: Made): Promise<Answered> => {
    const answered = await world.tester.get(`/post-targets/${targetId}/timeline?limit=100`);
    assert.equal(answered.status, 200, answered.text);
    return answered;
  };
  const steps = ({ rows }: Answered) => rows.map(({ step, attempt }) => [step, attempt]);

  t(
    'has the intent, the claim, each step, each call with its answer, the outcome, the comment and the cover',
    async () => {
      const made = ids();
      const upload = {
        uploadUrl: 'https://upload.example/part?signature=LET-ME-IN',
        sessionToken: 'LET-ME-IN',
        part: 2,
      };
      await scheduled(made, [
        [0, 'TargetPublishStarted', claim],
        [1, 'TargetPublishCheckpointed', { ...claim, step: 'upload', data: upload, deadline: null }],
        [3, 'TargetPublishCheckpointed', { ...claim, step: 'boundary', data: null, deadline: at(60) }],
        [5, 'TargetOutcomeUnknown', { ...claim, failure, reconcileAt: at(20) }],
        [20, 'TargetAbsenceObserved', { ...claim, observedAt: at(20) }],
        [
          30,
          'TargetOutcomeSettled',
          {
            ...{ outcome: 'published', externalId: 'x-1', permalink: null, publishedAt: at(4), failure: null },
            by: 'reconcile',
          },
        ],
        [31, 'TargetFirstCommentScheduled', { try: 1, dueAt: at(31), refusal: null }],
        [32, 'TargetAfterStepScheduled', { step: 'cover', try: 1, dueAt: at(32), refusal: null }],
      ]);
      await stored(`targetcalls-${made.targetId}`, made.postId, [
        [2, 'TargetNetworkCallObserved', callOf(made, 2, { path: '/2/media/upload' })],
        [
          9,
          'TargetNetworkCallObserved',
          callOf(made, 4, { outcome: 'silent', status: null, reason: 'timeout', answer: null }),
        ],
      ]);
      const timeline = await timelineOf(made);
      assert.deepEqual(steps(timeline), [
        ...[
          ['intent', null],
          ['planned', null],
          ['claim', 1],
          ['checkpoint', 1],
          ['call', 1],
          ['boundary', 1],
        ],
        ...[
          ['call', 1],
          ['outcome', 1],
          ['reconcile', 1],
          ['reconcile', null],
          ['comment', null],
          ['after_step', null],
        ],
      ]);
      const [uploaded, silent] = timeline.rows.flatMap(({ call }) =>
        call === null ? [] : [call as Record<string, unknown>],
      );
      assert.deepEqual(
        [uploaded?.method, uploaded?.host, uploaded?.path, uploaded?.status, uploaded?.answer, uploaded?.bodySha256],
        ['POST', 'api.x.com', '/2/media/upload', 201, '{"data":{"id":"x-1"}}', 'a'.repeat(64)],
      );
      assert.deepEqual(uploaded?.headers, { authorization: '…', 'content-type': 'application/json' });
      assert.deepEqual(
        [silent?.outcome, silent?.status, silent?.reason, silent?.answer],
        ['silent', null, 'timeout', null],
      );
      const checkpoint = timeline.rows.find(({ step }) => step === 'checkpoint')?.details as { readonly data: object };
      assert.deepEqual(checkpoint.data, { uploadUrl: 'https://upload.example/…', sessionToken: '…', part: 2 });
      assert.ok(!timeline.text.includes('LET-ME-IN') && !timeline.text.includes('Not told here.'));
      keys.destroy(made.clientId);
      assert.ok(!(await timelineOf(made)).text.includes('x-1\\"'));
      const stranger = (await world.agency('Another')).tester;
      for (const id of [made.targetId, randomUUID()])
        refused(await stranger.get(`/post-targets/${id}/timeline`), 404, 'not_found');
    },
  );

  t('says of an attempt that no call of it is kept, and of a target that no more are', async () => {
    const made = ids();
    await scheduled(made, [
      [0, 'TargetPublishStarted', claim],
      [1, 'TargetPublishCheckpointed', { ...claim, step: 'boundary', data: null, deadline: at(60) }],
      [2, 'TargetPublishDeferred', { ...claim, retryAt: at(10), failure }],
      [10, 'TargetPublishStarted', { attempt: 2, takeover: 0 }],
      [11, 'TargetPublishCheckpointed', { attempt: 2, takeover: 0, step: 'boundary', data: null, deadline: at(70) }],
      [400, 'TargetPublished', { attempt: 2, takeover: 0, externalId: 'x-1', permalink: null, publishedAt: at(12) }],
    ]);
    const calls = Array.from({ length: maxKeptCalls }, (_none, n) => ({
      type: 'TargetNetworkCallObserved',
      data: callOf(made, 12 + n, { attempt: 2 }),
    }));
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await world.store.append(`targetcalls-${made.targetId}`, -1, calls, context, made.postId);
    const rows: Answered['rows'][number][] = [];
    let cursor = '';
    do {
      const page = await world.tester.get(`/post-targets/${made.targetId}/timeline?limit=50${cursor}`);
      assert.equal(page.status, 200, page.text);
      rows.push(...page.rows);
      cursor = page.body.page?.nextCursor ? `&cursor=${page.body.page.nextCursor}` : '';
    } while (cursor !== '');
    assert.equal(rows.filter(({ step }) => step === 'call').length, maxKeptCalls);
    const lost = rows.filter(({ step }) => step === 'calls_not_kept');
    assert.deepEqual(
      lost.map(({ reason, attempt, at: when, id }) => [reason, attempt, when, id]),
      [
        ['none_kept', 1, at(1), null],
        ['full', null, at(12 + maxKeptCalls), null],
      ],
    );
    assert.equal(rows.at(-1)?.type, 'TargetPublished');
    assert.equal(new Set(rows.map(({ at: when }) => when)).size > 200, true);
  });

  t('shows at most 4 KiB of what a network answered, from its beginning, without half a character', async () => {
    const made = ids();
    await scheduled(made, [[0, 'TargetPublishStarted', claim]]);
    const { store, logger, operator } = world;
    const calls = new NetworkCalls({ store, logger, now: () => start + 9_000 });
    const context = () => contextOf(operator, testTwinIdOf(world.workspaceId));
    const watched = { ...made, workspaceId: testTwinIdOf(world.workspaceId), attempt: () => 1, context };
    const call: NetworkCall = {
      ...{ method: 'GET', url: 'https://api.x.com/2/tweets', headers: {}, body: [] },
      subject: { accountId: made.accountId, targetId: made.targetId },
    };
    const answers = [
      'short',
      `{"said":"${'🙂'.repeat(40_000)}"}`,
      `{"said":"${'x'.repeat(maxKeptAnswer)}"}`,
      '\u0001'.repeat(9_000),
    ];
    const invalid = Buffer.alloc(40_000, 0xff);
    for (const body of [...answers.map((text) => Buffer.from(text)), invalid]) {
      const end = calls.watch(watched);
      calls.report(seenCall(call, { kind: 'answered', status: 200, headers: {}, body }, '', 5));
      end();
    }
    await calls.close();
    const shown = (await timelineOf(made)).rows.flatMap(({ call: one }) =>
      one === null ? [] : [String((one as { readonly answer: string }).answer)],
    );
    assert.equal(shown.length, answers.length + 1);
    assert.equal(shown[0], 'short');
    for (const [at, answer] of shown.slice(1, answers.length).entries()) {
      const [whole = '', size] = [answers[at + 1], Buffer.byteLength(answer)];
      assert.ok(size <= maxKeptAnswer && size > maxKeptAnswer - 4, `${size} bytes`);
      assert.ok(whole.startsWith(answer), answer.slice(-20));
    }
    for (const answer of shown) assert.ok(Buffer.byteLength(answer) <= maxKeptAnswer);
  });

  t('a native hand-over, a network that looks at the post first, and a target that was canceled', async () => {
    const made = ids();
    await scheduled(made, [
      [0, 'TargetPublishStarted', claim],
      [1, 'TargetPublishCheckpointed', { ...claim, step: 'boundary', data: null, deadline: at(60) }],
      [2, 'TargetHandedToPlatform', { ...claim, nativeId: 'n-1', dueAt: at(900) }],
      [
        3,
        'TargetUndoRequested',
        {
          ...{ then: 'cancel', reason: 'requested', postRevision: null },
          dueAt: null,
          scheduledLocal: null,
          jitterSeconds: null,
        },
      ],
      [4, 'TargetCanceled', { reason: 'requested', postRevision: null }],
    ]);
    const timeline = await timelineOf(made);
    const after = steps(timeline)
      .slice(3)
      .map(([step]) => step);
    assert.deepEqual(after, ['boundary', 'calls_not_kept', 'native', 'native', 'outcome']);
    assert.deepEqual(timeline.rows.at(-1)?.reason, 'requested');
    const looked = ids();
    const handle = { url: 'https://network.example/videos/1?access_token=LET-ME-IN', videoId: '1' };
    await scheduled(looked, [
      [0, 'TargetPublishStarted', claim],
      [1, 'TargetPublishCheckpointed', { ...claim, step: 'boundary', data: null, deadline: at(60) }],
      [2, 'TargetAcceptedByPlatform', { ...claim, handle, askAt: at(9), until: at(900) }],
    ]);
    const processing = (await timelineOf(looked)).rows.at(-1);
    assert.equal(processing?.step, 'processing');
    assert.deepEqual((processing?.details as { handle?: object } | undefined)?.handle, {
      url: 'https://network.example/…',
      videoId: '1',
    });
  });

  t('of a target of a post over HTTP: held, released, moved', async () => {
    const own = await composer(world, ['x']);
    await world.tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    const { data } = await world.tester.post('/posts', own.body());
    const [target] = data.targets as readonly { readonly id: string }[];
    await world.tester.post(`/approvals/${data.approvalId}/approve`, { comment: 'Go.' });
    const scheduledAt = new Date(Date.now() + 90 * 3_600_000).toISOString();
    const moved = await world.tester.post(`/post-targets/${target?.id}/reschedule`, { scheduledAt });
    assert.equal(moved.status, 200, moved.text);
    const { rows, text } = await world.tester.get(`/post-targets/${target?.id}/timeline`);
    assert.deepEqual(
      rows?.map(({ type, step }) => [type, step]),
      [
        ...[
          ['PostScheduled', 'intent'],
          ['PostSubmittedForApproval', 'approval'],
        ],
        ...[
          ['TargetScheduled', 'planned'],
          ['TargetHeld', 'approval'],
          ['PostReleased', 'approval'],
        ],
        ...[
          ['TargetReleased', 'approval'],
          ['TargetRescheduled', 'scheduled'],
        ],
      ],
      text,
    );
    assert.deepEqual(rows.at(-1)?.credential, { type: 'api_key', id: world.testKey.id });
  });
});

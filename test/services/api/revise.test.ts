import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AccountCommand, account } from '#domain/account.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { type PostCommand, post } from '#domain/post/post.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { maxOptionalEvents } from '#runtime/eventing/stream-room.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type Composer, composedWorld, composer, refused, tomorrow } from '#test/support/composing.ts';
import type { Answered, Ask } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

interface Target {
  readonly id: string;
  readonly accountId: string;
  readonly platform: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly timezone: string;
  readonly content: string;
  readonly mediaIds: readonly string[];
  readonly revision: number;
}
interface Revise {
  readonly changed: readonly string[];
  readonly skipped: readonly { readonly targetId: string; readonly reason: string }[];
}
const targetsOf = (answer: Answered): readonly Target[] => answer.data.targets as readonly Target[];
const reviseOf = (answer: Answered): Revise => answer.data.revise as Revise;

const { world, tester, composed: all } = await composedWorld(['x', 'bluesky', 'linkedin', 'telegram']);
const twin = testTwinIdOf(world.workspaceId);
const claim = { attempt: 1, takeover: 0 };
const start = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
const failed = { type: 'RecordFailed', ...claim, failure } as const;
const out = { externalId: 'n1', permalink: null, publishedAt: '2026-11-01T00:00:00.000Z' };

/** A post with one target on each network, of four if not told otherwise. */
const made = async (more: Record<string, unknown> = {}, own: Composer = all) => {
  const answer = await tester.post('/posts', own.body(more));
  assert.equal(answer.status, 200, answer.text);
  const byPlatform = new Map(targetsOf(answer).map((one) => [one.platform, one]));
  const of = (platform: string): Target => byPlatform.get(platform) ?? assert.fail(platform);
  return { id: answer.data.id, answer, targets: targetsOf(answer), of };
};
/** What a publisher would tell a target. */
const tell = async (postId: string, id: string, ...commands: readonly TargetCommand[]): Promise<void> => {
  for (const command of commands) {
    const context = contextOf(world.operator, twin);
    await execute(world.store, target, id, command, context, { partitionKey: postId });
  }
};
const revise = (id: string, body: unknown, ask: Ask = {}) => tester.post(`/posts/${id}/revise`, body, ask);
const typesOf = async (stream: string) => (await world.store.readStream(stream)).map(({ type }) => type);

suite('revising a post over HTTP', (t) => {
  t('changes every target that waits, and answers what a later GET answers', async () => {
    const { id, targets } = await made({ schedule: { type: 'at', scheduledAt: tomorrow(), spreadMinutes: 30 } });
    const key = randomUUID();
    const answer = await revise(id, { content: 'Better.' }, { key, headers: { 'if-match': '"0"' } });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.data.content, answer.data.revision, answer.headers.get('etag')], ['Better.', 1, '"1"']);
    assert.deepEqual([...reviseOf(answer).changed].sort(), targets.map((one) => one.id).sort());
    assert.deepEqual(reviseOf(answer).skipped, []);
    for (const one of targetsOf(answer)) {
      assert.equal(one.content, 'Better.');
      assert.equal(one.scheduledAt, targets.find((before) => before.id === one.id)?.scheduledAt);
    }
    const { revise: _revise, ...shown } = answer.data;
    await world.settled();
    assert.deepEqual((await tester.get(`/posts/${id}`)).data, shown);
    // Whatever happens later, the key shows what the call did.
    await tell(id, targets[0]?.id ?? '', start);
    await revise(id, { content: 'Best.' });
    const again = await revise(id, { content: 'Better.' }, { key, headers: { 'if-match': '"0"' } });
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(again.data, answer.data);
    refused(await revise(id, { content: 'Other.' }, { key }), 422, 'idempotency_key_reused');
    refused(await revise(id, { content: 'Other.' }, { headers: { 'if-match': '"0"' } }), 412, 'revision_mismatch');
  });

  t('a member that is sent replaces, one that is absent stays, and null clears', async () => {
    const [first, second] = [
      (await readyAsset(world.store, twin, 'image')).id,
      (await readyAsset(world.store, twin, 'image')).id,
    ];
    const variants = [{ platform: 'x', contentOverride: 'For x.', overrides: { replySettings: 'following' } }];
    const { id } = await made({
      mediaIds: [first, second],
      mediaAltTexts: { [first]: 'One', [second]: 'Two' },
      coverMediaId: first,
      coverFrameMs: 5,
      variants,
    });
    const fewer = await revise(id, { mediaIds: [second] });
    assert.equal(fewer.status, 200, fewer.text);
    assert.deepEqual([fewer.data.mediaIds, fewer.data.mediaAltTexts], [[second], { [second]: 'Two' }]);
    assert.deepEqual([fewer.data.coverMediaId, fewer.data.coverFrameMs], [first, 5]);
    const cleared = await revise(id, { mediaAltTexts: null, coverMediaId: null, coverFrameMs: null, content: null });
    assert.equal(cleared.status, 200, cleared.text);
    assert.deepEqual(
      [cleared.data.mediaAltTexts, cleared.data.coverMediaId, cleared.data.coverFrameMs, cleared.data.content],
      [null, null, null, 'A word from us.'],
    );
    const other = [{ platform: 'bluesky', contentOverride: 'For bluesky.' }];
    const replaced = await revise(id, { variants: other });
    assert.deepEqual(
      targetsOf(replaced)
        .map((one) => [one.platform, one.content])
        .sort(),
      [
        ['bluesky', 'For bluesky.'],
        ['linkedin', 'A word from us.'],
        ['telegram', 'A word from us.'],
        ['x', 'A word from us.'],
      ],
    );
    const thread = { segments: [{ content: 'One.' }, { content: 'Two.' }] };
    const threaded = await revise(id, { thread });
    assert.equal(targetsOf(threaded).find((one) => one.platform === 'x')?.content, 'One.');
    const alone = await revise(id, { thread: null });
    assert.deepEqual(
      [alone.data.thread, targetsOf(alone).find((one) => one.platform === 'x')?.content],
      [null, 'A word from us.'],
    );
    refused(await revise(id, {}), 422, 'validation_failed', ['']);
    refused(await revise(id, { content: null }), 422, 'validation_failed', ['']);
  });

  t(
    'a schedule gives new times; without one each target keeps its own, however old the schedule of the post is',
    async () => {
      const soon = new Date(Date.now() + 3_600_000).toISOString();
      const { id, targets } = await made({ schedule: { type: 'at', scheduledAt: soon } });
      const [first] = targets;
      const own = new Date(Date.now() + 9 * 86_400_000).toISOString();
      await tester.post(`/post-targets/${first?.id}/reschedule`, { scheduledAt: own });
      world.clock.shiftMs = 2 * 3_600_000;
      try {
        const kept = await revise(id, { content: 'Better.' });
        assert.equal(kept.status, 200, kept.text);
        const times = targetsOf(kept).map((one) => one.scheduledAt);
        assert.deepEqual([...new Set(times)].sort(), [soon, own]);
      } finally {
        world.clock.shiftMs = 0;
      }
      const at = new Date(Date.now() + 3 * 86_400_000).toISOString();
      const moved = await revise(id, { schedule: { type: 'at', scheduledAt: at } });
      assert.deepEqual([...new Set(targetsOf(moved).map((one) => one.scheduledAt))], [at]);
      assert.equal((moved.data.schedule as { scheduledAt: string }).scheduledAt, at);
      const past = { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' };
      refused(await revise(id, { schedule: past }), 422, 'schedule_in_past', Array(4).fill('/schedule'));
      const far = { type: 'at', scheduledAt: '2099-01-01T00:00:00Z' };
      refused(await revise(id, { schedule: far }), 422, 'schedule_too_far', Array(4).fill('/schedule'));
    },
  );

  t('another zone moves wall-clock times, and no others', async () => {
    const day = tomorrow().slice(0, 10);
    const { id } = await made({ schedule: { type: 'at', scheduledLocal: `${day}T09:00` }, timezone: 'UTC' });
    const moved = await revise(id, { timezone: 'Asia/Tokyo' });
    assert.equal(moved.status, 200, moved.text);
    for (const one of targetsOf(moved))
      assert.deepEqual([one.scheduledAt, one.timezone], [`${day}T00:00:00.000Z`, 'Asia/Tokyo']);
    const fixed = await made();
    const left = await revise(fixed.id, { timezone: 'Asia/Tokyo' });
    assert.deepEqual(left.data.timezone, 'Asia/Tokyo');
    assert.deepEqual(
      targetsOf(left).map((one) => one.scheduledAt),
      fixed.targets.map((one) => one.scheduledAt),
    );
    refused(await revise(id, { timezone: 'Mars/Olympus' }), 422, 'validation_failed', ['/timezone']);
  });

  t('the rules run on the revised post for exactly the targets that it changes, all or nothing', async () => {
    const { id, of } = await made();
    const long = 'ä'.repeat(301);
    const before = await world.head();
    refused(await revise(id, { content: long }), 422, 'validation_failed', ['/content', '/content']);
    refused(await revise(id, { mediaIds: [randomUUID()] }), 422, 'validation_failed', ['/mediaIds/0']);
    refused(await revise(id, { content: '' }), 422, 'validation_failed', Array(4).fill('/content'));
    assert.equal(await world.head(), before, 'a refused call stored events');
    // Too long for x and bluesky alone: they are canceled, and the other two can take it.
    for (const platform of ['x', 'bluesky']) await tester.post(`/post-targets/${of(platform).id}/cancel`);
    const answer = await revise(id, { content: long });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([...reviseOf(answer).changed].sort(), [of('linkedin').id, of('telegram').id].sort());
    assert.deepEqual(
      reviseOf(answer)
        .skipped.map(({ targetId, reason }) => [targetId, reason])
        .sort(),
      [
        [of('x').id, 'canceled'],
        [of('bluesky').id, 'canceled'],
      ].sort(),
    );
  });

  t('a failed target gets the new content and its next attempt; the post is open again', async () => {
    const { id, of } = await made();
    await tell(id, of('x').id, start, failed);
    for (const platform of ['bluesky', 'linkedin', 'telegram'])
      await tester.post(`/post-targets/${of(platform).id}/cancel`);
    const answer = await revise(id, { content: 'Again.' });
    assert.deepEqual(reviseOf(answer).changed, [of('x').id]);
    const [x] = targetsOf(answer).filter((one) => one.platform === 'x');
    assert.deepEqual([x?.status, x?.content, x?.scheduledAt], ['pending', 'Again.', of('x').scheduledAt]);
    assert.deepEqual((await typesOf(`target-${of('x').id}`)).slice(-2), ['TargetRevised', 'TargetRequeued']);
  });

  t(
    'targets that a revision does not reach say why, and show what they had: settled, on their way, limited, unknown; one that is handed over shows it until its network has the new one',
    async () => {
      const six = await composer(world, ['x', 'bluesky', 'linkedin', 'threads', 'facebook', 'telegram']);
      const { id, of } = await made({ scheduleMode: 'native' }, six);
      await tell(id, of('x').id, start, { type: 'RecordPublished', ...claim, ...out });
      await tell(id, of('bluesky').id, start);
      const policy = { deferDelaysMs: [], maxRateLimits: 9, jitter: 0 };
      const retryAt = '2099-01-01T00:00:00.000Z';
      await tell(id, of('linkedin').id, start, { type: 'RecordRateLimited', ...claim, retryAt, failure, policy });
      const call = { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: retryAt } as const;
      await tell(id, of('threads').id, start, call, { type: 'RecordUnknown', ...claim, failure, reconcileAt: retryAt });
      const now = new Date().toISOString();
      await tell(id, of('facebook').id, { type: 'Start', now }, call, {
        type: 'RecordHandedOver',
        ...claim,
        nativeId: 'n',
      });
      const answer = await revise(id, { content: 'Better.' });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(reviseOf(answer).changed.toSorted(), [of('facebook').id, of('telegram').id].toSorted());
      assert.deepEqual(
        new Map(reviseOf(answer).skipped.map(({ targetId, reason }) => [targetId, reason])),
        new Map([
          [of('x').id, 'published'],
          [of('bluesky').id, 'publishing'],
          [of('linkedin').id, 'rate_limited'],
          [of('threads').id, 'outcome_unknown'],
        ]),
      );
      const shown = (targets: readonly Target[]) =>
        Object.fromEntries(targets.map((one) => [one.platform, one.content]));
      const expected = {
        x: 'A word from us.',
        bluesky: 'A word from us.',
        linkedin: 'A word from us.',
        threads: 'A word from us.',
        facebook: 'A word from us.',
        telegram: 'Better.',
      };
      assert.deepEqual(shown(targetsOf(answer)), expected);
      await world.settled();
      assert.deepEqual(shown(targetsOf(await tester.get(`/posts/${id}`))), expected);
      assert.equal((await tester.get(`/posts/${id}`)).data.content, 'Better.');
      const listed = await tester.get(`/post-targets?postId=${id}`);
      assert.deepEqual(shown(listed.rows as unknown as Target[]), expected);
      assert.equal((await tester.get(`/post-targets/${of('x').id}`)).data.content, 'A word from us.');
      assert.equal((await tester.get(`/post-targets/${of('telegram').id}`)).data.content, 'Better.');
      // An action on a target answers with the target's own content too.
      const canceled = await tester.post(`/post-targets/${of('linkedin').id}/cancel`);
      assert.equal(canceled.data.content, 'A word from us.');
    },
  );

  t('refused: a draft, an unknown or foreign post, and one of which no target can change', async () => {
    const draft = await tester.post('/posts', all.body({ saveDraft: true }));
    refused(await revise(draft.data.id, { content: 'x' }), 409, 'post_not_scheduled');
    refused(await revise(randomUUID(), { content: 'x' }), 404, 'not_found');
    const { id, targets } = await made();
    const stranger = await world.agency('Stranger');
    refused(await stranger.tester.post(`/posts/${id}/revise`, { content: 'x' }), 404, 'not_found');
    for (const one of targets) await tell(id, one.id, start);
    const before = await world.head();
    refused(await revise(id, { content: 'x' }), 409, 'target_not_pending');
    assert.equal(await world.head(), before, 'a refused call stored events');
  });

  t('a target of a disconnected account is passed over; an archived client refuses', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    const answer = await tester.post('/posts', own.body());
    const { id } = answer.data;
    const gone: AccountCommand = { type: 'Disconnect', reason: 'requested' };
    await execute(world.store, account, own.accounts.x ?? '', gone, contextOf(world.operator, twin));
    await world.settled();
    const revised = await revise(id, { content: 'Better.' });
    assert.equal(revised.status, 200, revised.text);
    const x = targetsOf(answer).find((one) => one.platform === 'x')?.id;
    assert.deepEqual(reviseOf(revised).skipped, [{ targetId: x, reason: 'account_disconnected' }]);
    assert.equal((await tester.delete(`/clients/${own.clientId}`)).status, 200);
    refused(await revise(id, { content: 'Other.' }), 422, 'client_archived');
  });

  t('20 callers at once: each revision is whole, and none undoes the member of another', async () => {
    const { id } = await made();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        n % 2 === 0 ? revise(id, { content: `Text ${n}.` }) : revise(id, { coverFrameMs: n }),
      ),
    );
    const done = answers.filter((one) => one.status === 200);
    for (const one of answers) if (one.status !== 200) refused(one, 412, 'revision_mismatch');
    assert.ok(done.length > 0);
    const revisions = (await world.store.readStream(`post-${id}`)).filter(({ type }) => type === 'PostRevised');
    assert.equal(revisions.length, done.length);
    for (const [index, event] of revisions.entries()) {
      const before = revisions[index - 1];
      if (before === undefined) continue;
      const bodies = [before, event].map(({ data }) => data.body as { content: string; coverFrameMs: number });
      const changed = (event.data.changed as readonly string[])[0];
      const kept = changed === 'content' ? 'coverFrameMs' : 'content';
      assert.equal(bodies[1]?.[kept], bodies[0]?.[kept]);
    }
    const key = randomUUID();
    const same = await Promise.all(Array.from({ length: 10 }, () => revise(id, { content: 'One key.' }, { key })));
    for (const one of same) assert.deepEqual(one.data, same[0]?.data);
    const later = (await world.store.readStream(`post-${id}`)).filter(({ type }) => type === 'PostRevised');
    assert.equal(later.length, revisions.length + 1);
  });

  t('a revision that died before its targets is completed by the next call, in order', async () => {
    const { id, targets, answer } = await made();
    const { state } = await world.store.load(post, id);
    assert.ok(state.status === 'live');
    const body = { ...state.body, content: 'Died.' };
    const targetIds = targets.map((one) => one.id);
    const died: PostCommand = {
      type: 'Revise',
      commandId: randomUUID(),
      body,
      changed: ['content'],
      targetIds,
      times: null,
    };
    await execute(world.store, post, id, died, contextOf(world.operator, twin));
    await world.settled();
    // Until then each target shows what it would go out with.
    const shown = targetsOf(await tester.get(`/posts/${id}`)).map((one) => one.content);
    assert.deepEqual([...new Set(shown)], [answer.data.content]);
    const next = await revise(id, { coverFrameMs: 7 });
    assert.equal(next.status, 200, next.text);
    assert.deepEqual([next.data.content, next.data.coverFrameMs], ['Died.', 7]);
    assert.deepEqual(await typesOf(`target-${targetIds[0]}`), ['TargetScheduled', 'TargetRevised', 'TargetRevised']);
    await fanOut(world.store, id, contextOf(world.operator, twin));
    assert.equal((await typesOf(`target-${targetIds[0]}`)).length, 3);
  });

  t('a post that is full of changes takes no further revision, and can still be canceled', async () => {
    const { id, answer } = await made();
    const stream = `post-${id}`;
    const [targetId = ''] = targetsOf(answer).map((one) => one.id);
    const note = { type: 'PostTargetReopened', data: { targetId, targetRevision: 0 } };
    for (let length = 1; length < maxOptionalEvents; length += 500) {
      const some = Array.from({ length: Math.min(500, maxOptionalEvents - length) }, () => note);
      await world.store.append(stream, length - 1, some, contextOf(world.operator, twin), id);
    }
    refused(await revise(id, { content: 'x' }), 409, 'stream_full');
    assert.equal((await tester.delete(`/posts/${id}`)).status, 200);
  });

  t('an asset is needed while a target may still go out with it', async () => {
    const [first, second] = [
      (await readyAsset(world.store, twin, 'image')).id,
      (await readyAsset(world.store, twin, 'image')).id,
    ];
    const { id, of } = await made({ mediaIds: [first] });
    const policy = { deferDelaysMs: [], maxRateLimits: 9, jitter: 0 };
    const retryAt = '2099-01-01T00:00:00.000Z';
    await tell(id, of('x').id, start, { type: 'RecordRateLimited', ...claim, retryAt, failure, policy });
    const revised = await revise(id, { mediaIds: [second] });
    assert.equal(revised.status, 200, revised.text);
    await world.settled();
    for (const asset of [first, second]) {
      const kept = await tester.delete(`/media/${asset}`);
      refused(kept, 409, 'media_in_use');
      assert.deepEqual(kept.body.postIds, [id]);
    }
    await tester.post(`/post-targets/${of('x').id}/cancel`);
    await world.settled();
    assert.equal((await tester.delete(`/media/${first}`)).status, 200);
    refused(await tester.delete(`/media/${second}`), 409, 'media_in_use');
  });
});

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { account as accountDecider } from '#domain/account.ts';
import { effectiveOverrides } from '#domain/platforms/index.ts';
import { target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Variant } from '#schemas/post.ts';
import { readyAsset } from '#test/support/assets.ts';
import { readyClip } from '#test/support/clip.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld, type Running } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));

suite('threads', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let publisher: Running | null = null;
  let clientId = '';
  let provable: Account;
  let unprovable: Account;
  const mortals = new Mortals(script, () => [world.url]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    provable = await world.connect(clientId, 'threads');
    unprovable = await world.connect(clientId, 'x');
  });
  t.after(async () => {
    await publisher?.stop();
    await mortals.end();
    await world?.close();
  });

  const schedule = async (
    account: Account,
    segments: readonly (string | { readonly content: string; readonly mediaIds: readonly string[] })[],
    more: { readonly variants?: readonly Variant[]; readonly dueAt?: number } = {},
  ): Promise<string> => {
    const whole = segments.map((one) =>
      typeof one === 'string' ? { content: one, mediaIds: [] } : { content: one.content, mediaIds: [...one.mediaIds] },
    );
    const { targetIds } = await world.schedule([account], { ...more, body: { thread: { segments: whole } } });
    return targetIds[0] ?? '';
  };
  /** Posts the network has, as a chain: each names the one before it. */
  const chain = async (id: string): Promise<readonly string[]> => {
    const rows = (await world.sandbox.creates(id)).filter(({ outcome }) => outcome === 'created');
    for (const [index, row] of rows.entries()) {
      assert.deepEqual([row.segment, row.replyTo], [index, rows[index - 1]?.postId ?? null]);
    }
    return rows.map(({ content }) => content);
  };
  const started = () => {
    publisher ??= world.publisher();
    return publisher;
  };
  const stopped = async () => {
    await publisher?.stop();
    publisher = null;
  };

  t(
    'are published as a chain of replies, each with its own files, and have the external id of their head',
    async () => {
      started();
      const video = await readyClip(world.store, world.workspaceId, world.blobs);
      const square = { width: 1_080, height: 1_080 };
      const body = await sharp({ create: { ...square, channels: 3, background: '#28a' } })
        .jpeg()
        .toBuffer();
      const photo = await readyAsset(world.store, world.workspaceId, 'image', {
        body,
        blobs: world.blobs,
        probe: square,
      });
      for (const account of [provable, unprovable]) {
        const id = await schedule(account, [
          { content: 'head', mediaIds: [photo.id] },
          'words alone',
          { content: '', mediaIds: [video.id] },
        ]);
        const [state] = await world.all([id], 'published');
        assert.deepEqual(await chain(id), ['head', 'words alone', '']);
        const rows = await world.sandbox.creates(id);
        assert.deepEqual(
          rows.map(({ media }) => media.map(({ mediaId }) => mediaId)),
          [[photo.id], [], [video.id]],
        );
        assert.ok(state?.status === 'published');
        assert.deepEqual([state.externalId, state.permalink], [rows[0]?.postId, rows[0]?.permalink]);
        assert.equal(state.common.attempts, 1);
      }
    },
  );

  t('keys of the head are sent with the head alone', async () => {
    started();
    const cases = [
      [unprovable, { quoteTweetId: '17', replySettings: 'following' }, { paidPartnership: true }],
      [provable, { quotePostId: '18', replyControl: 'mentioned_only' }, { aiGenerated: true }],
    ] as const;
    for (const [account, ofHead, ofAll] of cases) {
      const { platform } = account;
      const overrides = { ...ofHead, ...ofAll, firstComment: 'below' };
      const variants = [{ platform, contentOverride: 'ignored', mediaIdsOverride: null, overrides }];
      const id = await schedule(account, ['a', 'b', 'c'], { variants });
      await world.all([id], 'published');
      const sent = (await world.sandbox.creates(id)).map((row) => row.overrides);
      const plain = effectiveOverrides(platform, ofAll, false);
      assert.deepEqual(sent, [{ ...plain, ...ofHead }, plain, plain], platform);
      for (const key of Object.keys(ofHead)) assert.ok(!(key in plain), key);
    }
  });

  t('a file of a later segment that is not ready delays the head', async () => {
    started();
    const photo = await readyAsset(world.store, world.workspaceId, 'image', { needs: [] });
    const id = await schedule(provable, ['head', { content: '', mediaIds: [photo.id] }]);
    await until('its rendition is asked for', async () =>
      (await world.story(`media-${photo.id}`)).includes('MediaRenditionsRequested'),
    );
    assert.deepEqual(await world.story(`target-${id}`), ['TargetScheduled']);
    assert.deepEqual(await chain(id), []);
  });

  t('a thread with a segment against the rules of its network publishes no segment', async () => {
    started();
    const id = await schedule(unprovable, ['head', 'x'.repeat(281)]);
    const [state] = await world.all([id], 'failed');
    assert.ok(state?.status === 'failed');
    assert.equal(state.failure.code, 'text_too_long');
    assert.match(state.failure.message, /^Nothing of the thread is out; of segment 2: /);
    assert.deepEqual(await chain(id), []);
  });

  t('after a fault at a later segment the thread continues there, and no segment is published twice', async () => {
    started();
    const cases: readonly (readonly [Account, string, number])[] = [
      [provable, 'rate_limit once 200ms', 2],
      [unprovable, 'rate_limit once 200ms', 2],
      [provable, 'error_after once', 2],
      [unprovable, 'error_after once', 2],
      [provable, 'error_before once', 2],
      [unprovable, 'down once', 2],
      [unprovable, 'late once 500ms', 2],
    ];
    const ids = await Promise.all(
      cases.map(([account, fault]) => schedule(account, ['one', `two [[sandbox:${fault}]]`, 'three'])),
    );
    const states = await world.all(ids, 'published', 60_000);
    for (const [at, [account, fault, attempts]] of cases.entries()) {
      const about = `${account.platform} ${fault}`;
      assert.deepEqual(await chain(ids[at] ?? ''), ['one', `two [[sandbox:${fault}]]`, 'three'], about);
      const state = states[at];
      assert.equal(state?.status === 'published' && state.common.attempts, attempts, about);
    }
  });

  t('refused at a later segment: fails, names the published segments and the head; a retry completes it', async () => {
    started();
    const id = await schedule(unprovable, ['one', 'two [[sandbox:reject once]]', 'three']);
    const [state] = await world.all([id], 'failed');
    assert.ok(state?.status === 'failed');
    assert.match(state.failure.message, /^Segment 1 of the thread is out; of segment 2: /);
    assert.deepEqual(await chain(id), ['one']);
    const retry = { type: 'Retry', commandId: 'r', now: new Date().toISOString() } as const;
    await execute(world.store, target, id, retry, world.context(), { partitionKey: state.common.postId });
    await world.all([id], 'published');
    assert.equal((await chain(id)).length, 3);
  });

  t('a client archived between two attempts: the rest is not published, and the failure names the reason', async () => {
    started();
    const ofArchived = await world.client();
    const account = await world.connect(ofArchived, 'x');
    const id = await schedule(account, ['one', 'two [[sandbox:rate_limit once 3s]]']);
    await world.all([id], 'rate_limited');
    await world.archive(ofArchived);
    const [state] = await world.all([id], 'failed');
    assert.equal(state?.status === 'failed' && state.failure.code, 'thread_interrupted');
    assert.deepEqual(await chain(id), ['one']);
  });

  t('an account disconnected or a client archived during an attempt: the rest is not published', async () => {
    started();
    const own = await world.client();
    const texts = ['one', 'two [[sandbox:slow once 3s]]', 'three', 'four'];
    const leaving = await world.connect(own, 'threads');
    const gone = await schedule(leaving, texts);
    await until('its head is out', async () => (await chain(gone)).length === 1);
    const left = { type: 'Disconnect', reason: 'asked for' } as const;
    await execute(world.store, accountDecider, leaving.id, left, world.context());
    const [lost] = await world.all([gone], 'failed');
    assert.equal(lost?.status === 'failed' && lost.failure.code, 'account_disconnected');
    assert.ok((await chain(gone)).length < texts.length);

    const archived = await schedule(await world.connect(own, 'threads'), texts);
    await until('its head is out', async () => (await chain(archived)).length === 1);
    await world.archive(own);
    const [ended] = await world.all([archived], 'failed');
    assert.equal(ended?.status === 'failed' && ended.failure.code, 'thread_interrupted');
    assert.ok((await chain(archived)).length < texts.length);
  });

  const deaths = [
    [
      'threads',
      ['after-outcome', 'before-boundary', 'after-boundary', 'after-call', 'after-takeover', 'after-outcome'],
    ],
    ['x', ['after-outcome', 'before-boundary', 'after-call', 'after-takeover', 'after-outcome', 'after-claim']],
  ] as const;
  for (const [name, points] of rowsOfRun('deaths in a thread', deaths, ([name]) => name)) {
    t(`${name}: workers killed one after the other in the middle of a thread publish each segment once`, async () => {
      await stopped();
      const texts = ['one', 'two', 'three', 'four'];
      const id = await schedule(name === 'x' ? unprovable : provable, texts);
      for (const point of points) {
        const dying = await mortals.child(`publisher:${point}`);
        const gone = mortals.died(dying);
        const ended = world.all([id], 'published', 60_000).then(() => 'published' as const);
        ended.catch(() => undefined);
        if ((await Promise.race([gone, ended])) === 'published') dying.kill('SIGKILL');
      }
      started();
      await world.all([id], 'published', 60_000);
      assert.deepEqual(await chain(id), texts);
      const story = await world.story(`target-${id}`);
      assert.equal(story.filter((type) => type === 'TargetSegmentPublished').length, 4);
      assert.ok(story.filter((type) => type === 'TargetPublishTakenOver').length >= 4, story.join(' '));
    });
  }

  t('a worker that drains leaves the rest to the next', async () => {
    await stopped();
    const texts = ['one', 'two [[sandbox:slow once 1s]]', 'three'];
    const id = await schedule(provable, texts);
    started();
    await until('its head is out', async () => (await chain(id)).length === 1);
    await stopped();
    started();
    await world.all([id], 'published');
    assert.deepEqual(await chain(id), texts);
  });

  t('no post was created twice', async () => {
    assert.deepEqual(await world.sandbox.duplicates(), []);
  });
});

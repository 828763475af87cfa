import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { MediaCommand } from '#domain/media.ts';
import { media } from '#domain/media.ts';
import { mediaFailure } from '#domain/media-failures.ts';
import { target as decider } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { readyAsset } from '#test/support/assets.ts';
import { clip, readyClip } from '#test/support/clip.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld, type Running } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Short, because the clock of a test jumps over what a rest waits for. */
const mediaRest = { firstMs: 200, maxMs: 1_000 };

suite('files of a target', { timeoutMs: 180_000 }, (t) => {
  let world: PublishingWorld;
  let publisher: Running;
  let clientId = '';
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
    publisher = world.publisher({}, { mediaRest });
  });
  t.after(async () => {
    await publisher?.stop();
    await world?.close();
  });

  const say = (id: string, command: MediaCommand) => execute(world.store, media, id, command, world.context());
  const post = async (platform: 'tiktok' | 'instagram' | 'x' | 'facebook', body: object, dueAt?: number) => {
    const account = await world.connect(clientId, platform);
    const variants =
      platform === 'tiktok'
        ? [{ platform, contentOverride: null, mediaIdsOverride: null, overrides: { privacyLevel: 'SELF_ONLY' } }]
        : [];
    const { targetIds } = await world.schedule([account], {
      body,
      variants,
      ...(dueAt === undefined ? {} : { dueAt }),
    });
    return targetIds[0] ?? '';
  };
  /** Whether the target rested at least twice. */
  const rests = new Map<string, Set<string>>();
  const looksAt = async (id: string): Promise<boolean> => {
    const { rows } = await world.pool.query('select not_before::text as at from ops.work_leases where id = $1', [id]);
    const seen = rests.get(id) ?? new Set();
    rests.set(id, seen);
    for (const { at } of rows) if (at !== null) seen.add(at);
    return seen.size > 1;
  };
  const failureOf = async (id: string) => {
    const [state] = await world.all([id], 'failed');
    return state?.status === 'failed' ? state.failure : null;
  };

  t('the network gets the source where it fits', async () => {
    const { id, probe } = await readyClip(world.store, world.workspaceId, world.blobs, { altText: 'a test picture' });
    const target = await post('tiktok', { mediaIds: [id], mediaAltTexts: { [id]: 'bars that move' } });
    await world.all([target], 'published');
    const [row] = await world.sandbox.creates(target);
    const [given] = row?.media ?? [];
    assert.equal(given?.mediaId, id);
    assert.deepEqual([given?.contentType, given?.width, given?.height], ['video/mp4', 720, 1280]);
    assert.equal(given?.bytes, probe.bytes);
    assert.equal(given?.altText, null, 'TikTok takes none');
  });

  t('the publisher requests a missing rendition, waits for it, and claims the target only then', async () => {
    const body = await clip();
    const { id } = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    const target = await post('tiktok', { mediaIds: [id] });
    await until('it is asked for', async () => (await world.story(`media-${id}`)).includes('MediaRenditionsRequested'));
    assert.deepEqual(await world.story(`target-${target}`), ['TargetScheduled']);
    const rendition = 'ab'.repeat(16);
    const need = { platform: 'tiktok', use: 'feed' } as const;
    const spec = {
      kind: 'video',
      mode: 'remux',
      width: 720,
      height: 1280,
      fit: 'scale',
      fps: null,
      videoKbps: 900,
      audio: null,
      maxBytes: null,
    } as const;
    await say(id, { type: 'Plan', initial: false, needs: [{ ...need, outcome: 'rendition', id: rendition, spec }] });
    const key = `${world.workspaceId}/${id}/${rendition}.mp4`;
    const { bytes } = await world.blobs.put(key, body, { contentType: 'video/mp4', bytes: body.length });
    const state = (await world.store.load(media, id)).state;
    const sha256 = state.status === 'transcoded' ? (state.stored?.sha256 ?? '') : '';
    const file = { key, contentType: 'video/mp4', bytes, sha256, width: 720, height: 1280, durationMs: 5_000 };
    await say(id, { type: 'RecordRendition', rendition, file });
    await world.all([target], 'published');
    const requested = (await world.story(`media-${id}`)).filter((one) => one === 'MediaRenditionsRequested');
    assert.equal(requested.length, 1);
    assert.equal(await world.created(target), 1);
  });

  t('a failed rendition fails the target with its own failure; a rendition that never comes ends in time', async () => {
    const { id } = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    const failure = mediaFailure('media_too_long', 'TikTok takes videos of at most 600 s.');
    await say(id, {
      type: 'Plan',
      initial: false,
      needs: [{ platform: 'tiktok', use: 'feed', outcome: 'failed', failure }],
    });
    const said = await failureOf(await post('tiktok', { mediaIds: [id] }));
    assert.deepEqual(
      [said?.category, said?.code, said?.message, said?.mediaId, said?.retryable],
      ['media', failure.code, failure.message, id, false],
    );
  });

  t('targets that wait for a rendition rest ever longer, and begin as soon as their file has moved', async () => {
    await publisher.stop();
    let looks = 0;
    const waiting = new Set<string>();
    const store: typeof world.store = Object.assign(Object.create(world.store), {
      load: (...args: Parameters<typeof world.store.load>) => {
        if (waiting.has(args[1])) looks += 1;
        return world.store.load(...args);
      },
      append: world.store.append.bind(world.store),
      readStream: world.store.readStream.bind(world.store),
    });
    // A rest of ten minutes shows that nothing but the file ends it.
    publisher = world.publisher({}, { store, mediaRest: { firstMs: 100, maxMs: 600_000 } });
    const { id } = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    const targets = await Promise.all([1, 2, 3].map(() => post('tiktok', { mediaIds: [id] })));
    for (const target of targets) waiting.add(target);
    await until('each has rested for longer than a second', async () => {
      const sql = "select from ops.work_leases where id = any($1) and not_before > now() + interval '1 second'";
      return (await world.pool.query(sql, [targets])).rowCount === targets.length;
    });
    assert.ok(looks < 3 * 12, `${looks} looks`);
    const need = { platform: 'tiktok', use: 'feed', outcome: 'fits' } as const;
    await world.pool.query("update ops.work_leases set not_before = now() + interval '1 hour' where id = any($1)", [
      targets,
    ]);
    await say(id, { type: 'Plan', initial: false, needs: [need] });
    await world.all(targets, 'published');
    await publisher.stop();
    publisher = world.publisher({}, { mediaRest });
  });

  const minuteMs = 60_000;
  const isAskedFor = (id: string) =>
    until('it is asked for', async () => (await world.story(`media-${id}`)).includes('MediaRenditionsRequested'));

  t('after an outage a late target first requests its rendition, and is published once it is ready', async () => {
    const { id } = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    const target = await post('tiktok', { mediaIds: [id] }, Date.now() - 40 * minuteMs);
    await isAskedFor(id);
    assert.deepEqual(await world.story(`target-${target}`), ['TargetScheduled']);
    const need = { platform: 'tiktok', use: 'feed', outcome: 'fits' } as const;
    await say(id, { type: 'Plan', initial: false, needs: [need] });
    await world.all([target], 'published');
  });

  t('the wait for a rendition counts from due time, request and start of the publisher', async () => {
    await publisher.stop();
    const limit = { mediaLimitMs: 30 * minuteMs };
    const clock = { ...wallClock, behindMs: 31 * minuteMs, now: () => Date.now() - clock.behindMs };
    const asked = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    publisher = world.publisher({}, { ...limit, clock, mediaRest });
    const first = await post('tiktok', { mediaIds: [asked.id] }, Date.now() - 40 * minuteMs);
    await isAskedFor(asked.id);
    clock.behindMs = 0;
    const late = await failureOf(first);
    assert.deepEqual([late?.code, late?.mediaId, late?.retryable], ['media_not_ready', asked.id, true]);

    // The same publisher, an hour behind its time: what is asked for only now has all of its time.
    const fresh = await readyClip(world.store, world.workspaceId, world.blobs, { needs: [] });
    const second = await post('tiktok', { mediaIds: [fresh.id] }, Date.now() - 60 * minuteMs);
    await isAskedFor(fresh.id);
    clock.behindMs = -29 * minuteMs;
    await until('it was looked at since', () => looksAt(second));
    assert.deepEqual(await world.story(`target-${second}`), ['TargetScheduled']);
    clock.behindMs = -31 * minuteMs;
    const [state] = await world.all([second], 'failed');
    assert.equal(state?.status === 'failed' && state.failure.code, 'media_not_ready');

    // A retry begins a wait of its own; its planned time has passed long ago.
    const retry = { type: 'Retry', commandId: 'again', now: new Date(clock.now()).toISOString() } as const;
    const partitionKey = state?.status === 'failed' ? state.common.postId : '';
    await execute(world.store, decider, second, retry, world.context(), { partitionKey });
    rests.delete(second);
    await until('it was looked at since', () => looksAt(second));
    assert.deepEqual(await world.story(`target-${second}`), ['TargetScheduled', 'TargetFailed', 'TargetRequeued']);
    clock.behindMs = -62 * minuteMs;
    assert.equal((await failureOf(second))?.code, 'media_not_ready');

    // Asked for long ago, due long ago: a publisher that has just come still waits for it.
    await publisher.stop();
    publisher = world.publisher({}, { mediaRest });
    const third = await post('tiktok', { mediaIds: [asked.id] }, Date.now() - 60 * minuteMs);
    await until('it was looked at since', () => looksAt(third));
    assert.deepEqual(await world.story(`target-${third}`), ['TargetScheduled']);
  });

  t('a file that does not exist, or is of another workspace, is missing', async () => {
    const elsewhere = await readyAsset(world.store, randomUUID(), 'video');
    for (const id of [randomUUID(), elsewhere.id]) {
      const said = await failureOf(await post('tiktok', { mediaIds: [id] }));
      assert.deepEqual([said?.code, said?.mediaId], ['media_missing', id]);
    }
  });

  t('the network refuses a file that differs from its announcement, and makes no post', async () => {
    const { id, key } = await readyClip(world.store, world.workspaceId, world.blobs);
    const text = Buffer.from('no clip at all');
    await world.blobs.put(key, text, { contentType: 'video/mp4', bytes: text.length });
    const target = await post('tiktok', { mediaIds: [id] });
    const said = await failureOf(target);
    assert.deepEqual([said?.category, said?.mediaId], ['invalid_content', id]);
    assert.equal(await world.created(target), 0);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import sharp from 'sharp';
import { post } from '#domain/post/post.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Cores } from '#services/media/cores.ts';
import { clearOffers } from '#services/media/offers.ts';
import { readyClip } from '#test/support/clip.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { MediaWorld } from './world.ts';

suite('media workers side by side', { drawn: true, costs: 8, timeoutMs: 180_000 }, (t) => {
  let world: MediaWorld;
  t.before(async () => {
    world = await MediaWorld.open();
  });
  t.after(() => world.close());

  const never = new AbortController().signal;
  const picture = (side: number) =>
    sharp({ create: { width: side, height: side, channels: 3, background: '#164' } })
      .png()
      .toBuffer();

  t('the cores of a machine are shared: never more threads than cores, and no worker waits for ever', async () => {
    const options = { pool: world.posts.pool, ttlMs: 2_000, onError: () => undefined, count: 3, host: randomUUID() };
    const both = [new Cores(options), new Cores(options)];
    let busy = 0;
    let most = 0;
    const work = async (cores: Cores, wish: number): Promise<void> => {
      const taken = await cores.take(wish, never);
      busy += taken.threads;
      most = Math.max(most, busy);
      assert.ok(taken.threads >= 1 && taken.threads <= wish);
      await new Promise((resolve) => setImmediate(resolve));
      busy -= taken.threads;
      taken.release();
    };
    await Promise.all(Array.from({ length: 12 }, (_, at) => work(both[at % 2] as Cores, (at % 3) + 1)));
    assert.ok(most <= 3, `${most} threads on 3 cores`);
    const all = await (both[0] as Cores).take(8, never);
    assert.equal(all.threads, 3);
    const stop = new AbortController();
    const waiting = (both[1] as Cores).take(1, stop.signal);
    stop.abort(new Error('drained'));
    await assert.rejects(waiting);
    all.release();
    await Promise.all(both.map((one) => one.close()));
  });

  t(
    'two workers and many files: each is worked on once, and a small workspace does not wait behind a large one',
    async () => {
      const body = await picture(300);
      const many: string[] = [];
      for (let n = 0; n < 12; n += 1)
        many.push(await world.upload(body, { contentType: 'image/png', platforms: ['x'] }));
      const single = await world.upload(body, {
        contentType: 'image/png',
        platforms: ['x'],
        workspaceId: randomUUID(),
      });
      const workers = [await world.start(), await world.start()];
      await until('the one', async () => (await world.state(single)).status === 'transcoded');
      const done = await Promise.all(many.map(async (id) => (await world.state(id)).status === 'transcoded'));
      const before = done.filter(Boolean).length;
      assert.ok(before <= 6, `${before} of the others came first`);
      for (const id of many) await world.settled(id, 'transcoded');
      for (const id of [...many, single]) {
        const story = await world.story(id);
        assert.equal(new Set(story).size, story.length, story.join(' '));
      }
      for (const one of workers) await one.stop();
    },
  );

  t('renditions of a scheduled post are requested as soon as it is scheduled', async () => {
    const { posts } = world;
    const worker = await world.start();
    const { id } = await readyClip(posts.store, posts.workspaceId, posts.blobs, { needs: [] });
    const clientId = await posts.client();
    const accounts = [await posts.connect(clientId, 'tiktok'), await posts.connect(clientId, 'threads')];
    await posts.schedule(accounts, { dueAt: Date.now() + 86_400_000, body: { mediaIds: [id] } });
    await until('both', async () => {
      const state = await world.state(id);
      if (state.status !== 'transcoded') return false;
      const met = ['tiktok/feed', 'threads/feed'].map((key) => state.needs.get(key)?.status ?? '');
      return met.every((status) => status === 'ready' || status === 'fits');
    });
    const story = await world.story(id);
    assert.equal(story.filter((one) => one === 'MediaRenditionsRequested').length, 1, story.join(' '));
    await worker.stop();
  });

  t('renditions that a revision needs are requested for the networks of the targets that it names', async () => {
    const { posts } = world;
    const worker = await world.start();
    const { id } = await readyClip(posts.store, posts.workspaceId, posts.blobs, { needs: [] });
    const clientId = await posts.client();
    const accounts = [await posts.connect(clientId, 'threads'), await posts.connect(clientId, 'x')];
    const { postId, targetIds } = await posts.schedule(accounts, { dueAt: Date.now() + 86_400_000 });
    const { state } = await posts.store.load(post, postId);
    assert.ok(state.status === 'live');
    const body = { ...state.body, mediaIds: [id] };
    const named = { changed: ['mediaIds'], targetIds: targetIds.slice(0, 1), times: null };
    const revise = { type: 'Revise', commandId: randomUUID(), body, ...named } as const;
    await execute(posts.store, post, postId, revise, posts.context());
    await until('the rendition', async () => {
      const asset = await world.state(id);
      const status = asset.status === 'transcoded' ? asset.needs.get('threads/feed')?.status : undefined;
      return status === 'ready' || status === 'fits';
    });
    const asset = await world.state(id);
    assert.ok(asset.status === 'transcoded' && !asset.needs.has('x/feed'), 'x is not revised');
    await worker.stop();
  });

  t('an unregistered upload is deleted a day after it was found, each time; a registered one is kept', async () => {
    const { posts } = world;
    const worker = await world.start();
    const body = await picture(310);
    const offered = await world.offer(body, { contentType: 'image/png' });
    const known = async () =>
      (await posts.pool.query('select 1 from ops.media_offers where asset_id = $1', [offered.id])).rowCount === 1;
    await until('the offer is heard of', known);
    await worker.stop();
    const deps = { pool: posts.pool, store: posts.store, blobs: posts.blobs, logger: posts.logger };
    const due = () => posts.pool.query("update ops.media_offers set due_at = now() - interval '1 minute'");
    const swept = async (at?: number) => {
      await due();
      return clearOffers({ ...deps, ...(at === undefined ? {} : { now: () => at }) }, never);
    };
    assert.equal(await clearOffers(deps, never), 0);
    const described = { name: 'late', clientId: null, folder: null, altText: null, platforms: [] };
    await world.command(offered.id, { type: 'Register', ...described });
    await swept();
    assert.equal((await world.keys(offered.id)).length, 1, 'it is still needed');
    const next = await world.start();
    await world.settled(offered.id, 'transcoded');
    await next.stop();
    assert.ok(await known(), 'a URL given before it was registered is valid still');
    const tomorrow = Date.now() + 2 * 86_400_000;
    await posts.blobs.put(offered.key, body, { contentType: 'image/png', bytes: body.length });
    await swept(tomorrow);
    assert.ok(!(await known()));
    assert.deepEqual(await world.keys(offered.id), await world.named(offered.id));

    const other = await world.offer(body, { contentType: 'image/png' });
    await posts.pool.query('insert into ops.media_offers (asset_id, key, due_at) values ($1, $2, now())', [
      other.id,
      other.key,
    ]);
    const left = async () =>
      (await posts.pool.query('select 1 from ops.media_offers where asset_id = $1', [other.id])).rowCount;
    for (let time = 0; time < 2; time += 1) {
      assert.equal(await swept(), 0);
      assert.equal((await world.keys(other.id)).length, 1, 'it may be registered yet');
      // Sent again meanwhile: somebody is at it.
      const again = await picture(311 + time);
      await posts.blobs.put(other.key, again, { contentType: 'image/png', bytes: again.length });
      assert.equal(await swept(), 0);
      assert.equal(await swept(), 1);
      assert.deepEqual(await world.keys(other.id), []);
      // A repeat of the offer gives a fresh URL.
      await posts.blobs.put(other.key, body, { contentType: 'image/png', bytes: body.length });
    }
    await swept();
    await swept();
    assert.deepEqual(await world.keys(other.id), []);
    assert.equal(await left(), 1);
    await swept(Date.now() + 32 * 86_400_000);
    assert.equal(await left(), 0);
  });
});

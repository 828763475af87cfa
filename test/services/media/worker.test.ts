import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sharp from 'sharp';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { largestOf } from '#domain/media-types.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { platforms } from '#schemas/common.ts';
import { clip } from '#test/support/clip.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { MediaWorld } from './world.ts';

const photo = (width = 1_600, height = 1_200) =>
  sharp({ create: { width, height, channels: 3, background: '#7a4' } })
    .jpeg()
    .toBuffer();

suite('media worker', { timeoutMs: 240_000 }, (t) => {
  let world: MediaWorld;
  let server: Server;
  let origin = '';
  const served = new Map<string, Buffer | number>();
  t.before(async () => {
    world = await MediaWorld.open();
    server = createServer((request, response) => {
      const found = served.get(request.url?.split('?')[0] ?? '') ?? 404;
      if (typeof found === 'number') response.writeHead(found).end();
      else response.writeHead(200, { 'content-length': found.length }).end(found);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await world.start();
  });
  t.after(async () => {
    await world.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  t('an uploaded photo: each step happens once, its needs are made, the upload is deleted', async () => {
    const id = await world.upload(await photo(), {
      contentType: 'image/jpeg',
      platforms: ['x', 'instagram', 'pinterest'],
    });
    const { stored, probe, needs } = await world.settled(id, 'transcoded');
    const story = await world.story(id);
    for (const type of ['MediaStored', 'MediaProbed', 'MediaRenditionsPlanned', 'MediaTranscoded'])
      assert.equal(story.filter((one) => one === type).length, 1, story.join(' '));
    assert.equal(stored?.kind, 'image');
    assert.equal(probe?.width, 1_600);
    assert.deepEqual([...needs.keys()].sort(), ['instagram/feed', 'pinterest/feed', 'x/feed']);
    for (const need of needs.values())
      assert.ok(need.status === 'fits' || need.status === 'ready', JSON.stringify(need));
    assert.deepEqual(await world.keys(id), await world.named(id));
  });

  t('a photo for a network that takes no photos is ready, without a rendition and without a failed one', async () => {
    const id = await world.upload(await photo(), { contentType: 'image/jpeg', platforms: ['youtube'] });
    const { needs } = await world.settled(id, 'transcoded');
    assert.equal(needs.size, 0);
    const story = await world.story(id);
    assert.ok(story.includes('MediaRenditionsPlanned') && !story.includes('MediaRenditionFailed'), story.join(' '));
  });

  t('an uploaded clip gets renditions for all networks, and for a need requested later', async () => {
    const id = await world.upload(await clip(), { contentType: 'video/mp4' });
    const { needs, poster, status } = await world.settled(id, 'transcoded');
    assert.equal(status, 'transcoded');
    assert.equal(needs.size, platforms.length);
    for (const need of needs.values())
      assert.ok(need.status === 'fits' || need.status === 'ready', JSON.stringify(need));
    assert.ok(poster !== null && poster.width > 0);
    await world.need(id, { platform: 'instagram', use: 'story' }, { platform: 'x', use: 'feed' });
    await until('the story', async () => {
      const state = await world.state(id);
      if (state.status !== 'transcoded') return false;
      const need = state.needs.get('instagram/story');
      return need?.status === 'ready' || need?.status === 'fits';
    });
    await until('the end of the work', async () => (await world.job(id)) === null);
    assert.equal((await world.story(id)).filter((one) => one === 'MediaTranscoded').length, 1);
    assert.deepEqual(await world.keys(id), await world.named(id));
  });

  t('reports its progress while it renders, and deletes it afterwards', async () => {
    await world.posts.pool.query(`
      create table told (done float4);
      create function tell() returns trigger language plpgsql as
        $$ begin insert into told values (new.done); return new; end $$;
      create trigger told after insert or update on ops.progress for each row execute function tell()`);
    const id = await world.upload(await clip(), { contentType: 'video/mp4', platforms: ['x', 'telegram'] });
    await world.settled(id, 'transcoded');
    const { rows } = await world.posts.pool.query<{ done: number }>('select done from told');
    assert.ok(rows.length > 0);
    for (const { done } of rows) assert.ok(done >= 0 && done <= 1, String(done));
    await until('nothing is left', async () => {
      const left = await world.posts.pool.query('select from ops.progress');
      return left.rowCount === 0;
    });
  });

  t('networks share a rendition with the same spec', async () => {
    const id = await world.upload(await photo(3_000, 2_000), { contentType: 'image/jpeg', platforms: ['instagram'] });
    await world.settled(id, 'transcoded');
    const before = await world.keys(id);
    await world.need(id, { platform: 'threads', use: 'feed' });
    await until('the need', async () => {
      const state = await world.state(id);
      return state.status === 'transcoded' && ['ready', 'fits'].includes(state.needs.get('threads/feed')?.status ?? '');
    });
    const state = await world.settled(id, 'transcoded');
    const [one, other] = ['instagram/feed', 'threads/feed'].map((key) => state.needs.get(key));
    assert.ok(one?.status === 'ready' && other?.status === 'ready');
    assert.equal(one.file.key, other.file.key);
    assert.deepEqual(await world.keys(id), before);
  });

  t('a file of another kind than announced is quarantined, and no blob is kept', async () => {
    const id = await world.upload(await photo(), { contentType: 'video/mp4' });
    const { failure } = await world.settled(id, 'quarantined');
    assert.equal(failure?.code, 'media_type_mismatch');
    assert.deepEqual(await world.keys(id), []);
  });

  t('an image of another type than announced is stored under its real type', async () => {
    const id = await world.upload(await photo(), { contentType: 'image/png', platforms: ['x'] });
    const { stored } = await world.settled(id, 'transcoded');
    assert.equal(stored?.contentType, 'image/jpeg');
    assert.equal((await world.posts.blobs.head(stored?.key ?? ''))?.contentType, 'image/jpeg');
    assert.deepEqual(await world.keys(id), await world.named(id));
  });

  t('a text, an empty file, a truncated clip and a changed upload are refused with a code and deleted', async () => {
    const whole = await clip();
    const text = await world.upload(Buffer.from('plain words '.repeat(20)), { contentType: 'image/jpeg' });
    const torn = await world.upload(whole.subarray(0, 900), { contentType: 'video/mp4' });
    const changed = await world.upload(await photo(), { contentType: 'image/jpeg', claimedBytes: 17 });
    const table = [
      [text, 'media_unsupported'],
      [torn, 'media_unreadable'],
      [changed, 'media_changed'],
    ] as const;
    for (const [id, code] of table) {
      const { failure } = await world.settled(id, 'failed');
      assert.equal(failure?.code, code);
      assert.deepEqual(await world.keys(id), []);
    }
  });

  t('an import is stored like an upload; an address without media fails with a code', async () => {
    served.set('/photo', await photo());
    served.set('/page', Buffer.from('<!doctype html><title>no</title>'));
    served.set('/picture', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'));
    served.set('/archive', Buffer.concat([Buffer.from('PK\x03\x04\x14\0\0\0\0\0', 'latin1'), Buffer.alloc(200)]));
    served.set('/words', Buffer.from('plain words '.repeat(20)));
    served.set('/large', Buffer.concat([await photo(), Buffer.alloc(largestOf.image)]));
    served.set('/two', Buffer.concat([await photo(), Buffer.from('<script>alert(1)</script>')]));
    served.set('/gone', 410);
    const id = await world.import(`${origin}/photo?signature=secret`, ['x']);
    await world.settled(id, 'transcoded');
    assert.deepEqual(await world.keys(id), await world.named(id));
    const table = [
      ['/page', 'failed', 'import_not_media'],
      ['/picture', 'failed', 'import_not_media'],
      ['/archive', 'failed', 'import_not_media'],
      ['/words', 'failed', 'import_not_media'],
      ['/large', 'failed', 'import_too_large'],
      ['/two', 'quarantined', 'media_polyglot'],
      ['/gone', 'failed', 'import_refused'],
    ] as const;
    const imports = await Promise.all(table.map(([at]) => world.import(`${origin}${at}`)));
    for (const [at, [where, status, code]] of table.entries()) {
      const refused = imports[at] ?? '';
      const { failure } = await world.settled(refused, status);
      assert.equal(failure?.code, code, where);
      assert.deepEqual(await world.keys(refused), []);
    }
    served.delete('/large');
  });

  t('an import is retried while its server is down, and fails when the server stays down', async () => {
    served.set('/later', 503);
    const later = await world.import(`${origin}/later`, ['x']);
    await until('a failed download', async () => ((await world.job(later))?.fetches ?? 0) > 0);
    served.set('/later', await photo());
    await world.settled(later, 'transcoded');
    served.set('/never', 503);
    const never = await world.import(`${origin}/never`, ['x']);
    const { failure } = await world.settled(never, 'failed');
    assert.equal(failure?.code, 'import_refused');
  });

  t('the worker waits for an unavailable store and does not count it against the file', async () => {
    const other = await MediaWorld.open();
    let away = true;
    const blobs = new Proxy(other.posts.blobs, {
      get: (target, name) => {
        const found = Reflect.get(target, name);
        if (typeof found !== 'function') return found;
        return (...given: unknown[]) => {
          if (away && name !== 'close') return Promise.reject(new BlobError('unavailable', 'away'));
          return Reflect.apply(found, target, given);
        };
      },
    });
    const running = await other.start({ blobs });
    const id = await other.upload(await photo(), { contentType: 'image/jpeg', platforms: ['x'] });
    await until('tries', async () => ((await other.job(id))?.failures ?? 0) >= 7);
    assert.equal((await other.job(id))?.attempts ?? 0, 0);
    away = false;
    await other.settled(id, 'transcoded');
    await running.stop();
    await other.close();
  });

  t('a file whose tools are killed again and again is given up', async () => {
    const other = await MediaWorld.open();
    const tools = openTranscoder({ ffmpegPath: null, workDir: other.posts.folder, warn: () => undefined });
    const probe = () => Promise.reject(new Error('the process was killed'));
    const running = await other.start({ transcoder: { ...tools, probe } });
    const id = await other.upload(await photo(), { contentType: 'image/jpeg', platforms: ['x'] });
    const { failure } = await other.settled(id, 'failed');
    assert.equal(failure?.code, 'processing_failed');
    assert.deepEqual(await other.keys(id), []);
    await running.stop();
    await other.close();
  });

  t('reports its metrics', async () => {
    const { registry, stop } = await world.start();
    const id = await world.upload(await photo(), { contentType: 'image/jpeg', platforms: ['x'] });
    await world.settled(id, 'transcoded');
    const text = await registry.metrics();
    for (const name of ['media_steps_total', 'media_step_seconds', 'media_queue_length', 'media_in_work'])
      assert.match(text, new RegExp(`# TYPE ${name} `));
    await stop();
  });
});

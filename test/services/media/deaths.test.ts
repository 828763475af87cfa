import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { post } from '#domain/post/post.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { usesOf } from '#services/media/uses.ts';
import { clip } from '#test/support/clip.ts';
import { Mortals } from '#test/support/mortals.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { MediaWorld } from './world.ts';

const script = fileURLToPath(new URL('./media-process.ts', import.meta.url));
/** In the order in which one file meets them. */
const points = [
  ...['media:after-store-blob', 'media:after-stored', 'media:after-probed', 'media:after-planned'],
  ...['media:after-rendition-put', 'media:after-rendition', 'media:before-finish', 'media:after-finish'],
];
const single = ['MediaStored', 'MediaProbed', 'MediaTranscoded'];

suite('media deaths', { drawn: true, costs: 16, timeoutMs: 240_000 }, (t) => {
  let world: MediaWorld;
  const mortals = new Mortals(script, () => [world.posts.url]);
  const picture = (side: number) =>
    sharp({ create: { width: side, height: side, channels: 3, background: '#481' } })
      .png()
      .toBuffer();
  const fine = async (id: string): Promise<void> => {
    const { needs } = await world.settled(id, 'transcoded');
    const story = await world.story(id);
    for (const type of single) assert.equal(story.filter((one) => one === type).length, 1, story.join(' '));
    for (const need of needs.values()) assert.ok(['ready', 'fits'].includes(need.status), JSON.stringify(need));
    assert.equal(story.filter((one) => one === 'MediaRenditionReady').length, needs.size);
    assert.deepEqual(await world.keys(id), await world.named(id));
  };

  t.before(async () => {
    world = await MediaWorld.open();
  });
  // What a failed test leaves alive would take the work of the next one.
  t.after.each(async () => {
    await mortals.end();
    await world.posts.stopAll();
  });
  t.after(() => world.close());

  t('a file whose worker dies at every fault point: each outcome once, and no unnamed blob', async () => {
    const id = await world.upload(await picture(500), { contentType: 'image/png', platforms: ['instagram'] });
    for (const point of points) await mortals.died(await mortals.child(point));
    const last = await world.start();
    await fine(id);
    await last.stop();
  });

  t('an import whose worker dies around the download: the address is destroyed and no blob is left', async () => {
    const asked: string[] = [];
    const body = await picture(505);
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(200, { 'content-length': body.length }).end(body);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const id = await world.import(`http://127.0.0.1:${port}/file?signature=canary`, ['instagram']);
    const addresses = 'select from ops.media_imports where asset_id = $1';
    for (const point of ['media:after-store-blob', 'media:after-stored']) {
      await mortals.died(await mortals.child(point));
      assert.equal((await world.posts.pool.query(addresses, [id])).rowCount, 1);
    }
    // As often as its worker lost the file: on a busy machine a lease ends within a download too.
    const downloads = asked.length;
    assert.ok(downloads >= 2);
    await mortals.died(await mortals.child('media:after-lane'));
    assert.equal((await world.posts.pool.query(addresses, [id])).rowCount, 0);
    const last = await world.start();
    await fine(id);
    assert.deepEqual(asked, Array(downloads).fill('/file?signature=canary'), 'it was loaded again once it was stored');
    await last.stop();
    await new Promise((closed) => server.close(closed));
  });

  t(
    'a deletion whose worker dies at every fault point: recorded once, and neither a blob nor quota is left',
    async () => {
      const { pool } = world.posts;
      const id = await world.upload(await picture(515), { contentType: 'image/png', platforms: ['instagram'] });
      const first = await world.start();
      await fine(id);
      await first.stop();
      const counted = 'select from ops.media_usage where asset_id = $1';
      assert.equal((await pool.query(counted, [id])).rowCount, 1);
      await world.command(id, { type: 'Delete' });
      await mortals.died(await mortals.child('media:after-removed'));
      assert.notDeepEqual(await world.keys(id), [], 'it died before the first of them');
      await mortals.died(await mortals.child('media:after-blobs-gone'));
      assert.equal((await pool.query(counted, [id])).rowCount, 1, 'it died before it gave back the room');
      const last = await world.start();
      await until('nothing is left to do', async () => (await world.job(id)) === null);
      await last.stop();
      assert.deepEqual(await world.keys(id), []);
      assert.equal((await pool.query(counted, [id])).rowCount, 0);
      assert.deepEqual((await world.story(id)).slice(-2), ['MediaDeleted', 'MediaFilesRemoved']);
      assert.equal((await world.state(id)).status, 'deleted');
    },
  );

  t('the files of a deleted asset stay until running calls, read models and open posts need them no more', async () => {
    const { posts } = world;
    const { pool } = posts;
    const worker = await world.start({ uses: usesOf(pool, posts.log, 600_000) });
    const id = await world.upload(await picture(520), { contentType: 'image/png', platforms: ['x'] });
    await world.settled(id, 'transcoded');
    /** The job's next look, and since when the asset is known to be hidden; null until it was put off. */
    const isRescheduled = async (least: number, most: number): Promise<boolean> => {
      const { rows } = await pool.query(
        `select extract(epoch from due_at - now())::float8 as seconds from ops.media_jobs j where asset_id = $1
         and not exists (select from ops.work_leases l where l.kind = 'media' and l.id = j.asset_id::text and l.until > now())`,
        [id],
      );
      return rows[0] !== undefined && rows[0].seconds > least && rows[0].seconds <= most;
    };
    const again = (sql = '') => pool.query(`update ops.media_jobs set due_at = now()${sql} where asset_id = $1`, [id]);
    const kept = async () => assert.deepEqual(await world.keys(id), await world.named(id));
    const whileLocked = async (table: string, work: () => Promise<void>): Promise<void> => {
      const session = await pool.connect();
      try {
        await session.query(`begin; lock table read.${table} in exclusive mode`);
        await work();
      } finally {
        await session.query('rollback');
        session.release();
      }
    };

    await whileLocked('media_v1', async () => {
      await world.command(id, { type: 'Delete' });
      await until('it waits for the library', () => isRescheduled(1, 5));
    });
    await again();
    await until('it waits for calls on their way', () => isRescheduled(500, 600));
    await kept();

    const postId = randomUUID();
    const body = (mediaIds: string[]) => postBody({ content: 'hello', mediaIds });
    const clientId = await posts.client();
    const createdBy = { type: 'apikey', id: 'test' } as const;
    const draft = { type: 'Draft', clientId, createdBy, body: body([id]) } as const;
    await whileLocked('posts_v1', async () => {
      await execute(posts.store, post, postId, draft, posts.context());
      await again(`, hidden_at = now() - interval '11 minutes'`);
      await until('it waits for the posts', () => isRescheduled(1, 5));
    });
    await again();
    await until('it waits for the post', () => isRescheduled(3_000, 3_600));
    await kept();

    await execute(posts.store, post, postId, { type: 'ReplaceDraft', body: body([]) }, posts.context());
    await again();
    await until('it is removed', async () => (await world.job(id)) === null);
    assert.deepEqual(await world.keys(id), []);

    const { id: place } = await world.offer(await picture(521), { contentType: 'image/png' });
    await world.command(place, { type: 'Delete' });
    await until('the upload is removed', async () => (await world.keys(place)).length === 0);
    await worker.stop();
  });

  t('a worker that slept past its lease with a rendition made changes nothing when it wakes', async () => {
    for (const point of ['media:after-rendition-put', 'media:before-finish']) {
      const sleeper = await mortals.child(point, 'SIGSTOP');
      const id = await world.upload(await picture(510), { contentType: 'image/png', platforms: ['instagram'] });
      await mortals.asleep(sleeper);
      const next = await world.start();
      await fine(id);
      const story = await world.story(id);
      const keys = await world.keys(id);
      await mortals.wakeToEnd(sleeper);
      assert.deepEqual(await world.story(id), story, 'the sleeper wrote');
      assert.deepEqual(await world.keys(id), keys);
      await next.stop();
    }
  });

  t('a file that kills its workers fails, and the worker continues with others', async () => {
    const id = await world.upload(await clip(), { contentType: 'video/mp4', platforms: ['x'] });
    for (let death = 1; death <= 5; death += 1) await mortals.died(await mortals.child('media:after-store-blob'));
    const worker = await world.start();
    const { failure } = await world.settled(id, 'failed');
    assert.equal(failure?.code, 'processing_failed');
    assert.deepEqual(await world.keys(id), []);
    await worker.stop();
  });

  t('a drain in the middle of the work counts as no death, and the next worker continues', async () => {
    const id = await world.upload(await clip(), { contentType: 'video/mp4' });
    const first = await world.start();
    await until('it has begun', async () => (await world.job(id)) !== null && (await world.story(id)).length > 2);
    await first.stop();
    const job = await world.job(id);
    assert.ok(job === null || job.attempts === 0, JSON.stringify(job));
    const second = await world.start();
    await world.settled(id, 'transcoded');
    assert.deepEqual(await world.keys(id), await world.named(id));
    await second.stop();
  });
});

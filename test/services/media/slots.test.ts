import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import type { Origin } from '#domain/media.ts';
import { workspace } from '#domain/workspace.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { DownloadError } from '#runtime/egress/download.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Readiness } from '#runtime/process/telemetry.ts';
import { pickFairly } from '#runtime/work/fair-pick.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import type { FetchFile } from '#services/media/deps.ts';
import { clearImports } from '#services/media/offers.ts';
import { NoRoom, videoSlotOf, videoSlots } from '#services/media/videos.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import { clip } from '#test/support/clip.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { mediaConfig as config, importUrlsOf, MediaWorld } from './world.ts';

/** Ends what still lasts when a test has failed. */
const over = new AbortController();
const lasting = (begun: (end: () => void) => void): Promise<void> =>
  new Promise((end) => {
    over.signal.addEventListener('abort', () => end());
    if (over.signal.aborted) end();
    begun(end);
  });

interface Slow {
  /** Where its file lies. */
  readonly to: string;
  readonly end: () => void;
}

/** Downloads that last until they are let go. They do not listen to their signal, as one that writes to a slow disk. One whose address says so is quick. */
const slowly = (body: Buffer, quick = body) => {
  const begun: Slow[] = [];
  const fetchFile: FetchFile = async (url, { to }) => {
    const isQuick = url.includes('quick');
    await writeFile(to, isQuick ? quick : body);
    if (!isQuick) await lasting((end) => begun.push({ to, end }));
    return { bytes: (isQuick ? quick : body).length, sha256: '0'.repeat(64) };
  };
  return { begun, fetchFile };
};

const described = { name: 'file', clientId: null, folder: null, altText: null };

/** What is no media is done with once it is here. */
const nothing = Buffer.from('nothing that a network takes');

suite('slots of files', { drawn: true, costs: 16 }, (t) => {
  const of = (customer: string) => ({ workspaceId: customer });
  const wanted = (...customers: readonly string[]) => customers.map((customer, n) => ({ customer, n }));
  const chosen = (slots: Slots, ...customers: readonly string[]) =>
    pickFairly(wanted(...customers), { slots, takerOf: ({ customer }) => of(customer) }).map(
      ({ customer, n }) => `${customer}${n}`,
    );

  t('go to the workspaces with the fewest, at most a share to each', () => {
    const slots = new Slots(5, atMost(3));
    assert.deepEqual(chosen(slots, 'a', 'a', 'a', 'a', 'b', 'c'), ['a0', 'b4', 'c5', 'a1', 'a2']);
    slots.take(of('a'));
    slots.take(of('a'));
    assert.deepEqual(chosen(slots, 'a', 'a', 'b'), ['b2', 'a0']);
    slots.take(of('a'));
    assert.deepEqual([slots.admits(of('a'), true), slots.admits(of('b'), true), slots.free], [false, true, 2]);
    assert.deepEqual(chosen(slots, 'a', 'b', 'b', 'b'), ['b1', 'b2']);
    slots.give(of('a'));
    slots.take(of('b'));
    slots.take(of('b'));
    slots.take(of('b'));
    assert.deepEqual([slots.admits(of('a'), true), slots.taken], [false, 5]);
    assert.deepEqual(chosen(slots, 'a'), []);
  });

  t('of videos leave one to other workspaces as soon as there are two', () => {
    for (const [concurrency, each, all] of [
      [1, 1, 1],
      [3, 1, 1],
      [4, 1, 2],
      [8, 5, 6],
    ] as const) {
      const slots = videoSlots(concurrency);
      const own = videoSlotOf(slots, 'a');
      for (let n = 0; n < each; n += 1) own.enter();
      assert.throws(() => own.enter(), NoRoom);
      for (let n = each; n < all; n += 1) videoSlotOf(slots, 'b').enter();
      assert.throws(() => videoSlotOf(slots, 'c').enter(), NoRoom);
      own.leave();
      videoSlotOf(slots, 'c').enter();
    }
  });
});

suite('slots of a media worker', { timeoutMs: 180_000 }, (t) => {
  let world: MediaWorld;
  let photo: Buffer;
  t.before(async () => {
    world = await MediaWorld.open();
    photo = await sharp({ create: { width: 320, height: 320, channels: 3, background: '#a31' } })
      .jpeg()
      .toBuffer();
  });
  t.after(() => {
    over.abort();
    return world.close();
  });
  const transcoderOf = () =>
    openTranscoder({
      ffmpegPath: process.env.FFMPEG_PATH ?? null,
      workDir: world.posts.folder,
      warn: () => undefined,
    });
  /** Uploads that are looked at until they are let go. */
  const slowUploads = () => {
    const begun: Slow[] = [];
    const ids = new Set<string>();
    const tools = transcoderOf();
    const sniff: typeof tools.sniff = async (file) => {
      if ([...ids].some((id) => file.includes(id))) await lasting((end) => begun.push({ to: file, end }));
      return tools.sniff(file);
    };
    const upload = async (workspaceId: string = world.posts.workspaceId): Promise<string> => {
      const { id } = await world.offer(photo, { contentType: 'image/jpeg', workspaceId });
      ids.add(id);
      await world.command(id, { type: 'Register', ...described, platforms: ['x'] }, workspaceId);
      return id;
    };
    return { begun, upload, transcoder: { ...tools, sniff } };
  };
  /** A photo, of somebody else unless said, comes to its end meanwhile. */
  const served = async (workspaceId: string = randomUUID()): Promise<void> => {
    const upload = { contentType: 'image/jpeg', platforms: ['x'] as const, workspaceId };
    await world.settled(await world.upload(photo, upload), 'transcoded');
  };
  const attempts = async (id: string) => (await world.job(id))?.attempts;

  t('one workspace never gets the last slot, and a full worker is ready', async () => {
    const { begun, upload, transcoder } = slowUploads();
    const readiness = new Readiness();
    const pollMs = 20;
    const running = await world.start({ config: config(2), transcoder, readiness, pollMs });
    const mine = [await upload(), await upload()];
    await until('one is under way', () => begun.length === 1);
    await served();
    assert.equal(begun.length, 1);
    mine.push(await upload(randomUUID()));
    await until('it is full', () => begun.length === 2);
    const fullSince = performance.now();
    await until('longer than one may not have looked', () => performance.now() - fullSince > 12 * pollMs);
    assert.deepEqual(
      (await readiness.ask()).filter(({ ok }) => !ok),
      [],
    );
    for (const one of begun) one.end();
    await until('the third', () => begun.length === 3);
    begun[2]?.end();
    for (const id of mine) await world.settled(id, 'transcoded');
    await running.stop();
  });

  const liveWithTwin = async (): Promise<{ readonly live: string; readonly twin: string }> => {
    const [live, twin] = [randomUUID(), randomUUID()];
    const names = { name: 'Agency', timezone: 'UTC' };
    const context = { ...world.posts.context(), workspaceId: twin };
    await execute(world.posts.store, workspace, twin, { type: 'CreateTwin', ...names, twinOf: live }, context);
    return { live, twin };
  };

  t('slow downloads delay neither other work nor downloads of other workspaces', async () => {
    const { begun, fetchFile } = slowly(nothing, photo);
    const running = await world.start({ config: config(2), fetchFile });
    const { live, twin } = await liveWithTwin();
    const ids: string[] = [];
    const begin = async (workspaceId: string) =>
      ids.push(await world.import(`https://a.test/${ids.length}`, ['x'], workspaceId));
    for (let n = 0; n < 6; n += 1) await begin(live);
    await until('a workspace has its share', () => begun.length === 4);
    // The sandbox twin has no share of its own.
    for (let n = 0; n < 6; n += 1) await begin(twin);
    await served(twin);
    assert.equal(begun.length, 4);
    const other = randomUUID();
    await world.settled(await world.import('https://b.test/quick', ['x'], other), 'transcoded');
    for (let n = 0; n < 6; n += 1) await begin(other);
    await until('the other has its share', () => begun.length === 8);
    for (let ended = 0; ended < ids.length; ended += 1) {
      await until('the next', () => begun[ended] !== undefined);
      begun[ended]?.end();
    }
    for (const id of ids) await world.settled(id, 'failed');
    assert.equal(begun.length, ids.length);
    await running.stop();
  });

  t('a workspace that only a newer release can read delays no job', async () => {
    const { twin } = await liveWithTwin();
    const stream = `workspace-${twin}`;
    const [created] = await world.posts.eventStore.read(stream);
    if (created === undefined) throw new Error('there is no such workspace');
    const { data, metadata, revision } = created;
    const { partitionKey } = JSON.parse(Buffer.from(metadata).toString());
    const event = { id: randomUUID(), type: 'WorkspaceMoved', data, metadata, partitionKey };
    await world.posts.eventStore.append(stream, revision, [event]);
    const running = await world.start();
    await served(twin);
    await served();
    await running.stop();
  });

  t('the full address is available for each try, and destroyed after the download', async () => {
    const asked: string[] = [];
    const fetchFile: FetchFile = async (url, { to }) => {
      asked.push(url);
      if (url.includes('again') && asked.length === 1) throw new DownloadError('import_unreachable', true);
      await writeFile(to, nothing);
      return { bytes: nothing.length, sha256: '0'.repeat(64) };
    };
    const { pool } = world.posts;
    const addresses = async (id: string) =>
      (await pool.query('select from ops.media_imports where asset_id = $1', [id])).rowCount;
    const originOf = async (id: string) => (await world.settled(id, 'failed')).origin;
    const url = 'https://a.test/again.jpg?signature=canary';
    const id = await world.import(url, ['x']);
    const orphan = randomUUID();
    await importUrlsOf(pool).keep(randomUUID(), orphan, url);
    await pool.query("update ops.media_imports set noted_at = now() - interval '61 minutes'");
    const deps = { store: world.posts.store, importUrls: importUrlsOf(pool) };
    assert.equal(await clearImports(deps, over.signal), 1);
    assert.deepEqual([await addresses(orphan), await addresses(id)], [0, 1]);

    const running = await world.start({ config: config(1), fetchFile });
    const { source, ...origin } = (await originOf(id)) as Extract<Origin, { kind: 'import' }>;
    assert.deepEqual(origin, { kind: 'import', url: 'https://a.test/again.jpg' });
    assert.notEqual(source, null);
    assert.deepEqual(asked, [url, url]);
    assert.equal(await addresses(id), 0);
    // An event that keeps all of it in there.
    const older = randomUUID();
    const whole = 'https://a.test/older.jpg?signature=canary#top';
    await world.command(older, { type: 'RequestImport', url: whole, ...described, platforms: ['x'] });
    assert.deepEqual(await originOf(older), { kind: 'import', url: 'https://a.test/older.jpg', source: null });
    assert.equal(asked[2], whole);
    const lost = randomUUID();
    const about = { ...described, platforms: ['x' as const], source: randomUUID() };
    await world.command(lost, { type: 'RequestImport', url: 'https://a.test/lost', ...about });
    assert.equal((await world.settled(lost, 'failed')).failure?.code, 'import_expired');
    assert.equal(asked.length, 3);
    await running.stop();
  });

  t('a file counts with all its renditions; an import without quota fails and counts nothing', async () => {
    const { begun, fetchFile } = slowly(photo);
    const { pool } = world.posts;
    const usage = new MediaUsage(pool, photo.length * 2);
    const running = await world.start({ config: config(2), fetchFile, usage });
    const owner = randomUUID();
    const counted = async () => (await usage.of(owner)).bytes;
    const upload = { contentType: 'image/jpeg', platforms: ['x', 'instagram'] as const, workspaceId: owner };
    const id = await world.upload(photo, upload);
    const state = await world.settled(id, 'transcoded');
    // A key's own file on the disk is a short record of where its bytes lie.
    const blobs = await Promise.all((await world.keys(id, owner)).map((key) => world.posts.blobs.head(key)));
    const sizes = blobs.map((blob) => blob?.bytes ?? 0);
    assert.ok(sizes.length > 1 || state.poster === null);
    assert.equal(
      await counted(),
      sizes.reduce((sum, size) => sum + size, 0),
    );
    // Two that come at once, and room for one of them at most.
    await usage.setQuota(owner, (await counted()) + photo.length + 10);
    const both = [await world.import('https://a.test/1', [], owner), await world.import('https://a.test/2', [], owner)];
    await until('both are here', () => begun.length === 2);
    for (const one of begun) one.end();
    const ended = async () => Promise.all(both.map(async (one) => (await world.state(one)).status));
    await until('both have ended', async () => !(await ended()).includes('transcoding'));
    assert.deepEqual((await ended()).sort(), ['failed', 'transcoded']);
    const failed = both[(await ended()).indexOf('failed')] ?? '';
    assert.equal((await world.settled(failed, 'failed')).failure?.code, 'import_no_room');
    assert.deepEqual(await world.keys(failed, owner), []);
    await until('it is done with', async () => (await world.job(failed)) === null);
    const { rows } = await pool.query('select sum(bytes)::int as sum from ops.media_usage where customer_id = $1', [
      owner,
    ]);
    assert.equal(rows[0].sum, await counted());
    await running.stop();
  });

  t('downloads are limited in number; waiting for a slot counts as no death', async () => {
    const { begun, fetchFile } = slowly(nothing);
    const downloads = { mediaDownloads: 3, mediaDownloadsPerWorkspace: 2 };
    const running = await world.start({ config: { ...config(1), ...downloads }, fetchFile });
    const ids: string[] = [];
    for (const owner of [randomUUID(), randomUUID()]) {
      for (let n = 0; n < 3; n += 1) ids.push(await world.import(`https://a.test/${n}`, ['x'], owner));
    }
    await until('three', () => begun.length === 3);
    await served();
    assert.equal(begun.length, 3);
    assert.deepEqual(
      await Promise.all(ids.map(attempts)),
      ids.map(() => 0),
    );
    for (let ended = 0; ended < ids.length; ended += 1) {
      await until('the next', () => begun[ended] !== undefined);
      begun[ended]?.end();
    }
    for (const id of ids) await world.settled(id, 'failed');
    await running.stop();
  });

  t('videos leave a slot to other files; a video that waits for a slot counts as no death', async () => {
    const source = path.join(world.posts.folder, 'source.mp4');
    const target = path.join(world.posts.folder, 'source.mkv');
    await writeFile(source, await clip());
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    await promisify(execFile)(ffmpeg, ['-nostdin', '-v', 'error', '-i', source, '-c', 'copy', target]);
    const video = await readFile(target);
    const tools = transcoderOf();
    const renders: { readonly threads: number; readonly end: () => void }[] = [];
    const render: typeof tools.render = async (file, wanted, options) => {
      if (wanted.some(({ spec }) => spec.kind === 'video'))
        await lasting((end) => renders.push({ threads: options.threads, end }));
      return tools.render(file, wanted, options);
    };
    const machine = { count: 12, host: randomUUID() };
    const running = await world.start({ config: config(3), transcoder: { ...tools, render }, machine });
    const upload = async () => world.upload(video, { contentType: 'video/x-matroska', platforms: ['instagram'] });
    const first = await upload();
    await until('the first renders', () => renders.length === 1);
    assert.equal(renders[0]?.threads, 8);
    const second = await upload();
    await until('the second waits', async () => {
      const { rows } = await world.posts.pool.query('select video, attempts from ops.media_jobs where asset_id = $1', [
        second,
      ]);
      return rows[0]?.video === true && rows[0].attempts === 0;
    });
    await served();
    await served(world.posts.workspaceId);
    assert.equal(renders.length, 1);
    renders[0]?.end();
    await world.settled(first, 'transcoded');
    await until('the second renders', () => renders.length === 2);
    renders[1]?.end();
    await world.settled(second, 'transcoded');
    await running.stop();
  });

  t('an image does not wait for cores', async () => {
    const host = randomUUID();
    const sql = `insert into ops.work_leases (kind, id, holder, epoch, until) values ('cores', $1, 'other', 0, now() + interval '1 hour')`;
    await world.posts.pool.query(sql, [`${host}:0`]);
    const running = await world.start({ machine: { count: 1, host } });
    await served();
    await running.stop();
  });

  t('a worker that lost its lease counts as no death and keeps the folder of its successor', async () => {
    const slow = slowUploads();
    const { begun, fetchFile } = slowly(photo);
    const running = await world.start({ config: config(3), fetchFile, transcoder: slow.transcoder });
    const loseLease = (id: string) =>
      world.posts.pool.query("delete from ops.work_leases where kind = 'media' and id = $1", [id]);
    const id = await world.import('https://a.test/4', ['x']);
    await until('it is under way', () => begun.length === 1);
    await loseLease(id);
    await until('it is begun anew', () => begun.length === 2);
    const [first, second] = begun;
    first?.end();
    await until('the first has left', () => !existsSync(path.dirname(first?.to ?? '')));
    assert.ok(existsSync(second?.to ?? ''));
    assert.equal(await attempts(id), 0, 'a download that is lost is held against nobody');
    second?.end();
    await world.settled(id, 'transcoded');
    assert.deepEqual(await world.keys(id), await world.named(id));

    const looked = await slow.upload();
    await until('it is looked at', () => slow.begun.length === 1);
    await loseLease(looked);
    await until('it is looked at anew', () => slow.begun.length === 2);
    assert.equal(await attempts(looked), 2);
    slow.begun[0]?.end();
    await until('the first is taken back', async () => (await attempts(looked)) === 1);
    slow.begun[1]?.end();
    await world.settled(looked, 'transcoded');
    await running.stop();
  });

  t('while other files run, a poison candidate waits to run alone and delays no other', async () => {
    const { begun, upload: slowUpload, transcoder } = slowUploads();
    const running = await world.start({ config: config(3), transcoder });
    const long = await slowUpload();
    await until('it is under way', () => begun.length === 1);
    const suspect = await world.offer(photo, { contentType: 'image/jpeg', workspaceId: randomUUID() });
    const sql = `insert into ops.media_jobs (asset_id, workspace_id, revision, attempts, due_at, tried_at)
      values ($1, $2, 0, 2, 'infinity', $3)`;
    await world.posts.pool.query(sql, [suspect.id, randomUUID(), new Date()]);
    await world.command(suspect.id, { type: 'Register', ...described, platforms: ['x'] });
    const dueNow = 'select 1 from ops.media_jobs where asset_id = $1 and due_at <= now()';
    await until('it is due', async () => (await world.posts.pool.query(dueNow, [suspect.id])).rowCount === 1);
    await served();
    assert.equal((await world.state(suspect.id)).status, 'transcoding');
    assert.equal(await attempts(suspect.id), 2);
    // It has waited long enough: nothing else is begun before it.
    await world.posts.pool.query(
      "update ops.media_jobs set due_at = now() - interval '6 minutes', tried_at = null where asset_id = $1",
      [suspect.id],
    );
    const upload = { contentType: 'image/jpeg', platforms: ['x'] as const, workspaceId: randomUUID() };
    const behind = await world.upload(photo, upload);
    begun[0]?.end();
    await world.settled(suspect.id, 'transcoded');
    await world.settled(behind, 'transcoded');
    await world.settled(long, 'transcoded');
    await running.stop();
  });

  t('a file that a post waits for goes before the other files of its workspace', async () => {
    const { begun, upload: slowUpload, transcoder } = slowUploads();
    const running = await world.start({ config: config(1), transcoder });
    const mine = { contentType: 'image/jpeg', platforms: ['x'] as const };
    const urgent = await world.upload(photo, mine);
    await world.settled(urgent, 'transcoded');
    await slowUpload(randomUUID());
    await until('it is full', () => begun.length === 1);
    const bulk: string[] = [];
    for (let n = 0; n < 5; n += 1) bulk.push(await world.upload(photo, mine));
    await world.need(urgent, { platform: 'instagram', use: 'story' });
    await until('all are heard of', async () => {
      const jobs = await Promise.all([...bulk, urgent].map((id) => world.job(id)));
      return jobs.every((one) => one !== null);
    });
    begun[0]?.end();
    await until('the rendition', async () => {
      const state = await world.state(urgent);
      const met = state.status === 'transcoded' ? state.needs.get('instagram/story')?.status : undefined;
      return met === 'ready' || met === 'fits';
    });
    const done = await Promise.all(bulk.map(async (id) => (await world.state(id)).status === 'transcoded'));
    assert.ok(done.filter(Boolean).length <= 2, `${done.filter(Boolean).length} of the others came first`);
    for (const id of bulk) await world.settled(id, 'transcoded');
    await running.stop();
  });

  t('a job of an asset that is not there is dropped', async () => {
    const id = randomUUID();
    const running = await world.start();
    const sql = 'insert into ops.media_jobs (asset_id, workspace_id, revision) values ($1, $2, 7)';
    await world.posts.pool.query(sql, [id, randomUUID()]);
    await until('it is gone', async () => (await world.job(id)) === null);
    await running.stop();
  });
});

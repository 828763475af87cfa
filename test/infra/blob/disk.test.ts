import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { ask, blobStoreSuite } from '#contracts/ports/blob-store.suite.ts';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { suite } from '#test/support/suite.ts';
import { front } from './front.ts';

const key = () => `v1:${randomBytes(32).toString('base64')}`;

const harness = async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'disk-blobs-'));
  const secrets = new Secrets(key());
  const clock = { now: Date.now };
  let store: DiskBlobs;
  const server = await front(() => store);
  const storeWith = (own: Secrets = secrets) =>
    new DiskBlobs({ root, secrets: own, origin: () => server.origin, clock: () => clock.now() });
  store = storeWith();
  return {
    root,
    clock,
    storeWith,
    use: (next: DiskBlobs) => {
      store = next;
    },
    open: async () => store,
    close: async () => {
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
};

suite('blob store on disk', (t) => blobStoreSuite(t, harness));

suite('files of the disk store', (t) => {
  let world: Awaited<ReturnType<typeof harness>>;
  let store: DiskBlobs;
  t.before(async () => {
    world = await harness();
    store = await world.open();
  });
  t.after(() => world.close());

  const put = (name: string, content: string) =>
    store.put(name, Buffer.from(content), { contentType: 'text/plain', bytes: content.length });
  const newKey = () => `${randomUUID()}/${randomUUID()}/upload`;
  const incoming = () => readdir(path.join(world.root, '.incoming'));
  const beside = (name: string) => readdir(path.join(world.root, path.dirname(name)));

  t('a copy shares the file on disk, and a later write to the source does not change the copy', async () => {
    const [from, to] = [newKey(), newKey()];
    const { etag } = await put(from, 'shared');
    await store.copy(from, to, etag);
    const [one, other] = [await store.localFile(from, ''), await store.localFile(to, '')];
    equal((await stat(one)).ino, (await stat(other)).ino);
    await put(from, 'another');
    equal(await readFile(other, 'utf8'), 'shared');
    equal((await stat(other)).nlink, 1);
  });

  t('overwritten, refused, aborted and deleted files leave nothing on the disk', async () => {
    const name = newKey();
    for (const content of ['one', 'two', 'three']) await put(name, content);
    await Promise.all(['four', 'five', 'six'].map((content) => put(name, content)));
    equal((await beside(name)).length, 2);
    await rejects(store.put(name, Readable.from([Buffer.from('x')]), { contentType: 'a/b', bytes: 2 }), BlobError);
    await rejects(store.put('../no', Buffer.from('x'), { contentType: 'a/b', bytes: 1 }), BlobError);
    deepEqual(await incoming(), []);
    await store.delete(name);
    deepEqual(await beside(name), []);
  });

  t('a process killed while writing leaves the old file; its partial file is deleted after two days', async () => {
    const name = newKey();
    await put(name, 'before');
    const child = fork(path.join(import.meta.dirname, 'disk-writer.ts'), [world.root, key(), name]);
    await once(child, 'message');
    child.kill('SIGKILL');
    await once(child, 'exit');
    equal(await text((await store.get(name)).body), 'before');
    const [left = ''] = await incoming();
    ok(left !== '');
    const opened = world.storeWith();
    await opened.ping();
    deepEqual(await incoming(), [left]);
    const old = Date.now() / 1000 - 3 * 86_400;
    await utimes(path.join(world.root, '.incoming', left), old, old);
    await world.storeWith().ping();
    deepEqual(await incoming(), []);
  });

  t('a key whose bytes are gone does not exist', async () => {
    const name = newKey();
    await put(name, 'x');
    await rm(await store.localFile(name, ''));
    equal(await store.head(name), null);
    await rejects(store.get(name), { code: 'not_found' });
    await put(name, 'again');
    equal(await text((await store.get(name)).body), 'again');
  });

  t('follows no symbolic link out of the folder', async () => {
    const outside = await mkdtemp(path.join(tmpdir(), 'outside-'));
    try {
      await writeFile(path.join(outside, 'upload'), '{"version":"00","contentType":"a/b","bytes":6}');
      await writeFile(path.join(outside, 'upload~00'), 'secret');
      await mkdir(path.join(world.root, 'linked'));
      await symlink(outside, path.join(world.root, 'linked', 'asset'));
      await rejects(store.get('linked/asset/upload'), { code: 'refused' });
      await rejects(put('linked/asset/new', 'x'), { code: 'refused' });
      await rejects(store.delete('linked/asset/upload'), { code: 'refused' });
      deepEqual((await readdir(outside)).sort(), ['upload', 'upload~00']);
      const name = newKey();
      await put(name, 'mine');
      const data = await store.localFile(name, '');
      await rm(data);
      await symlink(path.join(outside, 'upload~00'), data);
      await rejects(store.get(name), { code: 'unavailable' });
    } finally {
      await rm(outside, { recursive: true });
    }
  });

  t('an unusable folder is unavailable, and the error shows no path', async () => {
    const file = path.join(world.root, 'a-file');
    await writeFile(file, '');
    const closed = new DiskBlobs({ root: path.join(file, 'sub'), secrets: new Secrets(key()), origin: () => '' });
    await rejects(closed.ping(), (error: BlobError) => {
      equal(error.code, 'unavailable');
      ok(!error.message.includes(world.root));
      return true;
    });
  });

  t('a signed URL is valid until it expires by the clock of the server, and cannot be altered', async () => {
    const name = newKey();
    await put(name, 'x');
    const url = await store.presignGet(name, { contentType: 'image/png', expiresAt: new Date(Date.now() + 60_000) });
    equal((await ask('GET', url)).status, 200);
    world.clock.now = () => Date.now() + 61_000;
    equal((await ask('GET', url)).status, 403);
    world.clock.now = Date.now;
    const later = url.replace(/expires=(\d+)/, (_, at) => `expires=${Number(at) + 600}`);
    equal((await ask('GET', later)).status, 403);
    equal((await ask('GET', url.replace('v=v1', 'v=v9'))).status, 403);
  });

  t('a signed URL stays valid after a key rotation until its key is removed', async () => {
    const old = key();
    const name = newKey();
    await put(name, 'x');
    const url = await world
      .storeWith(new Secrets(old))
      .presignGet(name, { contentType: 'image/png', expiresAt: new Date(Date.now() + 60_000) });
    const next = `v2:${randomBytes(32).toString('base64')}`;
    world.use(world.storeWith(new Secrets(`${next},${old}`)));
    equal((await ask('GET', url)).status, 200);
    world.use(world.storeWith(new Secrets(next)));
    equal((await ask('GET', url)).status, 403);
    world.use(store);
  });

  t('answers conditional, range and HEAD requests', async () => {
    const name = newKey();
    const { etag } = await store.put(name, Buffer.from('0123456789'), { contentType: 'video/mp4', bytes: 10 });
    const url = await store.presignGet(name, { contentType: 'image/png', expiresAt: new Date(Date.now() + 60_000) });
    const get = (headers: Record<string, string>, method = 'GET') => ask(method, url, { headers });
    const tag = `"${etag}"`;
    equal((await get({})).headers.etag, tag);
    equal((await get({ 'If-None-Match': tag })).status, 304);
    equal((await get({ 'If-None-Match': `"x", W/${tag}` })).status, 304);
    equal((await get({ 'If-None-Match': '"x"' })).status, 200);
    const ranges: readonly (readonly [range: string, status: number, body: string])[] = [
      ['bytes=0-3', 206, '0123'],
      ['bytes=7-', 206, '789'],
      ['bytes=-2', 206, '89'],
      ['bytes=-99', 206, '0123456789'],
      ['bytes=5-99', 206, '56789'],
      ['bytes=10-', 416, ''],
      ['bytes=-0', 416, ''],
      ['bytes=5-3', 200, '0123456789'],
      ['bytes=0-1,4-5', 200, '0123456789'],
      ['lines=1-2', 200, '0123456789'],
    ];
    for (const [range, status, body] of ranges) {
      const answer = await get({ Range: range });
      deepEqual([answer.status, answer.body.toString()], [status, body], range);
    }
    equal((await get({ Range: 'bytes=0-3', 'If-Range': tag })).status, 206);
    equal((await get({ Range: 'bytes=0-3', 'If-Range': '"other"' })).status, 200);
    const head = await get({}, 'HEAD');
    deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '10', 0]);
    match(String(head.headers['content-security-policy']), /default-src 'none'; sandbox/);
    equal(head.headers['x-content-type-options'], 'nosniff');
  });
});

/**
 * The behaviour of every blob store, its presigned URLs over real HTTP included. An adapter's test passes a harness;
 * cases use their own keys, so the store need not be empty.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { BlobError, type BlobErrorCode, type BlobStore } from './blob-store.ts';

export interface Harness {
  /** Its presigned URLs answer on this machine. The harness closes the stores it opened. */
  open(): Promise<BlobStore>;
  close(): Promise<void>;
}

/** The methods of the runner's `t` that the suite uses. */
export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Not `fetch`, which sets the length itself and restricts headers. */
export const ask = (
  method: string,
  url: string,
  { headers = {}, body }: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Buffer } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      buffer(response).then(
        (whole) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole }),
        reject,
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);
const type = 'image/jpeg';

export const blobStoreSuite = (t: Cases, make: () => Promise<Harness>): void => {
  let harness: Harness;
  let store: BlobStore;
  let folder: string;
  const workspace = randomUUID();

  t.before(async () => {
    harness = await make();
    store = await harness.open();
    folder = await mkdtemp(path.join(tmpdir(), 'blobs-'));
  });
  t.after(async () => {
    await harness?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  const newKey = (name = 'upload'): string => `${workspace}/${randomUUID()}/${name}`;
  const put = (key: string, content: string | Buffer, contentType = type) => {
    const bytes = Buffer.from(content);
    return store.put(key, bytes, { contentType, bytes: bytes.length });
  };
  const read = async (key: string, range?: { readonly start: number; readonly end: number }): Promise<string> =>
    text((await store.get(key, range === undefined ? {} : { range })).body);
  const refusedWith = async (code: BlobErrorCode, work: Promise<unknown>): Promise<void> => {
    await assert.rejects(work, (error: unknown) => {
      assert.ok(error instanceof BlobError, String(error));
      assert.equal(error.code, code);
      return true;
    });
  };

  t('returns a stored file with its bytes, type and length', async () => {
    const key = newKey();
    const content = randomBytes(300_000);
    const made = await put(key, content);
    assert.deepEqual([made.key, made.bytes, made.contentType], [key, content.length, type]);
    assert.deepEqual(await store.head(key), made);
    const { info, body } = await store.get(key);
    assert.deepEqual(info, made);
    assert.ok(content.equals(await buffer(body)));
  });

  t('stores bytes, streams and empty files', async () => {
    const key = newKey();
    const pieces = Array.from({ length: 40 }, () => randomBytes(100_000));
    const bytes = 4_000_000;
    const made = await store.put(key, Readable.from(pieces), { contentType: 'video/mp4', bytes });
    assert.equal(made.bytes, bytes);
    assert.ok(Buffer.concat(pieces).equals(await buffer((await store.get(key)).body)));
    const empty = newKey();
    await store.put(empty, Readable.from([]), { contentType: type, bytes: 0 });
    assert.equal((await store.head(empty))?.bytes, 0);
    assert.equal(await read(empty), '');
  });

  t('overwrites, and the etag changes with the content', async () => {
    const key = newKey();
    const first = await put(key, 'first');
    const second = await put(key, 'second!', 'image/png');
    assert.notEqual(first.etag, second.etag);
    assert.deepEqual(await store.head(key), second);
    assert.equal(await read(key), 'second!');
  });

  t('reads ranges', async () => {
    const key = newKey();
    await put(key, '0123456789');
    assert.equal(await read(key, { start: 0, end: 0 }), '0');
    assert.equal(await read(key, { start: 3, end: 5 }), '345');
    const { info, body } = await store.get(key, { range: { start: 8, end: 20 } });
    assert.deepEqual([info.bytes, await text(body)], [10, '89']);
    await refusedWith('refused', store.get(key, { range: { start: 10, end: 12 } }));
  });

  t('answers null or not_found for a missing key, and deletes nothing', async () => {
    const key = newKey();
    assert.equal(await store.head(key), null);
    await refusedWith('not_found', store.get(key));
    await refusedWith('not_found', store.localFile(key, path.join(folder, 'none')));
    await refusedWith('not_found', store.copy(key, newKey(), 'any'));
    await store.delete(key);
  });

  t('deletes', async () => {
    const key = newKey();
    await put(key, 'gone soon');
    await store.delete(key);
    assert.equal(await store.head(key), null);
    await put(key, 'here again');
    assert.equal(await read(key), 'here again');
  });

  t('a body of a wrong length leaves the key as it was', async () => {
    const key = newKey();
    for (const bytes of [4, 6]) {
      await refusedWith('refused', store.put(key, Readable.from([Buffer.from('12345')]), { contentType: type, bytes }));
      await refusedWith('refused', store.put(key, Buffer.from('12345'), { contentType: type, bytes }));
      assert.equal(await store.head(key), null);
    }
    await put(key, 'old');
    await refusedWith('refused', store.put(key, Readable.from([Buffer.from('12')]), { contentType: type, bytes: 5 }));
    assert.equal(await read(key), 'old');
  });

  t('a body that breaks off or is aborted leaves no file', async () => {
    const broken = newKey();
    const source = new Readable({ read() {} });
    source.push(randomBytes(100_000));
    const putting = store.put(broken, source, { contentType: type, bytes: 200_000 });
    source.destroy(new Error('the sender is gone'));
    await assert.rejects(putting, BlobError);
    assert.equal(await store.head(broken), null);

    const given = newKey();
    const endless = new Readable({ read() {} });
    endless.push(randomBytes(100_000));
    const giveUp = new AbortController();
    const waiting = store.put(given, endless, { contentType: type, bytes: 200_000, signal: giveUp.signal });
    giveUp.abort(new Error('no more use for it'));
    await assert.rejects(waiting, /no more use for it/);
    assert.equal(await store.head(given), null);
  });

  t('a reader gets the old file or the new one, never parts of both', async () => {
    const key = newKey();
    const files = Array.from({ length: 8 }, (_, index) => Buffer.alloc(400_000 + index, `${index}`));
    await put(key, files[0] ?? '');
    const writers = Promise.all(files.map((file) => put(key, file)));
    let done = false;
    void writers.finally(() => {
      done = true;
    });
    do {
      const whole = await buffer((await store.get(key)).body);
      assert.ok(files.some((file) => file.equals(whole)));
    } while (!done);
    await writers;
  });

  t('copies only while the source has the etag', async () => {
    const [from, to] = [newKey(), newKey('original')];
    const first = await put(from, 'as it was', 'image/gif');
    const copy = await store.copy(from, to, first.etag);
    assert.deepEqual([copy.key, copy.bytes, copy.contentType], [to, 9, 'image/gif']);
    assert.deepEqual(await store.head(to), copy);
    assert.deepEqual(await store.copy(from, to, first.etag), copy);
    await put(from, 'changed since');
    assert.equal(await read(to), 'as it was');
    await refusedWith('precondition', store.copy(from, to, first.etag));
    assert.equal(await read(to), 'as it was');
    await store.delete(from);
    assert.equal(await read(to), 'as it was');
  });

  t('gives the whole file on this machine', async () => {
    const key = newKey();
    const content = randomBytes(2_000_000);
    await put(key, content);
    const file = await store.localFile(key, path.join(folder, 'local'));
    assert.ok(content.equals(await readFile(file)));
    // Tools that decode the file run as another user where possible; a file that only we may read would keep them as
    // our user.
    assert.equal((await stat(file)).mode & 0o777, 0o644);
    await assert.rejects(store.localFile(key, path.join(folder, 'aborted'), AbortSignal.abort()));
  });

  t('refuses invalid keys', async () => {
    const wrong = [
      '',
      '/a',
      'a/',
      'a//b',
      '../a',
      'a/../b',
      'a/./b',
      '.a/b',
      'a\\b',
      'a b',
      'a\0b',
      'ä',
      'a~b',
      'a?b',
      '%2e%2e/a',
    ];
    for (const key of [...wrong, 'x'.repeat(501)]) {
      await refusedWith('refused', put(key, 'x'));
      await refusedWith('refused', store.head(key));
      await refusedWith('refused', store.presignGet(key, { contentType: type, expiresAt: inAnHour() }));
      await refusedWith('refused', store.presignPut(key, { contentType: type, bytes: 1, expiresAt: inAnHour() }));
    }
  });

  t('a presigned PUT accepts only its key, type and length', async () => {
    const key = newKey();
    const content = Buffer.from('twelve bytes');
    const { url, headers } = await store.presignPut(key, { contentType: type, bytes: 12, expiresAt: inAnHour() });
    const refused = async (what: string, answer: Promise<Answer>): Promise<void> => {
      const { status } = await answer;
      assert.ok(status >= 400 && status < 500, `${what}: ${status}`);
      assert.equal(await store.head(key), null, what);
    };
    await refused('type', ask('PUT', url, { headers: { ...headers, 'Content-Type': 'text/html' }, body: content }));
    await refused('no type', ask('PUT', url, { headers: { 'Content-Length': '12' }, body: content }));
    for (const length of [11, 13]) {
      const body = Buffer.alloc(length, 'x');
      await refused(
        `length ${length}`,
        ask('PUT', url, { headers: { ...headers, 'Content-Length': `${length}` }, body }),
      );
    }
    const chunked = { 'Content-Type': type, 'Transfer-Encoding': 'chunked' };
    await refused('no length', ask('PUT', url, { headers: chunked, body: content }));
    await refused('DELETE', ask('DELETE', url));
    const other = newKey();
    const elsewhere = url.replace(key, other);
    await refused('another key', ask('PUT', elsewhere, { headers, body: content }));
    assert.equal(await store.head(other), null);
    await refused(
      'altered',
      ask(
        'PUT',
        url.replace(/(ignature=)(.)/, (_, a, b) => a + (b === '0' ? '1' : '0')),
        { headers, body: content },
      ),
    );
    await refused('GET', ask('GET', url));

    assert.equal((await ask('PUT', url, { headers, body: content })).status, 200);
    assert.deepEqual(await store.head(key).then((info) => [info?.bytes, info?.contentType]), [12, type]);
    assert.equal(await read(key), 'twelve bytes');
  });

  t('a presigned URL expires', async () => {
    const key = newKey();
    const past = new Date(Date.now() - 5_000);
    const { url, headers } = await store.presignPut(key, { contentType: type, bytes: 1, expiresAt: past });
    const late = await ask('PUT', url, { headers, body: 'x' });
    assert.ok(late.status === 403 || late.status === 400, String(late.status));
    assert.equal(await store.head(key), null);
    await put(key, 'x');
    const { status } = await ask('GET', await store.presignGet(key, { contentType: type, expiresAt: past }));
    assert.ok(status === 403 || status === 400, String(status));
  });

  t('a presigned GET returns the file, or a range of it, with its type', async () => {
    const key = newKey();
    await put(key, '0123456789', 'video/mp4');
    const url = await store.presignGet(key, { contentType: 'video/mp4', expiresAt: inAnHour() });
    const whole = await ask('GET', url);
    assert.deepEqual([whole.status, whole.body.toString()], [200, '0123456789']);
    assert.equal(whole.headers['content-type'], 'video/mp4');
    assert.equal(whole.headers['content-length'], '10');
    const part = await ask('GET', url, { headers: { Range: 'bytes=2-4' } });
    assert.deepEqual([part.status, part.body.toString()], [206, '234']);
    assert.equal(part.headers['content-range'], 'bytes 2-4/10');
    assert.equal((await ask('GET', url, { headers: { Range: 'bytes=20-' } })).status, 416);
    const other = newKey();
    await put(other, 'secret');
    for (const wrong of [url.replace(key, other), `${url}0`, url.split('?')[0] ?? '']) {
      const { status, body } = await ask('GET', wrong);
      assert.ok(status >= 400 && status < 500, String(status));
      assert.ok(!body.toString().includes('secret'));
    }
    const overwrite = await ask('PUT', url, { headers: { 'Content-Type': 'video/mp4' }, body: 'x' });
    assert.ok(overwrite.status >= 400 && overwrite.status < 500);
    assert.equal(await read(key), '0123456789');
  });

  t('an own address is below the prefix that the api serves, and gives that file alone, until it expires', async () => {
    const [key, other] = [newKey(), newKey()];
    await put(key, '0123456789');
    await put(other, 'secret');
    const { served } = store;
    const handle = (address: string, method = 'GET', headers: Readonly<Record<string, string>> = {}) => {
      const { pathname, search } = new URL(address);
      return served.handle({ method, url: pathname + search, headers, body: Readable.from(['x']) });
    };
    const address = await store.presignOwn(key, { expiresAt: inAnHour() });
    assert.ok(new URL(address).pathname.startsWith(served.prefix), address);
    const whole = await handle(address);
    assert.equal(whole.status, 200);
    assert.deepEqual([whole.headers['Content-Type'], whole.headers['Content-Length']], [type, '10']);
    assert.match(whole.headers.ETag ?? '', /^"[^"]+"$/);
    assert.ok(whole.body instanceof Readable, 'it is streamed');
    assert.equal(await text(whole.body), '0123456789');
    const part = await handle(address, 'GET', { range: 'bytes=2-4' });
    assert.ok(part.body instanceof Readable);
    assert.deepEqual([part.status, await text(part.body)], [206, '234']);
    const head = await handle(address, 'HEAD');
    assert.deepEqual([head.status, head.headers['Content-Length'], head.body], [200, '10', null]);
    assert.equal((await handle(address, 'GET', { 'if-none-match': whole.headers.ETag ?? '' })).status, 304);
    const past = await store.presignOwn(key, { expiresAt: new Date(Date.now() - 5_000) });
    const written = { 'content-type': type, 'content-length': '1' };
    for (const wrong of [past, address.replace(key, other), `${address}0`, address.split('?')[0] ?? '']) {
      await assert.rejects(handle(wrong), { code: 'url_invalid' });
    }
    await assert.rejects(handle(address, 'PUT', written), { code: 'url_invalid' });
    await assert.rejects(handle(await store.presignOwn(newKey(), { expiresAt: inAnHour() })), { code: 'not_found' });
    assert.equal(await read(key), '0123456789');
  });

  t('serves pictures, video and PDF inline, and every other type as a download', async () => {
    const shown = ['image/jpeg', 'image/png', 'image/webp', 'image/avif', 'image/gif', 'video/mp4', 'application/pdf'];
    const saved = ['image/svg+xml', 'text/html', 'application/xhtml+xml', 'text/plain', 'application/octet-stream'];
    for (const contentType of [...shown, ...saved]) {
      const key = newKey();
      await put(key, 'x', contentType);
      const kind = shown.includes(contentType) ? 'inline' : 'attachment';
      const plain = await ask('GET', await store.presignGet(key, { contentType, expiresAt: inAnHour() }));
      assert.equal(plain.headers['content-disposition'], kind, contentType);
      const fileName = 'a "b"\r\nX-Evil: 1; é漢.jpg';
      const named = await ask('GET', await store.presignGet(key, { contentType, expiresAt: inAnHour(), fileName }));
      assert.equal(named.status, 200);
      assert.equal(named.headers['x-evil'], undefined);
      const disposition = Buffer.from(String(named.headers['content-disposition']), 'latin1').toString();
      assert.match(
        disposition,
        new RegExp(`^${kind}; filename="[\\x20-\\x21\\x23-\\x7e]+"; filename\\*=UTF-8''[\\w.%-]+$`),
      );
      assert.ok(disposition.includes('%C3%A9%E6%BC%A2.jpg'));
    }
  });

  t('answers a ping', () => store.ping());
};

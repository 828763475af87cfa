/** Presigned URLs of the folder as the api serves them, and what a file costs the process that takes it. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ask } from '#contracts/ports/blob-store.suite.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { type Process, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const soon = () => new Date(Date.now() + 600_000);
const newKey = () => `${randomUUID()}/${randomUUID()}/upload`;

suite('presigned URLs of the api', (t) => {
  let world: World;
  let root: string;
  let blobs: DiskBlobs;
  t.before(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'api-blobs-'));
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    blobs = new DiskBlobs({ root, secrets, origin: () => world.origin() });
    world = await startWorld({ deps: { blobs }, rate: { perMinute: 600, burst: 100 } });
  });
  t.after(async () => {
    await world?.close();
    await rm(root, { recursive: true, force: true });
  });

  const presigned = (key: string, bytes: number, contentType = 'image/png') =>
    blobs.presignPut(key, { contentType, bytes, expiresAt: soon() });
  const logged = () => world.lines.join('');

  t('take a file and give it back, without a token', async () => {
    const content = randomBytes(2_000_000);
    const key = newKey();
    const { url, headers } = await presigned(key, content.length);
    const taken = await ask('PUT', url, { headers, body: content });
    equal(taken.status, 200, taken.body.toString());
    equal(taken.headers.etag, `"${(await blobs.head(key))?.etag}"`);
    ok(taken.headers['x-correlation-id']);
    const get = await blobs.presignGet(key, { contentType: 'image/png', expiresAt: soon(), fileName: 'Café.png' });
    for (let times = 0; times < 5; times += 1) {
      const given = await ask('GET', get);
      equal(given.status, 200);
      ok(given.body.equals(content));
      equal(given.headers['content-type'], 'image/png');
      equal(given.headers['x-content-type-options'], 'nosniff');
      equal(given.headers['content-security-policy'], "default-src 'none'; sandbox");
      equal(given.headers['cache-control'], 'private, max-age=300');
      equal(given.headers['content-disposition'], `inline; filename="Caf_.png"; filename*=UTF-8''Caf%C3%A9.png`);
    }
    const part = await ask('GET', get, { headers: { Range: 'bytes=10-19' } });
    deepEqual([part.status, part.headers['content-length']], [206, '10']);
    ok(part.body.equals(content.subarray(10, 20)));
    const head = await ask('HEAD', get);
    deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '2000000', 0]);
    const beyond = await ask('GET', get, { headers: { Range: 'bytes=9000000-' } });
    deepEqual([beyond.status, beyond.headers['content-range'], beyond.body.length], [416, 'bytes */2000000', 0]);
    const known = await ask('GET', get, { headers: { 'If-None-Match': String(head.headers.etag) } });
    deepEqual([known.status, known.body.length], [304, 0]);
  });

  t('send svg and html as downloads', async () => {
    for (const contentType of ['image/svg+xml', 'text/html']) {
      const key = newKey();
      await blobs.put(key, Buffer.from('<svg/>'), { contentType, bytes: 6 });
      const given = await ask('GET', await blobs.presignGet(key, { contentType: 'image/png', expiresAt: soon() }));
      equal(given.headers['content-disposition'], 'attachment');
    }
  });

  t('refuse in the form of every error, and keep nothing', async () => {
    const key = newKey();
    const { url, headers } = await presigned(key, 4);
    const type = { ...headers, 'Content-Type': 'text/html' };
    const long = { ...headers, 'Content-Length': '5' };
    const cases: readonly (readonly [Parameters<typeof ask>, status: number, code: string])[] = [
      [['PUT', url, { headers: type, body: 'four' }], 400, 'upload_mismatch'],
      [['PUT', url, { headers: long, body: 'fives' }], 400, 'upload_mismatch'],
      [['PUT', `${url}x`, { headers, body: 'four' }], 403, 'upload_url_invalid'],
      [['PUT', url.replace('length=4', 'length=5'), { headers: long, body: 'fives' }], 403, 'upload_url_invalid'],
      [['GET', url], 403, 'upload_url_invalid'],
      [['GET', `${world.origin()}/blobs/..%2Fv1`], 403, 'upload_url_invalid'],
      [['GET', `${world.origin()}/blobs/`], 403, 'upload_url_invalid'],
      [['DELETE', url], 405, 'method_not_allowed'],
      [['GET', await blobs.presignGet(newKey(), { contentType: 'image/png', expiresAt: soon() })], 404, 'not_found'],
    ];
    for (const [asked, status, code] of cases) {
      const answer = await ask(...asked);
      const problem = JSON.parse(answer.body.toString());
      deepEqual([answer.status, problem.code, problem.status], [status, code, status], asked[1]);
      match(String(answer.headers['content-type']), /^application\/problem\+json/);
      equal(problem.correlationId, answer.headers['x-correlation-id']);
    }
    equal(await blobs.head(key), null);
    const given = await ask('PUT', url, { headers, body: 'four' });
    equal(given.status, 200);
    ok(!logged().includes('signature'));
    ok(!logged().includes(new URL(url).searchParams.get('signature') ?? ''));
  });

  t('let pages of any origin use them, and reveal nothing else', async () => {
    const { url, headers } = await presigned(newKey(), 1);
    const origin = { Origin: 'https://studio.example' };
    const preflight = {
      ...origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'content-type',
    };
    const asked = await ask('OPTIONS', url, { headers: preflight });
    equal(asked.status, 204);
    equal(asked.headers['access-control-allow-origin'], '*');
    match(String(asked.headers['access-control-allow-methods']), /\bPUT\b/);
    match(String(asked.headers['access-control-allow-headers']), /content-type/i);
    equal(asked.headers['access-control-allow-credentials'], undefined);
    const put = await ask('PUT', url, { headers: { ...headers, ...origin }, body: 'x' });
    deepEqual([put.status, put.headers['access-control-allow-origin']], [200, '*']);
    const refused = await ask('PUT', `${url}x`, { headers: { ...headers, ...origin }, body: 'x' });
    deepEqual([refused.status, refused.headers['access-control-allow-origin']], [403, '*']);
    const api = await ask('OPTIONS', `${world.origin()}/v1/clients`, { headers: preflight });
    equal(api.headers['access-control-allow-origin'], undefined);
  });

  /** An upload of which a part has come, and is being written. */
  const begun = async (url: string, headers: Readonly<Record<string, string>>) => {
    const { host, port, pathname, search } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}\r\n`);
    socket.write(Buffer.alloc(300_000));
    const incoming = path.join(root, '.incoming');
    await until('some of it is being written', async () => (await readdir(incoming)).length > 0);
    return { socket, incoming };
  };

  t('an upload that breaks off leaves nothing', async () => {
    const key = newKey();
    const { url, headers } = await presigned(key, 1_000_000);
    const { socket, incoming } = await begun(url, headers);
    socket.destroy();
    await until('it is gone', async () => (await readdir(incoming)).length === 0);
    equal(await blobs.head(key), null);
  });

  t('the newer of two uploads to one place wins, and the older one leaves no file', async () => {
    const key = newKey();
    const { url, headers } = await presigned(key, 1_000_000);
    const { socket, incoming } = await begun(url, headers);
    const closed = once(socket.on('error', () => undefined).resume(), 'close');
    const newer = randomBytes(1_000_000);
    equal((await ask('PUT', url, { headers, body: newer })).status, 200);
    await closed;
    await until('the older one is gone', async () => (await readdir(incoming)).length === 0);
    equal((await blobs.head(key))?.bytes, newer.length);
  });

  t('a caller that is refused while it still sends gets the answer', async () => {
    const { url, headers } = await presigned(newKey(), 30_000_000);
    const answer = await ask('PUT', `${url}x`, { headers, body: Buffer.alloc(30_000_000) });
    equal(answer.status, 403);
  });

  t('a content type over 200 characters is 415', async () => {
    const { url, headers } = await presigned(newKey(), 4);
    const hostile = { ...headers, 'Content-Type': `image/png${' '.repeat(14_000)}x` };
    const answer = await ask('PUT', url, { headers: hostile, body: 'four' });
    deepEqual([answer.status, JSON.parse(answer.body.toString()).code], [415, 'unsupported_media_type']);
  });

  t('count against the address, apart from the allowance of credentials', async () => {
    // A window may end in the midst of a round, and let all of it through.
    const limited = await until('one is refused', async () => {
      const answers = await Promise.all(Array.from({ length: 130 }, () => ask('GET', `${world.origin()}/blobs/x`)));
      const refused = answers.filter(({ status }) => status === 429);
      return refused.length === 0 ? null : refused;
    });
    ok(limited.length < 130, `${limited.length} of 130`);
    ok(Number(limited[0]?.headers['retry-after']) >= 1);
    equal((await world.owner.get('/agency')).status, 200);
  });
});

suite('an api that takes a large file', { timeoutMs: 180_000 }, (t) => {
  const megabyte = randomBytes(1 << 20);
  const megabytes = 256;
  let root: string;
  let api: Process;
  let blobs: DiskBlobs;
  t.before(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'api-upload-'));
    const key = `v1:${randomBytes(32).toString('base64')}`;
    const { url } = await testDatabase();
    const env = { DATABASE_URL: url, SECRET_KEY: key, PORT: '0', BLOB_DIR: root };
    api = await start('services/api/main.ts', { env });
    blobs = new DiskBlobs({ root, secrets: new Secrets(key), origin: () => api.url('') });
  });
  t.after(async () => {
    await api?.stop();
    await rm(root, { recursive: true, force: true });
  });

  /** Kilobytes of memory, the highest since it was last forgotten. */
  const memory = async (what: 'VmRSS' | 'VmHWM'): Promise<number> =>
    Number(new RegExp(`${what}:\\s+(\\d+)`).exec(await readFile(`/proc/${api.pid}/status`, 'utf8'))?.[1]);

  const send = async (url: string, headers: Readonly<Record<string, string>>): Promise<number> => {
    const sent = request(url, { method: 'PUT', headers });
    const answered = once(sent, 'response');
    await pipeline(Readable.from(Array.from({ length: megabytes }, () => megabyte)), sent);
    const [response] = await answered;
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  };

  t('keeps its memory flat', async () => {
    const bytes = megabytes << 20;
    const key = newKey();
    const { url, headers } = await blobs.presignPut(key, { contentType: 'video/mp4', bytes, expiresAt: soon() });
    const before = await memory('VmRSS');
    equal(await send(url, headers), 200);
    const grown = ((await memory('VmHWM')) - before) / 1024;
    ok(grown < 64, `taking it made it grow by ${Math.round(grown)} MB`);
    const hash = createHash('sha256');
    const get = await fetch(await blobs.presignGet(key, { contentType: 'image/png', expiresAt: soon() }));
    for await (const chunk of get.body ?? []) hash.update(chunk);
    const expected = createHash('sha256');
    for (let times = 0; times < megabytes; times += 1) expected.update(megabyte);
    equal(hash.digest('hex'), expected.digest('hex'));
    const given = ((await memory('VmHWM')) - before) / 1024;
    ok(given < 128, `giving it made it grow to ${Math.round(given)} MB more`);
  });
});

/** Sessions that take a file in parts by `Content-Range`, up to the last part, which is the network's boundary call. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import {
  partBytesOf,
  partOf,
  rangeIn,
  resumable,
  startOfLast,
  type UploadSession,
  whereIs,
} from '#infra/platforms/kit/resumable.ts';
import { isUploadFailed, upload } from '#infra/platforms/kit/upload.ts';
import type { Members } from '#infra/platforms/shared/members.ts';
import { suite } from '#test/support/suite.ts';
import { type KitWorld, kitWorld, requestOf, videoOf, within } from './world.ts';

type Own = UploadSession & { readonly made: string };

const mb = 1_024 * 1_024;
const bytes = 17 * mb;
const part = 8 * mb;
const begin = { method: 'POST', path: '/videos' } as const;
const whole = { status: 308, headers: { range: `bytes=0-${2 * part - 1}` } };

suite('sessions of the kit that go on', (t) => {
  let world: KitWorld;
  let file = '';
  let request: PublishRequest;
  const folder = mkdtempSync(path.join(tmpdir(), 'resumable-'));
  const madeOf = (session: UploadSession, body: Members | null): Own => ({ ...session, made: String(body?.id ?? '') });
  /** One attempt, which has the checkpoints of those before it. */
  const attempt = async () => {
    const steps = new RecordedSteps(request, 60_000);
    const [media] = request.media;
    ok(media !== undefined);
    const work = { bound: world.bound, request, steps };
    const result = await upload<Own>(work, media, resumable(work, media, begin, madeOf));
    request = { ...request, attempt: request.attempt + 1, checkpoints: steps.checkpoints };
    return { result, steps };
  };
  const sent = () =>
    world.received.filter(({ method }) => method === 'PUT').map(({ headers }) => headers['content-range'] ?? '');
  const session = () => `${world.origin}/api/session`;

  t.before.each(async () => {
    world = await kitWorld();
    file = path.join(folder, 'video');
    writeFileSync(file, '');
    truncateSync(file, bytes);
    request = requestOf(await world.account(), { media: [videoOf(bytes, file)] });
    world.on('POST /api/videos', { headers: { location: session() } });
  });
  t.after.each(() => world.close());
  t.after(() => rmSync(folder, { recursive: true, force: true }));

  t('parts are of one size, at most some more than 64, and the last is between a byte and a MB', () => {
    for (const size of [1, 256 * 1_024, mb, mb + 1, part, part + 1, bytes, 600 * mb, 2_048 * mb + 1, 262_144 * mb]) {
      const each = partBytesOf(size);
      const last = size - startOfLast(size, each);
      equal(each % (256 * 1_024), 0, `${size}`);
      ok(last >= 1 && last <= mb, `${size}: the last part has ${last}`);
      equal(startOfLast(size, each) % each, 0, `${size}`);
      ok(startOfLast(size, each) / each <= 128, `${size}: ${startOfLast(size, each) / each} parts before the last`);
    }
  });

  t('a call says what it sends: a part, the last one, or nothing, which is a question', async () => {
    const [media] = request.media;
    ok(media !== undefined);
    const headersOf = async (from: number, to: number) =>
      (await partOf(media, { session: session() }, from, to, { moved: () => undefined })).headers ?? {};
    equal((await headersOf(0, part))['content-range'], `bytes 0-${part - 1}/${bytes}`);
    deepEqual(rangeIn(await headersOf(0, part)), { isLast: false });
    deepEqual(rangeIn(await headersOf(2 * part, bytes)), { isLast: true });
    equal(rangeIn({ 'content-range': `bytes */${bytes}` }), null);
    equal(rangeIn({}), null);
  });

  t('all parts but the last are sent, and the session is sealed in what is kept', async () => {
    world.on('PUT /api/session', { status: 308, headers: { range: `bytes=0-${part - 1}` } }, whole);
    const { result, steps } = await attempt();
    ok(!isUploadFailed(result));
    deepEqual([result.session, result.made], [session(), '']);
    deepEqual(sent(), [`bytes 0-${part - 1}/${bytes}`, `bytes ${part}-${2 * part - 1}/${bytes}`]);
    ok(!JSON.stringify(steps.checkpoints).includes('/api/session'));
    equal(world.received.find(({ method }) => method === 'PUT')?.headers['content-length'], String(part));
  });

  t('the next attempt goes on where the session is, which may be less than was sent', async () => {
    world.on('PUT /api/session', { status: 308, headers: { range: `bytes=0-${part - 1}` } }, { status: 503 });
    ok(isUploadFailed((await attempt()).result));
    const before = sent().length;
    // Of the part that arrived it has kept a half.
    world.on('PUT /api/session', { status: 308, headers: { range: `bytes=0-${part / 2 - 1}` } }, whole);
    const { result } = await attempt();
    ok(!isUploadFailed(result), JSON.stringify(result));
    deepEqual(sent().slice(before), [`bytes */${bytes}`, `bytes ${part / 2}-${part / 2 + part - 1}/${bytes}`]);
    equal(world.received.filter(({ method }) => method === 'POST').length, 1, 'one session');
  });

  t('a session that has ended is begun anew, and one that is whole names what it made', async () => {
    world.on('PUT /api/session', { status: 503 });
    ok(isUploadFailed((await attempt()).result));
    world.on('PUT /api/session', { status: 404 });
    const { result: gone } = await attempt();
    ok(isUploadFailed(gone));
    equal(gone.kind, 'deferred');
    world.on('PUT /api/session', { status: 503 });
    ok(isUploadFailed((await attempt()).result));
    equal(world.received.filter(({ method }) => method === 'POST').length, 2, 'another session');
    world.on('PUT /api/session', { status: 200, body: { id: 'v1' } });
    const { result } = await attempt();
    ok(!isUploadFailed(result), JSON.stringify(result));
    equal(result.made, 'v1');
  });

  t('an answer without an address, and a session that takes nothing, are no progress', async () => {
    world.on('POST /api/videos', { headers: {} });
    const { result: nowhere } = await attempt();
    ok(isUploadFailed(nowhere));
    deepEqual([nowhere.kind, sent()], ['deferred', []]);
    world.on('POST /api/videos', { headers: { location: session() } });
    world.on('PUT /api/session', { status: 308 });
    const { result } = await attempt();
    ok(isUploadFailed(result));
    deepEqual([result.kind, sent().length], ['deferred', 1]);
    // A file that is whole with a part that is not the last one is none of this session.
    world.on('PUT /api/session', { status: 308 }, { status: 200, body: { id: 'v2' } });
    ok(isUploadFailed((await attempt()).result));
  });

  t('a session is asked without a byte: where it is, what it made, or that it is gone', async () => {
    const ask = async (reply: Parameters<KitWorld['on']>[1]) => {
      world.on('PUT /api/session', reply);
      const { headers: _, ...found } = (await whereIs(world.bound, request, session(), within())) as Record<
        string,
        unknown
      >;
      return found;
    };
    deepEqual(await ask({ status: 308 }), { kind: 'at', offset: 0 });
    deepEqual(await ask({ status: 308, headers: { range: 'bytes=0-41' } }), { kind: 'at', offset: 42 });
    deepEqual(await ask({ status: 308, headers: { range: 'none' } }), { kind: 'at', offset: 0 });
    deepEqual(await ask({ status: 201, body: { id: 'v1' } }), { kind: 'made', body: { id: 'v1' } });
    for (const status of [404, 410]) deepEqual(await ask({ status }), { kind: 'gone' });
    ok(!['at', 'made', 'gone'].includes(String((await ask({ status: 500 })).kind)));
    equal(world.received.at(-1)?.headers['content-length'] ?? '0', '0');
  });
});

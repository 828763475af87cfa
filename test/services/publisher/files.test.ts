import { deepEqual, notEqual, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { Files } from '#services/publisher/files.ts';
import type { Outgoing } from '#services/publisher/media-readiness.ts';
import { suite } from '#test/support/suite.ts';

/** As where the blobs lie on another machine: each is fetched to where it is wanted. */
class DistantBlobs extends DiskBlobs {
  override async localFile(key: string, to: string, signal?: AbortSignal): Promise<string> {
    await copyFile(await super.localFile(key, to, signal), to);
    return to;
  }
}

suite('files lent for a call', (t) => {
  let folder = '';
  let blobs: DiskBlobs;
  t.before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'lent-'));
    const secrets = new Secrets(`v1:${Buffer.alloc(32, 7).toString('base64')}`);
    blobs = new DistantBlobs({ root: path.join(folder, 'blobs'), secrets, origin: () => 'http://media.invalid' });
  });
  t.after(async () => {
    await blobs.close();
    await rm(folder, { recursive: true, force: true });
  });

  const outgoing = async (use: Outgoing['use'], text: string): Promise<Outgoing> => {
    const mediaId = randomUUID();
    const body = Buffer.from(text);
    const key = `${randomUUID()}/${mediaId}/original`;
    await blobs.put(key, body, { contentType: 'image/jpeg', bytes: body.length });
    const about = { mediaId, kind: 'image', use, altText: null, contentType: 'image/jpeg' } as const;
    return { ...about, key, bytes: body.length, sha256: '', width: 1, height: 1, durationMs: null };
  };
  const contents = (lent: readonly PublishMedia[]) =>
    Promise.all(lent.map(async (one) => readFile(await one.file(), 'utf8')));

  t('each file has its own path, whatever its key ends in, and none remains after the call', async () => {
    const work = path.join(folder, 'work');
    const files = new Files(blobs, work);
    const [one, two, cover] = await Promise.all([
      outgoing('carousel', 'one'),
      outgoing('carousel', 'the other'),
      outgoing('cover', 'the cover'),
    ]);
    const lent = files.lend({ gate: [], media: [one, two], cover }, new AbortController().signal);
    const all = [...lent.media, ...(lent.cover === null ? [] : [lent.cover])];
    deepEqual(await contents(all), ['one', 'the other', 'the cover']);
    notEqual(await all[0]?.file(), await all[1]?.file());
    await lent.close();
    const [own = ''] = await readdir(work);
    deepEqual(await readdir(path.join(work, own)), []);
    await files.close();
    deepEqual(await readdir(work), []);
  });

  t('after a failure the next call creates the folder', async () => {
    const work = path.join(folder, 'occupied');
    await writeFile(work, 'no folder');
    const files = new Files(blobs, work);
    const asked = { gate: [], media: [await outgoing('feed', 'one')], cover: null };
    const { signal } = new AbortController();
    await rejects(contents(files.lend(asked, signal).media), { code: 'EEXIST' });
    await rm(work);
    deepEqual(await contents(files.lend(asked, signal).media), ['one']);
    await files.close();
  });

  t('the bytes of an incomplete file count', async () => {
    const file = await outgoing('feed', 'twelve bytes');
    const half = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const slow = new (class extends DistantBlobs {
      override async localFile(key: string, to: string, signal?: AbortSignal): Promise<string> {
        await writeFile(to, 'twelve');
        asked.resolve();
        await half.promise;
        return super.localFile(key, to, signal);
      }
    })({
      root: path.join(folder, 'blobs'),
      secrets: new Secrets(`v1:${Buffer.alloc(32, 7).toString('base64')}`),
      origin: () => 'http://media.invalid',
    });
    const files = new Files(slow, path.join(folder, 'slow'));
    const lent = files.lend({ gate: [], media: [file], cover: null }, new AbortController().signal);
    deepEqual(await lent.bytes(), 0);
    const fetched = lent.media[0]?.file();
    await asked.promise;
    deepEqual(await lent.bytes(), 6);
    half.resolve();
    await fetched;
    deepEqual(await lent.bytes(), 12);
    await files.close();
    await slow.close();
  });
});

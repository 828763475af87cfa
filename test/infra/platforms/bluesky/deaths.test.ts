/** Workers that die at each moment of a post to the real server, and the worker that comes after them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import type { Checkpoint, PublishMedia } from '#contracts/ports/platform.ts';
import { built } from '#test/support/bundles.ts';
import { clipForAdapter } from '#test/support/clip.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { orMissing } from '#test/support/missing.ts';
import { startBlueskyServices } from '#test/support/networks/bluesky-services.ts';
import { blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { suite } from '#test/support/suite.ts';
import type { Asked } from './publish-child.ts';

/** Where no registry answers, the test is left out, and says so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

/** @returns what the child said last, and whether it was killed there */
const publishing = (asked: Asked): Promise<{ readonly said: string; readonly isKilled: boolean }> =>
  new Promise((resolve, reject) => {
    const program = built(path.join(import.meta.dirname, 'publish-child.ts'));
    execFile(process.execPath, [program, JSON.stringify(asked)], (error, said, complaint) => {
      if (error === null || error.signal === 'SIGKILL') resolve({ said, isKilled: error !== null });
      else reject(new Error(complaint));
    });
  });

/** A file that was in a write may be gone after it, so a later attempt uploads it again. */
const boundaryWasCrossed = (moment: string): boolean => /step boundary|putRecord/.test(moment);

suite('deaths of a post to bluesky', { drawn: true, timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;

  t('wherever its worker dies, the post is on the network once, with its picture', async () => {
    const it = await blueskyWorld(pds);
    const ann = await pds.identity();
    const account = await it.connected(ann);
    const folder = mediaFolder();
    const file = path.join(folder, 'cup.jpg');
    const body = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#803010' } })
      .jpeg()
      .toBuffer();
    writeFileSync(file, body);
    const sha256 = createHash('sha256').update(body).digest('hex');
    const picture: Asked['media'] = {
      ...{ mediaId: randomUUID(), kind: 'image', use: 'feed', contentType: 'image/jpeg', bytes: body.length, sha256 },
      ...{ width: 60, height: 40, durationMs: null, altText: 'A cup' },
    };
    const media: PublishMedia[] = [{ ...picture, file: async () => file, url: async () => '' }];
    const secret = (await it.credentials.read(account.id))?.secret ?? {};
    const moments: string[] = [];
    for (let diesAt = 0; ; diesAt += 1) {
      const request = it.request(account, { content: `Death ${diesAt}` });
      const steps = path.join(folder, `steps-${diesAt}.json`);
      const died = await publishing({ secret, request, media: picture, file, steps, diesAt });
      if (!died.isKilled) {
        assert.equal(died.said, 'ended: published');
        break;
      }
      moments.push(died.said);
      const checkpoints = JSON.parse(readFileSync(steps, 'utf8')) as readonly Checkpoint[];
      const next = { ...request, media, attempt: 2, checkpoints };
      const boundary = checkpoints.findLast(({ step }) => step === 'boundary');
      const seen = boundary === undefined ? { kind: 'absent' } : await it.adapter.reconcile(next, boundary);
      if (seen.kind === 'absent') {
        const { outcome } = await it.publish(next);
        assert.equal(outcome.kind, 'published', `${died.said}: ${JSON.stringify(outcome)}`);
      } else assert.equal(seen.kind, 'present', died.said);
    }
    const posts = await it.postsOf(ann.did);
    const texts = posts.map(({ value }) => String(value.text)).toSorted();
    const expected = [...moments, 'whole'].map((_, at) => `Death ${at}`).toSorted();
    assert.deepEqual(texts, expected, moments.join('; '));
    for (const { value } of posts) assert.equal((value.embed as { images: unknown[] }).images.length, 1);
    for (const part of ['answer to /xrpc/com.atproto.repo.uploadBlob', 'step boundary', 'com.atproto.repo.putRecord'])
      assert.ok(
        moments.some((moment) => moment.includes(part)),
        `${part} in ${moments.join('; ')}`,
      );
  });

  t(
    'wherever the worker of a video dies, the post is on the network once, and no part that arrived goes up again',
    async () => {
      const services = await startBlueskyServices(pds);
      const { parts, origin: videoService } = services;
      const it = await blueskyWorld(pds, { videoService, videoPollMs: 5 });
      const ann = await pds.identity();
      const account = await it.connected(ann);
      const secret = (await it.credentials.read(account.id))?.secret ?? {};
      const clip = await clipForAdapter();
      const { file: lent, url: _, ...described } = clip;
      const whole = readFileSync(await lent());
      parts.partSizeBytes = Math.ceil((whole.length + 16) / 3);
      const folder = mediaFolder();
      const moments: string[] = [];
      for (let diesAt = 0; ; diesAt += 1) {
        // A file of its own for each: the service knows those that it has made ready.
        const body = Buffer.concat([whole, randomBytes(16)]);
        const file = path.join(folder, `clip-${diesAt}.mp4`);
        writeFileSync(file, body);
        const sha256 = createHash('sha256').update(body).digest('hex');
        const media: Asked['media'] = { ...described, bytes: body.length, sha256 };
        const request = it.request(account, { content: `Death ${diesAt}` });
        const steps = path.join(folder, `video-steps-${diesAt}.json`);
        const since = parts.calls.length;
        const died = await publishing({ secret, request, media, file, steps, diesAt, videoService });
        moments.push(died.isKilled ? died.said : 'whole');
        if (!died.isKilled) assert.equal(died.said, 'ended: published');
        else {
          const checkpoints = JSON.parse(readFileSync(steps, 'utf8')) as readonly Checkpoint[];
          const lentAgain = { ...media, file: async () => file, url: async () => '' };
          const next = { ...request, media: [lentAgain], attempt: 2, checkpoints };
          const boundary = checkpoints.findLast(({ step }) => step === 'boundary');
          const seen = boundary === undefined ? { kind: 'absent' } : await it.adapter.reconcile(next, boundary);
          if (seen.kind === 'absent') {
            const { outcome } = await it.publish(next);
            assert.equal(outcome.kind, 'published', `${died.said}: ${JSON.stringify(outcome)}`);
          }
        }
        const sent = parts.calls.slice(since).filter(({ partNumber }) => partNumber !== null);
        assert.deepEqual(
          sent.map(({ partNumber }) => partNumber),
          boundaryWasCrossed(died.said) ? [1, 2, 3, ...sent.slice(3).map(({ partNumber }) => partNumber)] : [1, 2, 3],
          died.said,
        );
        if (!died.isKilled) break;
      }
      const posts = await it.postsOf(ann.did);
      const texts = posts.map(({ value }) => String(value.text)).toSorted();
      assert.deepEqual(texts, moments.map((_moment, at) => `Death ${at}`).toSorted(), moments.join('; '));
      for (const { value } of posts) assert.equal((value.embed as { $type: string }).$type, 'app.bsky.embed.video');
      const phases = [
        'startUpload',
        'step parts',
        'uploadPart',
        'finishUpload',
        'step video',
        'getJobStatus',
        'step record',
      ];
      for (const part of [...phases, 'step boundary', 'com.atproto.repo.putRecord']) {
        assert.ok(
          moments.some((moment) => moment.includes(part)),
          `${part} in ${moments.join('; ')}`,
        );
      }
      services.close();
    },
  );
});

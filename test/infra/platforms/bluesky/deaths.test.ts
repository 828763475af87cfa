/** Workers that die at each moment of a post to the real server, and the worker that comes after them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import type { Checkpoint, PublishMedia } from '#contracts/ports/platform.ts';
import { built } from '#test/support/bundles.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { orMissing } from '#test/support/missing.ts';
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

suite('deaths of a post to bluesky', { timeoutMs: 120_000 }, (t) => {
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
    const picture: Asked['picture'] = {
      ...{ mediaId: randomUUID(), kind: 'image', use: 'feed', contentType: 'image/jpeg', bytes: body.length, sha256 },
      ...{ width: 60, height: 40, durationMs: null, altText: 'A cup' },
    };
    const media: PublishMedia[] = [{ ...picture, file: async () => file, url: async () => '' }];
    const secret = (await it.credentials.read(account.id))?.secret ?? {};
    const moments: string[] = [];
    for (let diesAt = 0; ; diesAt += 1) {
      const request = it.request(account, { content: `Death ${diesAt}` });
      const steps = path.join(folder, `steps-${diesAt}.json`);
      const died = await publishing({ secret, request, picture, file, steps, diesAt });
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
});

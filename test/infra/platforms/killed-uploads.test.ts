/** A large video whose worker is killed: the next one goes on, and none holds more of it than a few pieces. */
import assert from 'node:assert/strict';
import { mostGrownBytes } from '#test/support/networks/killed-upload.ts';
import { type LargeUpload, largeUploads } from '#test/support/networks/killed-uploads.ts';
import { suite } from '#test/support/suite.ts';

/** Of the address that takes a file, which no checkpoint has. */
const secrets: Readonly<Record<string, string>> = { tiktok: 'upload_token', youtube: 'upload_id' };
/** Of `networks.md`: a post that is polled for too long is not published again. */
const failures: Readonly<Record<string, string>> = { tiktok: '19: ' };

suite('killed uploads', { drawn: true, timeoutMs: 240_000 }, (t) => {
  for (const [platform, upload] of Object.entries<LargeUpload>(largeUploads)) {
    const name = `${failures[platform] ?? ''}${upload.says}`;
    t(`${name}: begun once, out once, and a worker costs at most 48 MB of memory`, async () => {
      const { killed, ended, checkpoints, begun, posts, held, againBytes } = await upload.run();
      assert.deepEqual(killed, [null, null]);
      assert.ok(ended !== null, 'the last worker told nothing');
      assert.match(ended.outcome.kind, /^(?:published|accepted)$/, JSON.stringify(ended.outcome));
      assert.deepEqual({ begun, posts, held }, { begun: 1, posts: 1, held: upload.bytes });
      const isWithin = againBytes >= 0 && againBytes <= upload.mostAgainBytes;
      assert.ok(isWithin, `${againBytes} bytes were sent again`);
      assert.ok(ended.grownBytes <= mostGrownBytes, `grew by ${ended.grownBytes} bytes`);
      const secret = secrets[platform];
      if (secret !== undefined) assert.ok(!JSON.stringify(checkpoints).includes(secret));
    });
  }
});

/** A large video whose worker is killed: the next one goes on. */
import assert from 'node:assert/strict';
import { suite } from '#test/support/suite.ts';
import { killedUpload, mostAgainBytes, mostGrownBytes } from './killed-upload.ts';

suite('a killed upload to x', { drawn: true }, (t) => {
  t('of 100 MB costs no second initialize, and a worker at most 48 MB of memory', async () => {
    const { killed, ended, initializes, posts, againBytes } = await killedUpload();
    assert.deepEqual(killed, [null, null]);
    assert.ok(ended !== null);
    assert.equal((ended.outcome as { kind: string }).kind, 'published', JSON.stringify(ended.outcome));
    assert.equal(initializes, 1);
    assert.equal(posts, 1);
    assert.ok(againBytes >= 0 && againBytes <= mostAgainBytes, `${againBytes} bytes were sent again`);
    assert.ok(ended.grownBytes <= mostGrownBytes, `grew by ${ended.grownBytes} bytes`);
  });
});

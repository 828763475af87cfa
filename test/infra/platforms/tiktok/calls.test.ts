/** The exact calls to TikTok, against `calls.txt`, which a reader checks with TikTok's documents beside it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { overrideRules } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';
import { renderedCalls } from './rendered-calls.ts';

suite('calls to tiktok', (t) => {
  t('each setting and each kind of media makes exactly the calls of calls.txt', async () => {
    const written = readFileSync(new URL('calls.txt', import.meta.url), 'utf8');
    assert.equal(await renderedCalls(), written);
    for (const key of Object.keys(overrideRules('tiktok'))) assert.ok(written.includes(`${key}`), key);
  });
});

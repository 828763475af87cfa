/** The exact calls to YouTube, against `calls.txt`, which a reader checks with YouTube's reference beside it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from '#test/support/suite.ts';
import { renderedCalls } from './rendered-calls.ts';

suite('calls to youtube', (t) => {
  t('each setting and each question makes exactly the calls of calls.txt', async () => {
    assert.equal(await renderedCalls(), readFileSync(new URL('calls.txt', import.meta.url), 'utf8'));
  });
});

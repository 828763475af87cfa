/** The exact calls to LinkedIn, against `calls.txt`, which a reader checks with LinkedIn's reference beside it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from '#test/support/suite.ts';
import { renderedCalls } from './rendered-calls.ts';

suite('calls to linkedin', (t) => {
  t('each setting and each kind of media makes exactly the calls of calls.txt', async () => {
    assert.equal(await renderedCalls(), readFileSync(new URL('calls.txt', import.meta.url), 'utf8'));
  });
});

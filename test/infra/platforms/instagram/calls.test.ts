/** The exact calls to Instagram, against `calls.txt`, which a reader checks with Meta's reference beside it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { overrideRules } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';
import { renderedCalls } from './rendered-calls.ts';

suite('calls to instagram', (t) => {
  const written = readFileSync(new URL('calls.txt', import.meta.url), 'utf8');

  t('each setting and each kind of media makes exactly the calls of calls.txt', async () => {
    assert.equal(await renderedCalls(), written);
  });

  t('each setting stands there by its name', () => {
    for (const key of Object.keys(overrideRules('instagram'))) {
      assert.ok(new RegExp(`^${key}\\b`, 'm').test(written), key);
    }
  });
});

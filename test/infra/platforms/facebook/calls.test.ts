/** The exact calls to Facebook, against `calls.txt`, which a reader checks with the reference of the Graph API beside it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { rulesOf } from '#domain/platforms/index.ts';
import { suite } from '#test/support/suite.ts';
import { renderedCalls } from './rendered-calls.ts';

const written = readFileSync(new URL('calls.txt', import.meta.url), 'utf8');

suite('calls to facebook', (t) => {
  t('each setting and each question makes exactly the calls of calls.txt', async () => {
    assert.equal(await renderedCalls(), written);
  });

  t('every setting of our contract stands there by its name', () => {
    for (const key of Object.keys(rulesOf('facebook').overrides)) assert.match(written, new RegExp(`^${key}\\b`, 'm'));
  });
});

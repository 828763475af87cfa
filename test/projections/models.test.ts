import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { projections } from '#projections/index.ts';
import { suite } from '#test/support/suite.ts';

suite('read models', (t) => {
  t('every model has a test file that projects all of its events', () => {
    const texts = globSync('*.test.ts', { cwd: import.meta.dirname }).map((name) =>
      readFileSync(`${import.meta.dirname}/${name}`, 'utf8'),
    );
    const kinds = projections.flatMap((one) => one.models.map((model) => model.kind));
    assert.deepEqual(
      kinds.filter((kind) => !texts.some((text) => text.includes(`everyEventIsProjected(t, '${kind}'`))),
      [],
    );
  });
});

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from '#test/support/suite.ts';
import { mutatedFiles } from './table.ts';

const root = path.resolve(import.meta.dirname, '../..');
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

suite('the table of make mutants', (t) => {
  t('names files and tests that exist', () => {
    const named = mutatedFiles.flatMap(({ file, tests }) => [file, ...tests]);
    assert.deepEqual(
      named.filter((file) => !existsSync(path.join(root, file))),
      [],
    );
  });

  t('names only survivors whose text its file has', () => {
    const stale = mutatedFiles.flatMap(({ file, survivors }) => {
      const text = oneLine(readFileSync(path.join(root, file), 'utf8'));
      return survivors.flatMap(({ from, within = '' }) =>
        text.includes(from) && text.includes(oneLine(within)) ? [] : [`${file}: ${from}`],
      );
    });
    assert.deepEqual(stale, []);
  });
});

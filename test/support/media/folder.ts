/** A folder for the media of a test file, gone with it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from '#test/support/suite.ts';

export const mediaFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'media-test-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

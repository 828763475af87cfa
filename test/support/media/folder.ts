/** A folder for the media of a test file, deleted with it. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from '#test/support/suite.ts';

export const mediaFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'media-test-'));
  // Like a worker's own folder: tools run as another user where the system allows it.
  chmodSync(folder, 0o711);
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

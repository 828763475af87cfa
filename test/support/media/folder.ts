/** A folder for the media of a test file, gone with it. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from '#test/support/suite.ts';

export const mediaFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'media-test-'));
  // As a worker's own: tools run as somebody else, where the system lets us.
  chmodSync(folder, 0o711);
  afterFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

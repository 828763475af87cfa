/** What a run makes once for its files: `TEST_BUNDLES`, and from them, so that they are tried, what prepare-process.ts makes. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { built, bundle } from './bundles.ts';

const { TEST_BUNDLES } = process.env;
if (TEST_BUNDLES !== undefined) await bundle(TEST_BUNDLES);
const program = built(path.join(import.meta.dirname, 'prepare-process.ts'));
await promisify(execFile)(process.execPath, [program]);

/** A media worker alone in a process, to be killed or stopped: `node media-process.ts <database url>`. Says `ready`. */
import path from 'node:path';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { startMedia } from '#services/media/media.ts';
import { openPublishing } from '#test/support/publishing.ts';
import { workerOf } from './world.ts';

const url = process.argv[2] ?? '';
const parts = await openPublishing(url);
const log = await openPostgresLog({ url, store: parts.eventStore });
const draining = new AbortController();
process.on('SIGTERM', () => draining.abort());
// The parent's pipe closes however the parent ends: nothing is left behind.
process.stdin.on('end', () => draining.abort()).resume();
const { deps, folder } = await workerOf(parts, log, path.join(parts.folder, 'work'));
const { done } = startMedia(deps, draining.signal);
process.stdout.write('ready\n');
await done;
await folder.close();
await log.close();
await parts.close();
process.stdin.destroy();

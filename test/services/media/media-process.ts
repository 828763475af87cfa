/** A media worker alone in a process, to be killed or stopped: `node media-process.ts <database url>`. Says `ready`. */
import path from 'node:path';
import { startMedia } from '#services/media/media.ts';
import { workerProcess } from '#test/support/worker-process.ts';
import { workerOf } from './world.ts';

await workerProcess(process.argv[2] ?? '', async (parts, log, signal) => {
  const { deps, folder } = await workerOf(parts, log, path.join(parts.folder, 'work'));
  return { done: startMedia(deps, signal).done, close: () => folder.close() };
});

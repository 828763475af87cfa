/**
 * The folder of a run for all that its files throw away: in memory where there is room. A run makes and removes hundreds of
 * thousands of files, and ext4 looks, for each new one, at every inode that was freed in the last minutes before it takes
 * another: to start and end an api with its database then takes half as much processor time again.
 */
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { serverFolder } from './postgres.ts';

const MEMORY = '/dev/shm';
/** `TMPFS_MAGIC`, statfs(2). */
const TMPFS = 0x01021994;
/** Several times what a run holds at once, 0.7 GiB. */
const ROOM_BYTES = 4 * 2 ** 30;

const inMemory = (): boolean => {
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY);
    return type === TMPFS && bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
};

/** Removed by `drop`, at the latest when this process ends. Below TMPDIR where that is given. */
export const memoryFolder = (): { folder: string; drop: () => Promise<void> } => {
  const { dataDir, drop } = serverFolder(process.env.TMPDIR === undefined && inMemory() ? MEMORY : tmpdir());
  return { folder: dataDir, drop };
};

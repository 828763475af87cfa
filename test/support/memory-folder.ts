/**
 * The folder of a run for all that its files throw away. In memory where there is room: a run makes and removes a million
 * files, and ext4 looks, for each new one, at every inode that was freed in the last minutes before it takes another: a
 * database then takes twice as long as on a quiet disk. What must be on a disk to be tested says so itself.
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

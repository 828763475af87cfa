import { statfs } from 'node:fs/promises';

/**
 * Postgres's write-ahead log grows by files of this size, and Postgres ends when there is no room for the next. Bytes.
 */
const minFreeBytes = 16 * 1024 ** 2;

/** A check of /readyz. @throws when so little is left that writes fail, or are about to */
export const diskRoom = async (folder: string): Promise<null> => {
  const { bavail, bsize } = await statfs(folder);
  const left = bavail * bsize;
  if (left >= minFreeBytes) return null;
  throw new Error(
    `The disk under ${folder} is full, ${Math.floor(left / 1024 ** 2)} MiB are left: delete files or enlarge it.`,
  );
};

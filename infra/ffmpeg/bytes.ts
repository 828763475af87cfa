/** Bounded reads of a file: no more than the requested bytes are in memory. */
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';

export interface Bytes {
  readonly size: number;
  /** Shorter at the end of the file. */
  read(offset: number, length: number): Promise<Buffer>;
}

const bytesOf = async (handle: FileHandle): Promise<Bytes> => {
  const { size } = await handle.stat();
  return {
    size,
    read: async (offset, length) => {
      const wanted = Math.max(0, Math.min(length, size - offset));
      const buffer = Buffer.alloc(wanted);
      let filled = 0;
      while (filled < wanted) {
        const { bytesRead } = await handle.read(buffer, filled, wanted - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return buffer.subarray(0, filled);
    },
  };
};

export const withBytes = async <T>(path: string, look: (bytes: Bytes) => Promise<T>): Promise<T> => {
  const handle = await open(path, 'r');
  try {
    return await look(await bytesOf(handle));
  } finally {
    await handle.close();
  }
};

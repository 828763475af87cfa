/** One live process per data folder: a file with the owner's process id and start time. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { processFacts } from './process-facts.ts';

/**
 * Takes the folder and returns the function that releases it. Throws with the process id of a live holder. Takes over a
 * file whose process is dead, or whose process id now belongs to a later process.
 */
export function claimFolder(folder: string): () => void {
  const file = path.join(folder, 'pg.owner');
  const mine = `${process.pid} ${processFacts(process.pid)?.start ?? ''}\n`;
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      writeFileSync(file, mine, { flag: 'wx' });
      return () => {
        if (read(file) === mine) rmSync(file, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const pid = ownerOf(folder);
    if (pid !== undefined) {
      throw new Error(`The data folder ${folder} is in use by process ${pid}. Stop it, or choose another folder.`);
    }
    rmSync(file, { force: true });
  }
  throw new Error(`The data folder ${folder} is being taken by another process.`);
}

/** Process id of the live holder. */
export function ownerOf(folder: string): number | undefined {
  const [pid = '', ...start] = (read(path.join(folder, 'pg.owner')) ?? '').trim().split(' ');
  const now = processFacts(Number(pid))?.start;
  return now !== undefined && now === start.join(' ') ? Number(pid) : undefined;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';

/**
 * Folder of files under work: one for each process, and in it one for each piece of work. Tools that run as another
 * user may open the files whose names they get, and cannot list the folder: files of other work lie beside them.
 */
export class WorkFolder {
  readonly #own: string;

  private constructor(own: string) {
    this.#own = own;
  }

  /** @param root for this kind of process only. Removes folders that dead processes of this host have left. */
  static async open(root: string): Promise<WorkFolder> {
    await mkdir(root, { recursive: true });
    const host = hostname();
    for (const name of await readdir(root)) {
      const pid = pidOf(name, host);
      if (pid !== null && !isAlive(pid)) await rm(path.join(root, name), { recursive: true, force: true });
    }
    const own = path.join(root, `${host}_${process.pid}_${randomUUID().slice(0, 8)}`);
    await mkdir(own, { mode: passable });
    return new WorkFolder(own);
  }

  async of(name: string): Promise<string> {
    const folder = path.join(this.#own, name);
    await mkdir(folder, { recursive: true, mode: passable });
    return folder;
  }

  async clear(name: string): Promise<void> {
    await rm(path.join(this.#own, name), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    await rm(this.#own, { recursive: true, force: true });
  }
}

const passable = 0o711;

const pidOf = (name: string, host: string): number | null => {
  const [, its, pid] = /^(.+)_(\d+)_[0-9a-f]{8}$/.exec(name) ?? [];
  return its === host ? Number(pid) : null;
};

/** A predecessor had our own process id where ids begin again with each start, as in a container. */
const isAlive = (pid: number): boolean => {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

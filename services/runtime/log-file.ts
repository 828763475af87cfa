import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { threadId } from 'node:worker_threads';

/**
 * The file a log is appended to, by several threads and processes at once. The one that finds it too long renames it to a
 * name of its own in one step; all look before they write whether the file still has its name, and open the new one.
 * Two that rename in the same instant leave a short file more: no line is lost, and none is written twice.
 */

export interface LogLimits {
  /** A file that has so many is put aside. */
  readonly bytes: number;
  /** How many that were put aside are kept. */
  readonly files: number;
}

/** Written by names that sort by time: `standalone.log.20261122T160000123Z-4711-2`. */
const aside = /^\d{8}T\d{9}Z-\d+-\d+$/;
const nameAside = (): string => {
  const now = new Date().toISOString().replaceAll(/[-:.]/g, '');
  return `${now}-${process.pid}-${threadId}`;
};

/** Those that were put aside, oldest first. */
export const logsAside = (file: string): readonly string[] => {
  const { dir, base } = path.parse(path.resolve(file));
  return readdirSync(dir)
    .filter((name) => name.startsWith(`${base}.`) && aside.test(name.slice(base.length + 1)))
    .sort()
    .map((name) => path.join(dir, name));
};

export class LogFile {
  readonly #file: string;
  readonly #limits: LogLimits;
  #open: { readonly fd: number; readonly ino: number; readonly dev: number };
  /** Where it cannot be put aside it goes on, and it is tried again when it is longer by as much. */
  #most: number;

  /** @throws where the file cannot be opened */
  constructor(file: string, limits: LogLimits) {
    mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
    this.#file = file;
    this.#limits = limits;
    this.#most = limits.bytes;
    this.#open = this.#opened();
  }

  /** To write a batch of whole lines to. @throws where there is no room for a new file, or no right to one */
  descriptor(): number {
    const there = statSync(this.#file, { throwIfNoEntry: false });
    const isOurs = there?.ino === this.#open.ino && there.dev === this.#open.dev;
    if (isOurs && (!there.isFile() || there.size < this.#most || !this.#putAside(there.size))) return this.#open.fd;
    const next = this.#opened();
    closeSync(this.#open.fd);
    this.#open = next;
    return next.fd;
  }

  #opened() {
    const fd = openSync(this.#file, 'a');
    const { ino, dev } = fstatSync(fd);
    return { fd, ino, dev };
  }

  /** False: whoever runs us may not rename it. */
  #putAside(size: number): boolean {
    try {
      renameSync(this.#file, `${this.#file}.${nameAside()}`);
    } catch (error) {
      // Another one was faster.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
      this.#most = size + this.#limits.bytes;
      return false;
    }
    this.#most = this.#limits.bytes;
    const all = logsAside(this.#file);
    for (const old of all.slice(0, Math.max(0, all.length - this.#limits.files))) rmSync(old, { force: true });
    return true;
  }
}

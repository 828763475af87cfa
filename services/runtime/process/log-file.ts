import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { threadId } from 'node:worker_threads';

/**
 * The log file of several threads and processes. The writer that finds it too long renames it to a new name in one
 * step; before each write all writers check whether the file still has its name, and otherwise open the new one. Two
 * writers that rename in the same instant leave one more short file: no line is lost, and none is written twice.
 */

export interface LogLimits {
  /** The length at which the file is rotated. */
  readonly bytes: number;
  /** How many rotated files are kept. */
  readonly files: number;
}

/** Names of rotated files; they sort by time: `standalone.log.20261122T160000123Z-4711-2`. */
const aside = /^\d{8}T\d{9}Z-\d+-\d+$/;
/** Of the last name, as milliseconds. A second name of one millisecond would replace the first file. */
let named = 0;
const nameAside = (): string => {
  named = Math.max(Date.now(), named + 1);
  const now = new Date(named).toISOString().replaceAll(/[-:.]/g, '');
  return `${now}-${process.pid}-${threadId}`;
};

/** Paths of the rotated files, oldest first. */
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
  /** The length at which it is rotated. After a failed rename it grows by the limit, and is tried again then. */
  #maxBytes: number;

  /** @throws where the file cannot be opened */
  constructor(file: string, limits: LogLimits) {
    mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
    this.#file = file;
    this.#limits = limits;
    this.#maxBytes = limits.bytes;
    this.#open = this.#opened();
  }

  /** For a batch of whole lines. @throws where there is no room for a new file, or no permission to create one */
  descriptor(): number {
    const there = statSync(this.#file, { throwIfNoEntry: false });
    const isOurs = there?.ino === this.#open.ino && there.dev === this.#open.dev;
    if (isOurs && (!there.isFile() || there.size < this.#maxBytes || !this.#putAside(there.size))) return this.#open.fd;
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

  /** False where it could not be renamed: this process may lack the permission for the folder. */
  #putAside(size: number): boolean {
    try {
      renameSync(this.#file, `${this.#file}.${nameAside()}`);
    } catch (error) {
      // Another writer was faster.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
      this.#maxBytes = size + this.#limits.bytes;
      return false;
    }
    this.#maxBytes = this.#limits.bytes;
    const all = logsAside(this.#file);
    for (const old of all.slice(0, Math.max(0, all.length - this.#limits.files))) rmSync(old, { force: true });
    return true;
  }
}

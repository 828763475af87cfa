/**
 * Files of the disk store. A key is a small record that names the version which holds its bytes:
 *
 *     <root>/<workspace>/<asset>/upload               {"version": "9f…", "contentType": "video/mp4", "bytes": 1048576}
 *     <root>/<workspace>/<asset>/upload~9f…           the bytes; no key contains `~`
 *     <root>/.incoming/…                              files that are being written
 *
 * A rename replaces the record, so a key is the old file or the new one, never half of either. A crash before the
 * rename leaves bytes that no key names: those in `.incoming` are swept, those beside a key are deleted with the key.
 */
import { randomUUID } from 'node:crypto';
import {
  chmod,
  constants,
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import path from 'node:path';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { checkKey } from './keys.ts';

export interface BlobRecord {
  readonly version: string;
  readonly contentType: string;
  readonly bytes: number;
}

/** No write lasts this long: the longest upload is refused well before. */
const SWEEP_AFTER_MS = 2 * 86_400_000;

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

/** A name in a folder survives a crash only once the folder itself is on the disk. */
const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

export class DiskFiles {
  readonly #root: string;
  readonly #incoming: string;
  #ready: Promise<void> | null = null;
  /**
   * Commits of this process, by key: a commit waits for the one before it, so that every replaced version is deleted.
   */
  readonly #lastWrites = new Map<string, Promise<unknown>>();

  constructor(root: string) {
    this.#root = path.resolve(root);
    this.#incoming = path.join(this.#root, '.incoming');
  }

  /** With the first write: makes the folders and sweeps files that a crash left half written. */
  ready(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  async #prepare(): Promise<void> {
    await mkdir(this.#incoming, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#incoming)) {
      const file = path.join(this.#incoming, name);
      const left = await stat(file).catch(() => null);
      if (left !== null && Date.now() - left.mtimeMs > SWEEP_AFTER_MS) await rm(file, { force: true });
    }
  }

  async record(key: string): Promise<BlobRecord | null> {
    try {
      await this.#insist(key);
      return JSON.parse(await readFile(this.#path(key), 'utf8')) as BlobRecord;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  dataPath(key: string, { version }: BlobRecord): string {
    return `${this.#path(key)}~${version}`;
  }

  /**
   * The same file under a path that other users may enter: the store's folders are closed, and the tools that decode it
   * run as another user. Where no link is possible (another disk, another owner) it is the file in its own place, and
   * the tool runs as our user.
   */
  async linkFor(file: string, to: string): Promise<string> {
    try {
      await chmod(file, 0o644);
      await link(file, to);
      return to;
    } catch {
      return file;
    }
  }

  /** An empty file to write to, and its path. */
  async incoming(): Promise<{ readonly file: string; readonly handle: FileHandle }> {
    await this.ready();
    const file = path.join(this.#incoming, randomUUID());
    return { file, handle: await open(file, 'wx', 0o600) };
  }

  /**
   * Gives the key the bytes of a finished file. A crash between the two renames leaves bytes that no key names, and the
   * key as it was: the writer got no answer, and writes again.
   */
  async commit(key: string, file: string, record: BlobRecord): Promise<void> {
    await this.#inOrder(key, async () => {
      await this.#folder(key);
      await rename(file, this.dataPath(key, record));
      await this.#point(key, record);
    });
  }

  /** The same bytes under another key. Where the disk allows it both are one file: no process writes to it again. */
  async share(from: string, to: string, record: BlobRecord): Promise<void> {
    await this.#inOrder(to, async () => {
      await this.#folder(to);
      await this.#linkOrCopy(this.dataPath(from, record), this.dataPath(to, record));
      await this.#point(to, record);
    });
  }

  async remove(key: string): Promise<void> {
    await this.#inOrder(key, async () => {
      try {
        await this.#insist(key);
        await rm(this.#path(key), { force: true });
        const folder = path.dirname(this.#path(key));
        await syncFolder(folder);
        const mine = `${path.basename(key)}~`;
        for (const name of await readdir(folder)) {
          if (name.startsWith(mine)) await rm(path.join(folder, name), { force: true });
        }
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    });
  }

  #path(key: string): string {
    return path.join(this.#root, checkKey(key));
  }

  /** A folder that is a link leads out of the store: the store did not make it. */
  async #insist(key: string): Promise<void> {
    const folder = path.dirname(this.#path(key));
    const [root, real] = [await realpath(this.#root), await realpath(folder)];
    if (path.join(root, path.relative(this.#root, folder)) !== real) {
      throw new BlobError('refused', 'a folder of the store is a symbolic link');
    }
  }

  async #folder(key: string): Promise<void> {
    const folder = path.dirname(this.#path(key));
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    await this.#insist(key);
    if (first === undefined) return;
    for (let made = folder; made.length >= first.length; made = path.dirname(made))
      await syncFolder(path.dirname(made));
  }

  async #point(key: string, record: BlobRecord): Promise<void> {
    const before = await this.record(key);
    const { file, handle } = await this.incoming();
    try {
      await handle.writeFile(JSON.stringify(record));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(file, this.#path(key));
    await syncFolder(path.dirname(this.#path(key)));
    // A present reader has the old file open; a later one finds the new file at its second try.
    if (before !== null && before.version !== record.version) await rm(this.dataPath(key, before), { force: true });
  }

  async #linkOrCopy(from: string, to: string): Promise<void> {
    try {
      await link(from, to);
    } catch (error) {
      const code = codeOf(error);
      // The version exists: the same copy was made before.
      if (code === 'EEXIST') return;
      if (code !== 'EPERM' && code !== 'EMLINK' && code !== 'EXDEV' && code !== 'ENOTSUP' && code !== 'ENOSYS')
        throw error;
      await this.#copy(from, to);
    }
  }

  async #copy(from: string, to: string): Promise<void> {
    const { file, handle } = await this.incoming();
    try {
      const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        await handle.writeFile(source.createReadStream({ autoClose: false, highWaterMark: 1 << 20 }));
      } finally {
        await source.close();
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(file, to);
  }

  async #inOrder<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#lastWrites.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#lastWrites.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#lastWrites.get(key) === mine) this.#lastWrites.delete(key);
    }
  }
}

import { mkdirSync, rmSync } from 'node:fs';
import { unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Files of rows on their way into the engine. They are never synced: an insert without an answer is repeated. */
export class Inserting {
  readonly #folder: string;
  #last = 0;

  /** Files of a process that crashed are useless. @param dir the engine's, which this process has locked */
  constructor(dir: string) {
    this.#folder = path.join(path.resolve(dir), 'inserting');
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
  }

  /** @param work takes the file's path; the file is deleted when it ends */
  async with<T>(rows: Uint8Array, work: (file: string) => Promise<T>): Promise<T> {
    this.#last += 1;
    const file = path.join(this.#folder, String(this.#last));
    try {
      await writeFile(file, rows, { mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
        throw new Error(`Code: 243. DB::Exception: no room for rows: ${error.code}. (NOT_ENOUGH_SPACE)`);
      });
      return await work(file);
    } finally {
      await unlink(file).catch(() => undefined);
    }
  }
}

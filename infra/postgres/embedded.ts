/**
 * Our own Postgres server under a data folder: started, or adopted when a killed predecessor left it running.
 *
 * It lives in its own session with its output in a file, so neither Ctrl-C nor the death of this process reaches it:
 * the drain can still write, and `kill -9` leaves a healthy server that the next start adopts. The file is long because
 * a start can find the folder in many states (new, running, dead, of another user).
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { formerWords, leaveFormerCluster } from './former-clusters.ts';
import { keepUp } from './keep-up.ts';
import { claimFolder } from './owner.ts';
import { limitAnswers } from './pool.ts';
import { childrenOf, processFacts } from './process-facts.ts';
import { give, locate, type ServerFiles } from './server-files.ts';
import { keepServerLogShort, type ServerLogLimits } from './server-log.ts';

/** `cannot_connect_now`: it starts, recovers or ends. */
const notNow = '57P03';

/**
 * Whether a server that refused a connection does nothing to take one soon: it neither starts nor recovers. Postgres 18.4 was
 * seen so: its recovery found the disk full, the recovering process ended, and the server lived on and refused every
 * connection, also after there was room again.
 */
export const isStalled = (pid: number, refusal: unknown): boolean => {
  if ((refusal as { code?: string } | null | undefined)?.code !== notNow) return false;
  const children = childrenOf(pid);
  return children !== null && !children.some(({ command }) => /^postgres: (?:.*: )?startup\b/.test(command));
};

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '400',
  shared_buffers: '128MB',
  work_mem: '16MB',
  maintenance_work_mem: '128MB',
  effective_cache_size: '1GB',
  random_page_cost: '1.1',
  wal_buffers: '16MB',
  min_wal_size: '256MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // Of passwords that an operator sets here; ours is made with fewer (`initialise`).
  scram_iterations: '4096',
};
const FORGETFUL = { fsync: 'off', full_page_writes: 'off', max_wal_size: '512MB' };

/** Of the embedded server. `durable` as of `startEmbedded`. */
const settingsOf = (durable: boolean): Readonly<Record<string, string>> =>
  durable ? SETTINGS : { ...SETTINGS, ...FORGETFUL };

export interface EmbeddedOptions {
  /** Folder of the data: the cluster, its password and its log. Made when missing. */
  readonly dataDir: string;
  /** TCP port on 127.0.0.1; default a free one. */
  readonly port?: number;
  /**
   * False for data that is thrown away: nothing waits for the disk, and a machine that loses power ruins the cluster. It
   * survives the death of its processes. Default true.
   */
  readonly durable?: boolean;
  /** The length at which `pg.log` is rotated, and how many old files are kept. Default 10 MiB, 5. */
  readonly log?: ServerLogLimits;
  /** How often its length is checked, milliseconds. */
  readonly logLookMs?: number;
  /** Called before each step that can take over a second. */
  readonly onProgress?: (step: string) => void;
  /**
   * Called with a line when the server ends by itself, and when it runs again. With it such a server is restarted on
   * the same port; without it the server stays down.
   */
  readonly onTrouble?: (line: string) => void;
}

export interface EmbeddedPostgres {
  /** Connection string of the database `postline`, password included. */
  readonly url: string;
  readonly port: number;
  /** Process id of the postmaster at the start. */
  readonly pid: number;
  readonly dataDir: string;
  /** True when a running server was adopted. */
  readonly adopted: boolean;
  /** Why the server does not run, null while it does. Only with `onTrouble`. */
  trouble(): string | null;
  /** Disconnects all clients and shuts down with a checkpoint. A second call waits for the same end. */
  stop(): Promise<void>;
}

const USER = 'postline';
const DATABASE = 'postline';
/** Milliseconds a start may take, recovery after a crash included. */
const START_MS = 60_000;
/** Milliseconds for each way to stop. */
const STOP_MS = 20_000;
/** An orderly stop; then one without a checkpoint, which costs the next start a recovery, never data. */
const ORDERLY = ['SIGINT', 'SIGQUIT'] as const;
/** For a server that does nothing. */
const AT_ONCE = ['SIGQUIT', 'SIGKILL'] as const;
/** Milliseconds for which a server that was found may refuse connections without recovering. */
const STALLED_MS = 5_000;

/**
 * Starts or adopts the server of `dataDir`; resolves once it answers. Throws where another live process holds the
 * folder, where the optional binaries are missing, and where the server does not start (with the end of its log).
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const progress = options.onProgress ?? (() => {});
  const { durable = true } = options;
  const dataDir = path.resolve(options.dataDir);
  mkdirSync(dataDir, { recursive: true });
  const giveBack = claimFolder(dataDir);
  const log = path.join(dataDir, 'pg.log');
  const forgetLog = keepServerLogShort(log, options.log, options.logLookMs);
  const release = (): void => {
    forgetLog();
    giveBack();
  };
  try {
    const former = await leaveFormerCluster(dataDir, stopServer);
    if (former !== null) progress(formerWords(former));
    const files = {
      ...locate(dataDir),
      settings: settingsOf(durable),
    };
    const password = passwordOf(dataDir, files);
    if (!existsSync(files.cluster)) {
      progress('creating the database cluster (once, a few seconds)');
      initialise(files, password, durable);
    }
    const { pid, port, adopted } = await startUntilReady(log, files, password, options.port, progress);
    await prepare(databaseUrl(dataDir, port, 'postgres'), adopted);

    const start = async (signal: AbortSignal) =>
      (await startUntilReady(log, files, password, port, () => undefined, signal)).pid;
    const keeper =
      options.onTrouble === undefined
        ? null
        : keepUp({
            ...{ pid, start, onTrouble: options.onTrouble },
            isStalled: async (server) => isStalled(server, await refusal(port, password)),
          });
    const end = async (): Promise<void> => {
      await keeper?.stop();
      await stopServer(files.cluster);
      release();
    };
    let stopping: Promise<void> | undefined;
    const stop = () => {
      stopping ??= end();
      return stopping;
    };
    const trouble = () => keeper?.trouble() ?? null;
    return { url: databaseUrl(dataDir, port), port, pid, dataDir, adopted, trouble, stop };
  } catch (error) {
    release();
    throw error;
  }
}

/** Connection string of the folder's server, with its stored password. */
export function databaseUrl(dataDir: string, port: number, database = DATABASE): string {
  const password = readFileSync(path.join(dataDir, 'pg.password'), 'utf8').trim();
  return `postgresql://${USER}:${password}@127.0.0.1:${port}/${database}`;
}

/** Written before the cluster that uses it: a crash in between leaves a password without a cluster, which is reused. */
function passwordOf(dataDir: string, files: ServerFiles): string {
  const file = path.join(dataDir, 'pg.password');
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  if (existsSync(files.cluster)) {
    throw new Error(`${file} is gone but its cluster ${files.cluster} is there: restore the file from a backup.`);
  }
  const password = randomBytes(24).toString('hex');
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${password}\n`, { mode: 0o600, flush: true });
  renameSync(draft, file);
  return password;
}

/**
 * Creates the cluster under a temporary name and renames it: after a crash half-way the next start creates it again.
 *
 * The password is 24 random bytes: nobody guesses it from its stored hash, so one iteration is as safe as thousands, which
 * each new connection would count. Where data is thrown away connections do not even hash it: it crosses the loopback
 * interface alone. `trust` would let any user of the machine run programs as the user of the server.
 */
function initialise(files: ServerFiles, password: string, durable: boolean): void {
  for (const entry of readdirSync(files.home)) {
    if (entry.startsWith('cluster.')) rmSync(path.join(files.home, entry), { recursive: true, force: true });
  }
  const draft = path.join(files.home, `cluster.${randomUUID()}`);
  mkdirSync(draft, { mode: 0o700 });
  give(draft, files.runAs);
  const secret = mkdtempSync(path.join(tmpdir(), 'postline-'));
  try {
    give(secret, files.runAs);
    const passwordFile = path.join(secret, 'password');
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    give(passwordFile, files.runAs);
    const auth = ['--auth', durable ? 'scram-sha-256' : 'password', '--set', 'scram_iterations=1'];
    const args = ['--pgdata', draft, '--username', USER, '--pwfile', passwordFile, ...auth];
    // The builtin locale sorts the same on every system and needs no installed one.
    const locale = ['--encoding', 'UTF8', '--no-locale', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'];
    const made = spawnSync(files.initdb, [...args, ...locale], { ...files.runAs, cwd: '/', encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr.trim()}`);
  } finally {
    rmSync(secret, { recursive: true, force: true });
  }
  renameSync(draft, files.cluster);
}

/**
 * Adopts the running server or spawns one, and waits until it answers. Every state of the folder leads through this
 * loop.
 */
async function startUntilReady(
  log: string,
  files: ServedFiles,
  password: string,
  wanted: number | undefined,
  progress: (step: string) => void,
  signal?: AbortSignal,
): Promise<{ pid: number; port: number; adopted: boolean }> {
  const deadline = performance.now() + START_MS;
  const patience = performance.now() + 2_000;
  let reported = false;
  let spawned: Spawned | undefined;
  let refusedSince: number | undefined;
  let why: unknown;
  while (performance.now() < deadline) {
    // A server that was just spawned has not written `postmaster.pid`, which a stop needs: wait for it.
    if (spawned?.alive !== true) signal?.throwIfAborted();
    if (!reported && performance.now() > patience) {
      reported = true;
      progress('waiting for the database (it may be recovering from a crash)');
    }
    const running = livePostmaster(files.cluster);
    if (running && wanted !== undefined && running.port !== undefined && running.port !== wanted) {
      await shutDown(files.cluster, running.pid);
    } else if (running?.port !== undefined) {
      why = await refusal(running.port, password);
      // 28P01: the password is wrong; waiting does not help.
      if ((why as { code?: string } | undefined)?.code === '28P01') break;
      if (why === undefined) return { pid: running.pid, port: running.port, adopted: running.pid !== spawned?.pid };
      refusedSince = isStalled(running.pid, why) ? (refusedSince ?? performance.now()) : undefined;
      if (refusedSince !== undefined && performance.now() - refusedSince > STALLED_MS) {
        await shutDown(files.cluster, running.pid, AT_ONCE);
        refusedSince = undefined;
      }
    } else if (!running && spawned?.alive !== true) {
      if (spawned && !curable(spawned.said(), wanted)) break;
      if (spawned) await delay(100);
      spawned = launch(files, wanted ?? (await freePort()), log);
    }
    await delay(10);
  }
  throw new Error(`The embedded Postgres in ${files.cluster} did not start. End of ${log}:\n${tail(log)}`, {
    cause: why,
  });
}

/** Some failed starts are worth a retry: the memory of a killed predecessor is still in use, or the port was taken. */
function curable(said: string, wanted: number | undefined): boolean {
  return /still in use/i.test(said) || (wanted === undefined && /Address already in use/i.test(said));
}

type ServedFiles = ServerFiles & { readonly settings: Readonly<Record<string, string>> };

interface Spawned {
  readonly pid: number;
  alive: boolean;
  /** Its log output so far. */
  said(): string;
}

function launch(files: ServedFiles, port: number, log: string): Spawned {
  const stale = path.join(files.cluster, 'postmaster.pid');
  // No server runs this cluster; the stale number may belong to another process now, and the server would refuse to
  // start.
  rmSync(stale, { force: true });
  const from = existsSync(log) ? statSync(log).size : 0;
  const out = openSync(log, 'a', 0o600);
  const settings = Object.entries(files.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
  const args = ['-D', files.cluster, '-p', String(port), ...settings];
  const child = spawn(files.postgres, args, {
    ...files.runAs,
    cwd: '/',
    env,
    detached: true,
    stdio: ['ignore', out, out],
  });
  closeSync(out);
  const spawned = { pid: child.pid ?? -1, alive: true, said: () => readFileSync(log).subarray(from).toString() };
  child.on('exit', () => {
    spawned.alive = false;
  });
  child.on('error', (error) => {
    spawned.alive = false;
    spawned.said = () => error.message;
  });
  child.unref();
  return spawned;
}

/** The postmaster that runs this cluster, by its own pid file; the port is missing until it listens. */
export function livePostmaster(cluster: string): { pid: number; port: number | undefined } | undefined {
  let lines: string[];
  try {
    lines = readFileSync(path.join(cluster, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return undefined;
  }
  const pid = Number(lines[0]);
  // After a reboot another process may have the number: a postmaster names its cluster on its command line.
  if (!processFacts(pid)?.command.includes(cluster)) return undefined;
  return { pid, port: Number(lines[3]) || undefined };
}

/** Why the server does not accept a connection yet, or undefined. */
async function refusal(port: number, password: string): Promise<unknown> {
  const client = connectionTo(`postgresql://${USER}:${password}@127.0.0.1:${port}/postgres`);
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Ends the connections, and so the locks, of a killed predecessor, and makes sure that our database exists. */
async function prepare(url: string, adopted: boolean): Promise<void> {
  const client = connectionTo(url);
  await client.connect();
  try {
    if (adopted) {
      await client.query(
        `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
    }
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}

function connectionTo(url: string): pg.Client {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // The query that needs the connection reports when it breaks.
  client.on('error', () => {});
  limitAnswers(client, START_MS);
  return client;
}

/** By the first of the signals; by the next if that does not end it within `STOP_MS`. */
async function shutDown(cluster: string, pid: number, signals: readonly NodeJS.Signals[] = ORDERLY): Promise<void> {
  const gone = async (limit: number) => {
    const deadline = performance.now() + limit;
    while (performance.now() < deadline) {
      if (processFacts(pid) === undefined) return true;
      await delay(10);
    }
    return false;
  };
  for (const signal of signals) {
    if (!processFacts(pid)?.command.includes(cluster)) return;
    process.kill(pid, signal);
    if (await gone(STOP_MS)) return;
  }
  throw new Error(`The embedded Postgres (process ${pid}) does not stop.`);
}

/** Stops the server of the cluster; does nothing where none runs. */
async function stopServer(cluster: string): Promise<void> {
  const running = livePostmaster(cluster);
  if (running !== undefined) await shutDown(cluster, running.pid);
}

/** A port that was free a moment ago; the caller tries another if it is not any more. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

function tail(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-15).join('\n') : '(no log)';
}

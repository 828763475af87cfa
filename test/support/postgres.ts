/**
 * Real Postgres for tests: one server per run, one database per file. The server is, in this order: `TEST_DATABASE_URL`
 * (set by `test/run.ts` for its files), `DATABASE_URL`, a container, or the embedded server. A server that this file
 * starts ends with the process, however that ends.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbedded } from '#infra/postgres/embedded.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { engineAnswers } from './container-engine.ts';
import { afterFile } from './suite.ts';

export interface TestDatabase {
  readonly url: string;
  /** Ends its connections and drops it. Runs automatically at the end of the file, at the latest. */
  drop(): Promise<void>;
}

/** A private server, to be stopped, killed and started; the URL stays the same. Data survives all three. */
export interface TestServer {
  readonly url: string;
  /** Shuts down with a checkpoint; open connections are ended. */
  stop(): Promise<void>;
  /** Starts after `stop` or `kill9`; resolves once it answers. */
  start(): Promise<void>;
  /** Kills the postmaster with SIGKILL; its children follow at once. */
  kill9(): Promise<void>;
  /** Stops the server and removes its data. Runs automatically at the end of the file, at the latest. */
  drop(): Promise<void>;
}

/** Server of a run: its address and its origin. */
export interface SharedServer {
  readonly url: string;
  readonly source: string;
  stop(): Promise<void>;
}

let shared: Promise<SharedServer> | undefined;

/**
 * A database with the numbered tables of all our processes and no rows of a tenant; where the run has prepared one, a
 * copy of it, which has the generated tables too.
 */
export const preparedDatabase = async (): Promise<TestDatabase> => {
  const prepared = process.env.TEST_PREPARED_DATABASE;
  const database = await testDatabase(prepared);
  if (prepared !== undefined) return database;
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  await migrateSchema(pool);
  await pool.end();
  return database;
};

/** An empty database on the shared server, or a copy of another one there. */
export async function testDatabase(template = 'template1'): Promise<TestDatabase> {
  shared ??= sharedServer().then((server) => {
    afterFile(() => {
      shared = undefined;
      return server.stop();
    });
    return server;
  });
  const server = await shared;
  const name = `test_${randomBytes(8).toString('hex')}`;
  const strategy = process.env.TEST_COPY_STRATEGY ?? 'WAL_LOG';
  await administer(server.url, (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY ${strategy}`),
  );
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  let dropped: Promise<void> | undefined;
  const drop = () => {
    dropped ??= administer(server.url, async (client) => {
      await left(client, name);
      await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    });
    return dropped;
  };
  afterFile(drop);
  return { url: url.href, drop };
}

/** The server for a whole run. The caller stops it; a given server is left running. `durable` as of `startEmbedded`. */
export async function sharedServer({ durable = true } = {}): Promise<SharedServer> {
  for (const name of ['TEST_DATABASE_URL', 'DATABASE_URL']) {
    const url = process.env[name];
    if (url) return { url, source: name, stop: async () => {} };
  }
  if (await engineAnswers()) {
    const { GenericContainer, Wait } = await import('testcontainers');
    const container = await new GenericContainer('postgres:18.6')
      .withEnvironment({ POSTGRES_PASSWORD: 'test' })
      .withCommand(['postgres', '-c', 'max_connections=400'])
      .withExposedPorts(5432)
      // The image starts once to initialise itself, and logs that line, before its final start.
      .withWaitStrategy(Wait.forLogMessage('database system is ready to accept connections', 2))
      .start();
    const url = `postgresql://postgres:test@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
    return { url, source: 'container', stop: async () => void (await container.stop()) };
  }
  const { server, drop } = await temporary({ durable });
  return { url: server.url, source: 'embedded', stop: drop };
}

/** A private embedded server: a test may only kill its own. */
export async function testServer(): Promise<TestServer> {
  const first = await temporary();
  let server: EmbeddedPostgres = first.server;
  afterFile(first.drop);
  const { url, port, dataDir } = server;
  return {
    url,
    stop: () => server.stop(),
    start: async () => {
      await server.stop();
      server = await startEmbedded({ dataDir, port });
    },
    kill9: async () => {
      process.kill(server.pid, 'SIGKILL');
      // The server is dead already: this waits for the process and releases the folder.
      await server.stop();
    },
    drop: first.drop,
  };
}

/** A folder for a server; `drop`, or the end of this process, removes it with any server in it. */
export function dataFolder(): { dataDir: string; drop: () => Promise<void> } {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'postline-test-'));
  // As root the server runs as another user, which must be able to enter.
  chmodSync(dataDir, 0o755);
  const drop = guard(dataDir);
  afterFile(drop);
  return { dataDir, drop };
}

/** An embedded server in a folder of its own. */
async function temporary(
  options: { readonly durable?: boolean } = {},
): Promise<{ server: EmbeddedPostgres; drop: () => Promise<void> }> {
  const { dataDir, drop } = serverFolder();
  try {
    return { server: await startEmbedded({ dataDir, ...options }), drop };
  } catch (error) {
    await drop();
    throw error;
  }
}

/**
 * A new folder for an embedded server. `drop` ends any server that runs in it, and removes it; this also happens at the
 * end of this process.
 */
export function serverFolder(parent = tmpdir()): { dataDir: string; drop: () => Promise<void> } {
  const dataDir = mkdtempSync(path.join(parent, 'postline-test-'));
  // As root the server runs as another user, which must be able to enter.
  chmodSync(dataDir, 0o755);
  return { dataDir, drop: guard(dataDir) };
}

/**
 * Ends the server and removes its folders when our end of a pipe closes, which the system does however we die. It
 * covers every case: a green end, a crash, Ctrl-C, `kill -9`. The data is discarded, so no checkpoint.
 */
function guard(dataDir: string): () => Promise<void> {
  const script = `cat >/dev/null
    home=$(cat "$1/pg.location" 2>/dev/null) || home=$1
    pid=$(head -n 1 "$home/cluster/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
    n=0; while [ -e "$home/cluster/postmaster.pid" ] && kill -0 "$pid" 2>/dev/null && [ $n -lt 200 ]
    do n=$((n+1)); sleep 0.05; done
    rm -rf "$home" "$1"`;
  // Its own session: Ctrl-C is for us alone. Unreferenced: it must not keep us alive.
  const watcher = spawn('/bin/sh', ['-c', script, 'guard', dataDir], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  // A pipe of Node is a socket, whose own reference must be removed too.
  (watcher.stdin as unknown as { unref(): void }).unref();
  let ended: Promise<unknown> | undefined;
  return async () => {
    watcher.ref();
    ended ??= once(watcher, 'exit');
    watcher.stdin.end();
    await ended;
  };
}

/**
 * Waits until the connections to a database are gone, a second at most. `end()` of a pool resolves before the server has
 * read that its clients leave: a server that ends such a connection itself makes it fail with nobody to listen.
 */
async function left(client: pg.ClientBase, name: string): Promise<void> {
  const until = Date.now() + 1_000;
  while (Date.now() < until) {
    const { rows } = await client.query('select 1 from pg_stat_activity where datname = $1 limit 1', [name]);
    if (rows.length === 0) return;
    await sleep(10);
  }
}

/** Connections that make and drop databases, by server: they stay open, and keep no process alive. */
const administrators = new Map<string, pg.Pool>();

export async function administer(url: string, work: (client: pg.ClientBase) => Promise<unknown>): Promise<void> {
  let pool = administrators.get(url);
  if (pool === undefined) {
    pool = new pg.Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true });
    // A server of this file ends with it.
    pool.on('error', () => undefined);
    administrators.set(url, pool);
  }
  const client = await pool.connect();
  let failed = true;
  try {
    await work(client);
    failed = false;
  } finally {
    client.release(failed);
  }
}

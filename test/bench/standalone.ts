/**
 * Standalone in its own process on its own database, with production defaults, and the data of a bench: 2,000 keys (so
 * that no caller meets its rate limit), a client with ten sandbox accounts, and older events.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { capabilities } from '#domain/platforms/index.ts';
import { openAdapters } from '#infra/adapters.ts';
import { groupOf as analyticsGroupOf } from '#projections/analytics/live.ts';
import { groupOf, projections } from '#projections/index.ts';
import { webhooksGroup } from '#projections/webhooks/dispatcher.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { scopes } from '#schemas/apikey.ts';
import { platforms } from '#schemas/common.ts';
import { insightsGroup } from '#services/insights/intake.ts';
import { fillGroup } from '#services/media/fill.ts';
import { mediaGroup } from '#services/media/intake.ts';
import { archivesGroup, outcomesGroup } from '#services/outcomes/outcomes.ts';
import { reportsGroup } from '#services/reports/intake.ts';
import { TourClient } from '#services/standalone/tour-client.ts';
import { createApiKey, createWorkspace, type Operator } from '#services/workflows/provision.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment, familyOf, parentOf } from './environment.ts';

const main = fileURLToPath(new URL('../../services/standalone/main.ts', import.meta.url));
const defaultKeys = 2_000;
const neighbourKeys = 16;
const shownWithinMs = 10_000;

export interface Standalone {
  /** Of the api. */
  readonly port: number;
  readonly pid: number;
  readonly databaseUrl: string;
  readonly secretKey: string;
  readonly dataDir: string;
  readonly pool: pg.Pool;
  /** Test keys of one workspace. */
  readonly keys: readonly string[];
  readonly clientId: string;
  /** A second tenant, where one was asked for. */
  readonly neighbour: { readonly keys: readonly string[]; readonly clientId: string };
  readonly environment: readonly string[];
  /** The next of the keys, round and round. */
  nextKey(): string;
  postgresPids(): Promise<readonly number[]>;
  stop(): Promise<void>;
}

export interface Setup {
  /** Events in the store before anything else. */
  readonly eventsBefore?: number;
  /** Without keys, client and accounts: an idle installation. */
  readonly bare?: boolean;
  /** Keys of the workspace; default 2,000. */
  readonly keys?: number;
  /** A second workspace, with a client of its own. */
  readonly neighbour?: boolean;
  /** The server may be one that does not wait for its disk, as that of the tests: no figure of it is shown. */
  readonly forgetful?: boolean;
  /** Besides the production defaults. */
  readonly env?: Readonly<Record<string, string>>;
}

/** All that read the log. */
const groups = [
  ...projections.map(({ name }) => groupOf(name, 1)),
  analyticsGroupOf(1),
  ...[archivesGroup, fillGroup, insightsGroup, mediaGroup, outcomesGroup, reportsGroup, webhooksGroup],
];

/**
 * Streams of a kind that no log carries: the store's indexes have their depth, and no consumer has to read them, as in
 * an installation whose consumers have long passed them.
 */
const preload = async (pool: pg.Pool, count: number): Promise<void> => {
  if (count === 0) return;
  await pool.query(
    `insert into es.event_rows (position, stream, revision, id, type, data, metadata, topic, partition, partition_key)
     select n, 'request-' || gen_random_uuid(), 0, gen_random_uuid(), 'RequestRefused', $1, $2, null, null, 'key'
     from generate_series(1, $3::int8) n`,
    [Buffer.alloc(400, ' '), Buffer.alloc(400, ' '), count],
  );
  await pool.query(`select setval('es.positions', $1)`, [count]);
  await pool.query('vacuum analyze es.event_rows');
  await pool.query(
    `insert into ops.consumer_positions (consumer_group, lane, next_offset, position) select g, '*', $2, $2 from unnest($1::text[]) g`,
    [groups, count],
  );
  await pool.query('checkpoint');
};

export const inParallel = async (count: number, width: number, work: () => Promise<void>): Promise<void> => {
  let left = count;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (left-- > 0) await work();
    }),
  );
};

const provision = async (
  databaseUrl: string,
  secretKey: string,
  { eventsBefore = 0, bare = false, keys = defaultKeys, neighbour = false }: Setup,
): Promise<{ readonly own: readonly string[]; readonly neighbours: readonly string[] }> => {
  const config = readConfig({ DATABASE_URL: databaseUrl, SECRET_KEY: secretKey });
  const adapters = await openAdapters({ name: 'bench', config, secrets: new Secrets(secretKey) });
  try {
    await preload(adapters.pool, eventsBefore);
    const store = new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), config.partitions);
    const actor = { type: 'admin', id: 'bench' } as const;
    const operator: Operator = { store, pool: adapters.pool, actor, clock: Date.now, positions: new Map() };
    const keysOf = async (name: string, count: number): Promise<readonly string[]> => {
      const owner = await createWorkspace(operator, { name, timezone: 'Europe/Berlin', ownerName: 'Owner' });
      const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
      const made: string[] = [];
      await inParallel(count, 32, async () => {
        const key = { ...owner, name: 'bench', mode: 'test', scopes: [...scopes], expiresAt } as const;
        made.push((await createApiKey(operator, key)).secret);
      });
      return made;
    };
    const own = await keysOf('Bench', bare ? 1 : keys);
    return { own, neighbours: neighbour ? await keysOf('Neighbour', neighbourKeys) : [] };
  } finally {
    await adapters.close();
  }
};

const listening = async (child: ChildProcess): Promise<number> => {
  let said = '';
  const port = Promise.withResolvers<number>();
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
    if (found !== undefined) port.resolve(Number(found));
  });
  child.once('exit', () => port.reject(new Error(`standalone ended:\n${said}`)));
  return port.promise;
};

/** Ten accounts on the networks that take text alone: files have a bench of their own. */
const textNetworks = platforms.filter((platform) => capabilities(platform).textOnly);
const tenAccounts = Array.from({ length: 10 }, (_, at) => ({
  platform: textNetworks[at % textNetworks.length] ?? 'x',
  username: `bench-${Math.floor(at / textNetworks.length)}`,
}));

/** The client and its ten accounts, as a caller makes them. */
const connectAccounts = async (port: number, key: string): Promise<string> => {
  const http = new TourClient(`http://127.0.0.1:${port}/v1`, key, new AbortController().signal);
  const client = await http.post<{ id: string }>('/clients', { name: 'Bench', type: 'brand', defaultPostMode: 'now' });
  const invite = await http.post<{ url: string }>(`/clients/${client.id}/connect-invites`, {
    platforms: textNetworks,
  });
  for (const { platform, username } of tenAccounts) await http.connect(invite.url, { platform, username });
  // A guest connected them, so no token of ours covers them in reads: until they show, a group is empty.
  const isShown = async () => {
    const shown = await http.get<readonly object[]>(`/accounts?clientId=${client.id}`);
    return shown.length === tenAccounts.length;
  };
  for (const until = performance.now() + shownWithinMs; !(await isShown()); await delay(50)) {
    if (performance.now() > until) throw new Error('the accounts are not shown');
  }
  return client.id;
};

export const startStandalone = async (setup: Setup = {}): Promise<Standalone> => {
  const closers: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const server = await sharedServer();
    closers.push(server.stop);
    const name = `bench_${randomBytes(6).toString('hex')}`;
    const admin = new pg.Pool({ connectionString: server.url, max: 1 });
    admin.on('error', () => undefined);
    closers.push(() => admin.end());
    await admin.query(`create database ${name}`);
    closers.push(() => admin.query(`drop database ${name} with (force)`));
    const url = new URL(server.url);
    url.pathname = `/${name}`;
    const databaseUrl = url.href;
    const secretKey = `v1:${randomBytes(32).toString('base64')}`;
    const { own: keys, neighbours } = await provision(databaseUrl, secretKey, setup);
    const dataDir = mkdtempSync(join(tmpdir(), 'bench-standalone-'));
    closers.push(async () => rmSync(dataDir, { recursive: true, force: true }));
    const profile = process.env.BENCH_PROFILE;
    const profiling = profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profile];
    const child = spawn(process.execPath, [...profiling, main, '--port', '0', '--data', dataDir], {
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: databaseUrl,
        SECRET_KEY: secretKey,
        // Its keys stand for callers of many workspaces, so their common allowance is none of the bench.
        RATE_LIMIT_WORKSPACE_KEYS: '10000',
        ...setup.env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    closers.push(async () => {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
      await ended;
      clearTimeout(late);
    });
    const port = await listening(child);
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
    pool.on('error', () => undefined);
    closers.push(() => pool.end());
    const clientId = setup.bare === true ? '' : await connectAccounts(port, keys[0] ?? '');
    const [first] = neighbours;
    const neighbourClient = first === undefined ? '' : await connectAccounts(port, first);
    let at = 0;
    return {
      port,
      pid: child.pid ?? Number.NaN,
      databaseUrl,
      secretKey,
      dataDir,
      pool,
      keys,
      clientId,
      neighbour: { keys: neighbours, clientId: neighbourClient },
      environment: setup.forgetful === true ? [] : await environment(databaseUrl),
      nextKey: () => keys[at++ % keys.length] ?? '',
      postgresPids: async () => {
        const { rows } = await pool.query('select pg_backend_pid() as pid');
        return familyOf(parentOf(rows[0].pid));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};

/** Milliseconds by which the posts read model is behind: the age of the oldest event that it has not applied yet. */
export const lagMs = async (pool: pg.Pool): Promise<number> => {
  const { rows } = await pool.query<{ ms: number }>(
    `select extract(epoch from clock_timestamp() - e.created)::float8 * 1000 as ms from es.events e
     where e.topic = 'posts' and e.position > (
       select coalesce(max(position), 0) from ops.consumer_positions where consumer_group = $1)
     order by e.position limit 1`,
    [groupOf('posts', 1)],
  );
  return rows[0]?.ms ?? 0;
};

export const caughtUp = async (pool: pg.Pool, timeoutMs = 120_000): Promise<void> => {
  for (const until = performance.now() + timeoutMs; (await lagMs(pool)) > 0; await delay(50)) {
    if (performance.now() > until) throw new Error('the posts read model does not catch up');
  }
};

/** Samples the lag ten times a second; `stop` returns the largest value. */
export const watchLag = (pool: pg.Pool): { stop(): Promise<number> } => {
  const over = new AbortController();
  let largest = 0;
  const watching = (async () => {
    while (!over.signal.aborted) {
      largest = Math.max(largest, await lagMs(pool));
      await delay(100, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return {
    stop: async () => {
      over.abort();
      await watching;
      return largest;
    },
  };
};

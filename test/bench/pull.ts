/**
 * The nightly pull: 500,000 accounts of 100,000 workspaces due at once, on all ten networks, each of which takes 200 ms
 * to answer. Accounts asked per second, beside the rate that the slots allow (limit), and beside the same with 20,000
 * accounts due (peer). Streams, rows and leases are real; the network is a timer.
 *
 * Run alone: node test/bench/pull.ts (QUICK=1 for the short form).
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import { account } from '#domain/account.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { processEnv, readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { cadence } from '#services/insights/schedule.ts';
import { InsightsWorker } from '#services/insights/worker.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { openPublishing, PublishingWorld } from '#test/support/publishing.ts';
import { type BenchRow, printRows, spread } from './row.ts';

const answerMs = 200;
const perWorkspace = 5;
const warmMs = 3_000;

type Parts = Awaited<ReturnType<typeof openPublishing>>;

/** A client, whose stream all accounts copy. */
const example = async (url: string): Promise<string> => {
  const world = await PublishingWorld.open(url);
  try {
    return await world.client();
  } finally {
    await world.close();
  }
};

/** Appends under way at once. */
const width = 500;

/** The first event of each account's stream: its personal members are sealed for that stream. */
const connect = async (
  { store }: Parts,
  clientId: string,
  accountId: string,
  workspaceId: string,
  platform: Platform,
) => {
  const id = uuidv7();
  const named = { externalId: accountId, username: accountId, displayName: accountId, avatarUrl: null };
  const more = { scopes: [], expiresAt: null, timezone: null, inviteId: null, network: 'sandbox' } as const;
  const events = account.decide({ type: 'Connect', clientId, platform, ...named, ...more }, account.initial);
  const said = {
    workspaceId,
    actor: { type: 'service', id: 'bench' },
    correlationId: id,
    causationId: id,
    commandId: id,
  } as const;
  await store.append(
    `account-${accountId}`,
    -1,
    events,
    { ...said, now: new Date().toISOString() },
    `account-${accountId}`,
  );
};

const fill = async (parts: Parts, clientId: string, count: number): Promise<void> => {
  const { pool } = parts;
  await pool.query(
    `insert into ops.insights_accounts
       (account_id, workspace_id, client_id, platform, network, timezone, connected, revision, next_at)
     select gen_random_uuid(), md5('w' || n / $1)::uuid, $4, ($3::text[])[1 + (n + n / $1) % 10], 'sandbox', 'UTC', true, 0,
       date_trunc('milliseconds', now() - random() * interval '3 hours') from generate_series(0, $2 - 1) n`,
    [perWorkspace, count, platforms, clientId],
  );
  await pool.query(
    `insert into ops.insights_jobs (id, kind, workspace_id, account_id, due_at)
     select account_id, 'account', workspace_id, account_id, next_at from ops.insights_accounts`,
  );
  await pool.query(
    `insert into ops.insights_zones (id, timezone, revision) select distinct workspace_id, 'UTC', 0 from ops.insights_accounts`,
  );
  const { rows } = await pool.query<{ id: string; workspace: string; platform: Platform }>(
    'select account_id as id, workspace_id as workspace, platform from ops.insights_accounts',
  );
  for (let at = 0; at < rows.length; at += width) {
    const some = rows.slice(at, at + width);
    await Promise.all(some.map(({ id, workspace, platform }) => connect(parts, clientId, id, workspace, platform)));
  }
  await pool.query('vacuum analyze');
};

interface Rate {
  readonly perSecond: number;
  /** Processor time of ours alone, milliseconds. */
  readonly cpuMs: number;
}

/** Accounts asked per second, with so many slots. */
const rate = async ({ store, pool, codec, eventStore }: Parts, places: number, ms: number): Promise<Rate> => {
  let answered = 0;
  const source: InsightsSource = {
    insightsVersion: 'bench/1',
    minIntervalMs: 0,
    maxAheadMs: null,
    async *fetchPostInsights() {
      // No client has a published post.
    },
    fetchAccountInsights: async (platform) => {
      await delay(answerMs);
      answered += 1;
      const raw = platform === 'x' ? { data: { public_metrics: { followers_count: 7 } } } : {};
      return { kind: 'reported', raw, observedAt: new Date().toISOString(), figuresOf: null };
    },
  };
  const stop = new AbortController();
  const config = { ...readConfig(processEnv()), insightsConcurrency: places };
  const worker = new InsightsWorker(
    // It reads no log: its tables hold the due rows.
    {
      store,
      pool,
      codec,
      eventStore,
      config,
      log: undefined as never,
      logger: createLogger('bench', 'warn'),
      sourceOf: () => source,
    },
    cadence,
    stop.signal,
  );
  const running = worker.run();
  await delay(warmMs);
  const [before, begun, cpu] = [answered, performance.now(), process.cpuUsage()];
  await delay(ms);
  const perSecond = (answered - before) / ((performance.now() - begun) / 1_000);
  const { user, system } = process.cpuUsage(cpu);
  const cpuMs = (user + system) / 1_000 / Math.max(1, answered - before);
  stop.abort();
  await running;
  return { perSecond, cpuMs };
};

const rateOf = ({ perSecond }: Rate): number => perSecond;

/** A database of its own with so many accounts, all due. */
const opened = async (server: { readonly url: string }, admin: pg.Client, accounts: number) => {
  const name = `bench_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${name}`);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const clientId = await example(url.href);
  const parts = await openPublishing(url.href);
  await fill(parts, clientId, accounts);
  const close = async () => {
    await parts.close();
    await admin.query(`drop database if exists ${name} with (force)`);
  };
  return { parts, close };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const server = await sharedServer();
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  const closing: (() => Promise<void>)[] = [];
  try {
    const accounts = quick ? 20_000 : 500_000;
    const fewer = quick ? 2_000 : 20_000;
    const [full, few] = [await opened(server, admin, accounts), await opened(server, admin, fewer)];
    closing.push(full.close, few.close);
    const [rounds, ms] = quick ? [1, 5_000] : [5, 12_000];
    const rows: BenchRow[] = [];
    for (const places of [8, 32]) {
      const [ours, quiet]: [Rate[], Rate[]] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        quiet.push(await rate(few.parts, places, ms));
        ours.push(await rate(full.parts, places, ms));
      }
      const [{ median, min, max }, cpu] = [spread(ours.map(rateOf)), spread(ours.map(({ cpuMs }) => cpuMs))];
      const limit = places / (answerMs / 1_000);
      rows.push({
        name: `accounts asked, ${accounts.toLocaleString('en')} due, ${places} places`,
        unit: '1/s',
        ours: median,
        limit,
        peer: spread(quiet.map(rateOf)).median,
        // With more slots than the default the processors of this machine are the limit.
        goal: places === 8 ? '≥ 0.8 × limit' : 'shown',
        ok: places !== 8 || median >= 0.8 * limit,
        note: `min ${min.toFixed(1)}, max ${max.toFixed(1)} of ${rounds}; ${accounts / perWorkspace} workspaces, ten networks of ${answerMs} ms; ${cpu.median.toFixed(1)} ms of our processor time each; peer: ${fewer.toLocaleString('en')} due`,
      });
    }
    return rows;
  } finally {
    for (const close of closing) await close();
    await admin.end();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

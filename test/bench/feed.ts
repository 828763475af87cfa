/**
 * The feed of a workspace: events numbered a second, read as lines over HTTP as stored and as the domain knows them, exported
 * and verified, beside a read of the same events that discards them (limit); and a proof among 100,000,000 leaves, of which
 * only those that the proof reads are made; and POST /posts with the numbering beside it and without (limit). Run alone: `node test/bench/feed.ts`.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Pool } from 'pg';
import { inclusionProof } from '#domain/tree.ts';
import { numberEvents } from '#projections/feed/number.ts';
import { subtreesOf } from '#projections/feed/tree.ts';
import { writeExport } from '#services/admin/audit.ts';
import { composer } from '#test/support/composing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { postBody } from '#test/support/samples.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';

const perStream = 50;
const quiet = { info: () => undefined, warn: () => undefined };

const fill = async ({ eventStore, workspaceId, memberId }: World, events: number): Promise<void> => {
  const clientId = randomUUID();
  const metadata = Buffer.from(
    JSON.stringify({
      ...{ workspaceId, partitionKey: 'bench', actor: { type: 'member', id: memberId }, commandId: randomUUID() },
      ...{ $correlationId: randomUUID(), $causationId: randomUUID(), occurredAt: '2026-01-31T08:00:00.000Z' },
      schemaVersion: 1,
    }),
  );
  const draft = { clientId, createdBy: { type: 'member', id: memberId }, body: postBody() };
  const data = Buffer.from(JSON.stringify(draft));
  let left = events / perStream;
  const write = async () => {
    while (left-- > 0) {
      const made = Array.from({ length: perStream }, () => ({
        ...{ id: randomUUID(), type: 'PostDrafted', data, metadata, partitionKey: 'bench', workspaceId },
      }));
      await eventStore.append(`post-${randomUUID()}`, 'none', made);
    }
  };
  await Promise.all(Array.from({ length: 16 }, write));
};

/** Events a second of the numbering, from none to all. */
const numbering = async ({ eventStore, pool, head }: World, events: number): Promise<number> => {
  const stopped = new AbortController();
  const end = await head();
  const started = performance.now();
  const working = numberEvents({ store: eventStore, pool, signal: stopped.signal, logger: quiet });
  for (;;) {
    const { rows } = await pool.query('select position from ops.feed_position');
    if (rows[0]?.position !== null && BigInt(rows[0].position) >= end) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const rate = (events * 1_000) / (performance.now() - started);
  stopped.abort();
  await working;
  return rate;
};

/** Events a second of the store's own read, which discards them. */
const bareRead = async ({ eventStore, workspaceId }: World): Promise<number> => {
  let seen = 0;
  const started = performance.now();
  for (let after: bigint | null = null; ; ) {
    const page = await eventStore.readWorkspace(workspaceId, { after, limit: 500 });
    seen += page.events.length;
    if (page.isEnd) return (seen * 1_000) / (performance.now() - started);
    after = page.next;
  }
};

const asLines = async (world: World, form: string): Promise<number> => {
  const headers = { authorization: `Bearer ${world.owner.token}`, accept: 'application/x-ndjson' };
  const started = performance.now();
  const answer = await fetch(`${world.origin()}/v1/events?form=${form}`, { headers });
  let lines = 0;
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    for (const byte of chunk) if (byte === 10) lines += 1;
  }
  return (lines * 1_000) / (performance.now() - started);
};

const exported = async (world: World, events: number) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'feed-bench-'));
  const { pool, eventStore, secrets, operator, workspaceId } = world;
  const signal = new AbortController().signal;
  const admin = { pool, eventStore, secrets, operator, signal, note: () => undefined };
  try {
    const started = performance.now();
    await writeExport(admin, workspaceId, folder);
    const written = performance.now();
    const { status, stdout } = spawnSync(process.execPath, [path.join(folder, 'verify-export.mjs'), folder]);
    if (status !== 0) throw new Error(String(stdout));
    const rate = (ms: number): number => (events * 1_000) / ms;
    return { exportRate: rate(written - started), verifyRate: rate(performance.now() - written) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Milliseconds of one proof; the blocks that it reads exist, and no others. */
const provedAmong = async (pool: Pool, leaves: number, rounds: number) => {
  const workspaceId = randomUUID();
  const index = Math.floor(leaves * 0.77);
  const block = async (level: number, around: number): Promise<void> => {
    const from = Math.floor(around / 16) * 16;
    const hashes = Array.from({ length: 16 }, () => randomBytes(32).toString('hex'));
    const text =
      level === 0
        ? `insert into ops.feed_events (workspace_id, sequence, position, event_id, stream, revision, type, at, hash)
           select $1, $2 + n, $2 + n, gen_random_uuid(), 's', $2 + n, 'T', now(), decode(h, 'hex')
           from unnest($3::text[]) with ordinality as x (h, n) on conflict do nothing`
        : `insert into ops.feed_subtrees (workspace_id, level, index, hash)
           select $1, ${level}, $2 + n - 1, decode(h, 'hex') from unnest($3::text[]) with ordinality as x (h, n) on conflict do nothing`;
    await pool.query(text, [workspaceId, from, hashes]);
  };
  for (const level of [0, 4, 8, 12, 16, 20, 24]) {
    for (const leaf of [index, leaves - 1]) await block(level, Math.floor(leaf / 2 ** level));
  }
  const times: number[] = [];
  let hashes = 0;
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    hashes = (await inclusionProof(subtreesOf(pool, workspaceId), index, leaves)).length;
    times.push(performance.now() - started);
  }
  return { p99: percentile(times, 0.99), hashes };
};

/**
 * Posts a second over HTTP with the numbering beside them and without it, in turns; what it has to do of former turns is done
 * before each. It runs in the process of the api here, where it costs the api more than in its own.
 */
const postsBeside = async (world: World, turns: number, posts: number) => {
  const own = await composer(world, ['x']);
  const rate = async (): Promise<number> => {
    let left = posts;
    const started = performance.now();
    const call = async (): Promise<void> => {
      while (left-- > 0) {
        const { status, text } = await world.tester.post('/posts', own.body({ content: `Bench ${randomUUID()}` }));
        if (status !== 200) throw new Error(text);
      }
    };
    await Promise.all(Array.from({ length: 4 }, call));
    return (posts * 1_000) / (performance.now() - started);
  };
  const [on, off]: [number[], number[]] = [[], []];
  await rate();
  for (let turn = 0; turn < 2 * turns; turn += 1) {
    const isOn = turn % 4 === 0 || turn % 4 === 3;
    const beside = startNumbering(world);
    await beside.numbered();
    if (!isOn) await beside.stop();
    (isOn ? on : off).push(await rate());
    if (isOn) await beside.stop();
  }
  return { on: spread(on), off: spread(off) };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const events = quick ? 20_000 : 200_000;
  const rounds = quick ? 1 : 3;
  const world = await startWorld({ audited: false, rate: { perMinute: 10_000_000, burst: 1_000_000 } });
  try {
    const { on, off } = await postsBeside(world, quick ? 2 : 10, quick ? 60 : 300);
    await world.stopProjections();
    await fill(world, events);
    const ours = await numbering(world, events);
    const turns = {
      bare: [] as number[],
      stored: [] as number[],
      domain: [] as number[],
      out: [] as number[],
      back: [] as number[],
    };
    for (let round = 0; round < rounds; round += 1) {
      turns.bare.push(await bareRead(world));
      turns.stored.push(await asLines(world, 'stored'));
      turns.domain.push(await asLines(world, 'domain'));
      const { exportRate, verifyRate } = await exported(world, events);
      turns.out.push(exportRate);
      turns.back.push(verifyRate);
    }
    const limit = spread(turns.bare).median;
    const row = (name: string, rates: readonly number[], goal: number): BenchRow => {
      const { median, min, max } = spread(rates);
      const note = `${Math.round(min)} to ${Math.round(max)}`;
      return {
        name,
        unit: 'events/s',
        ours: median,
        limit,
        goal: `≥ ${goal.toLocaleString('en')}`,
        ok: median >= goal,
        note,
      };
    };
    const proof = await provedAmong(world.pool, 100_000_000, quick ? 50 : 3_000);
    return [
      {
        ...{ name: 'feed: POST /posts beside the numbering', unit: 'calls/s', ours: on.median, limit: off.median },
        ...{ goal: '≥ 0.97 of limit', ok: on.median >= 0.97 * off.median },
        note: `${on.min.toFixed(0)} to ${on.max.toFixed(0)} beside it, ${off.min.toFixed(0)} to ${off.max.toFixed(0)} without`,
      },
      row(`feed: ${events} events numbered`, [ours], 15_000),
      row('feed: lines as stored', turns.stored, 20_000),
      row('feed: lines as the domain knows them', turns.domain, 8_000),
      row('feed: export', turns.out, 30_000),
      row('feed: verify-export', turns.back, 30_000),
      {
        ...{
          name: 'feed: p99 of a proof among 100,000,000',
          unit: 'ms',
          ours: proof.p99,
          goal: '≤ 5, 27 hashes at most',
        },
        ...{ ok: proof.p99 <= 5 && proof.hashes <= 27, note: `${proof.hashes} hashes` },
      },
    ];
  } finally {
    await world.close();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

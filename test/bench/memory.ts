/**
 * Resident memory of standalone: idle after its start with nothing in it, and idle again after some seconds of posts.
 * All processes of ours; Postgres beside it, as the sum of its processes (which share much of theirs).
 *
 * Run alone: node test/bench/memory.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { familyOf, residentMb } from './environment.ts';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, printRows, spread } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

const goalMb = 250;

const sum = (pids: readonly number[]): number => pids.reduce((total, pid) => total + (residentMb(pid) || 0), 0);

/** The median of a sample a second: a collection of garbage may come at any time. */
const settled = async (world: Standalone, seconds: number): Promise<number> => {
  const samples: number[] = [];
  for (let second = 0; second < seconds; second += 1) {
    await delay(1_000);
    samples.push(sum(familyOf(world.pid)));
  }
  return spread(samples).median;
};

const work = async (world: Standalone, ms: number): Promise<number> => {
  const body = JSON.stringify({
    clientId: world.clientId,
    content: 'A post of ordinary length, as people write them, with a link https://example.com/winter.',
    targets: { mode: 'group', clientId: world.clientId },
    schedule: { type: 'at', scheduledAt: new Date(Date.now() + 86_400_000).toISOString() },
    variants: [],
  });
  const next = () =>
    wire({ method: 'POST', path: '/v1/posts', key: world.nextKey(), body, idempotencyKey: randomUUID() });
  const { latencies } = await closedLoop(world.port, { callers: 8, ms, next });
  await caughtUp(world.pool);
  return latencies.length;
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const seconds = quick ? 5 : 30;
  const fresh = await startStandalone({ bare: true });
  const rows: BenchRow[] = [];
  try {
    const idle = await settled(fresh, seconds);
    const postgres = sum(await fresh.postgresPids());
    rows.push({
      name: 'memory: standalone idle, chdb not loaded',
      unit: 'MB',
      ours: idle,
      goal: `≤ ${goalMb}`,
      ok: idle <= goalMb,
      note: `Postgres: ${Math.round(postgres)} MB (sum of its processes)`,
    });
  } finally {
    await fresh.stop();
  }
  const used = await startStandalone();
  try {
    const posts = await work(used, quick ? 5_000 : 30_000);
    const after = await settled(used, seconds);
    rows.push({
      name: 'memory: standalone idle again after work',
      unit: 'MB',
      ours: after,
      goal: 'none',
      ok: true,
      note: `after ${posts.toLocaleString('en')} posts with 10 targets each, chdb not loaded`,
    });
  } finally {
    await used.stop();
  }
  return rows;
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

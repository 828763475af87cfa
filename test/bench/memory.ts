/**
 * Resident memory of standalone: idle after its start with nothing in it, and idle again after some seconds of posts.
 * All processes of ours; Postgres beside it, as the sum of its processes (which share much of theirs).
 *
 * With Node's compile cache, as `npm start` has it (infra/setup/bootstrap.mjs): the first start of new code, which strips
 * its types in every thread, is a row of its own.
 *
 * Run alone: node test/bench/memory.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { familyOf, residentMb } from './environment.ts';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, printRows, spread } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

type Environment = Readonly<Record<string, string>>;

const goalMb = 250;

const sum = (pids: readonly number[]): number => pids.reduce((total, pid) => total + (residentMb(pid) || 0), 0);

/** The median of one sample a second: a garbage collection may happen at any time. */
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

/** After a start with nothing in it. */
const idle = async (
  env: Environment,
  seconds: number,
): Promise<{ readonly ours: number; readonly postgres: number }> => {
  const world = await startStandalone({ bare: true, env });
  try {
    const ours = await settled(world, seconds);
    return { ours, postgres: sum(await world.postgresPids()) };
  } finally {
    await world.stop();
  }
};

const afterWork = async (env: Environment, seconds: number, ms: number) => {
  const world = await startStandalone({ env });
  try {
    const posts = await work(world, ms);
    return { ours: await settled(world, seconds), posts };
  } finally {
    await world.stop();
  }
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const seconds = quick ? 5 : 30;
  const cache = mkdtempSync(join(tmpdir(), 'bench-compile-cache-'));
  const env = { NODE_COMPILE_CACHE: cache };
  try {
    const first = await idle(env, seconds);
    const later = await idle(env, seconds);
    const used = await afterWork(env, seconds, quick ? 5_000 : 30_000);
    const row = { unit: 'MB', goal: 'none', ok: true };
    return [
      { ...row, name: 'memory: standalone idle, first start of new code', ours: first.ours },
      {
        ...row,
        name: 'memory: standalone idle, chdb not loaded',
        ours: later.ours,
        goal: `≤ ${goalMb}`,
        ok: later.ours <= goalMb,
        note: `Postgres: ${Math.round(later.postgres)} MB (sum of its processes)`,
      },
      {
        ...row,
        name: 'memory: standalone idle again after work',
        ours: used.ours,
        note: `after ${used.posts.toLocaleString('en')} posts with 10 targets each, chdb not loaded`,
      },
    ];
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

/**
 * What standalone takes of a core at rest: it is given some posts, publishes them, and is left alone. The processor time
 * of all its processes and of Postgres counts, over a window that begins when its waits have had time to grow.
 *
 * Run alone: node test/bench/idle.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds, familyOf } from './environment.ts';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, printRows } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

/** Of one core. */
const goalPercent = 1.5;
const workMs = 1_000;
const publishedWithinMs = 60_000;

/** Posts that are due at once, until the last target has come to its end. */
const work = async ({ port, pool, clientId, nextKey }: Standalone): Promise<number> => {
  const body = JSON.stringify({
    clientId,
    content: 'A post of ordinary length, as people write them, with a link https://example.com/winter.',
    targets: { mode: 'group', clientId },
    schedule: { type: 'now' },
    variants: [],
  });
  const next = () => wire({ method: 'POST', path: '/v1/posts', key: nextKey(), body, idempotencyKey: randomUUID() });
  const { latencies } = await closedLoop(port, { callers: 2, ms: workMs, next });
  await caughtUp(pool);
  const ended = `select count(*)::int as n from read.post_targets where status in ('published', 'failed', 'outcome_unknown')`;
  const wanted = latencies.length * 10;
  for (const until = performance.now() + publishedWithinMs; ; await delay(500)) {
    const { rows } = await pool.query<{ n: number }>(ended);
    if ((rows[0]?.n ?? 0) >= wanted) return latencies.length;
    if (performance.now() > until) throw new Error(`of ${wanted} targets ${rows[0]?.n} came to their end`);
  }
};

interface Used {
  readonly ours: number;
  readonly postgres: number;
  readonly statements: number;
  readonly at: number;
}

/** A process that ended meanwhile is counted by the one that buried it. */
const seconds = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + (cpuSeconds(pid) || 0), 0);

/** Statements as transactions: at rest each is one of its own. */
const usedBy = async ({ pid, pool, postgresPids }: Standalone): Promise<Used> => {
  const { rows } = await pool.query<{ n: number }>(
    'select xact_commit::float8 as n from pg_stat_database where datname = current_database()',
  );
  const postgres = seconds(await postgresPids());
  return { ours: seconds(familyOf(pid)), postgres, statements: rows[0]?.n ?? Number.NaN, at: performance.now() };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const ms = quick ? 20_000 : 60_000;
  const world = await startStandalone();
  try {
    const posts = await work(world);
    await delay(ms);
    const before = await usedBy(world);
    await delay(ms);
    const after = await usedBy(world);
    const percent = (name: 'ours' | 'postgres') => ((after[name] - before[name]) / (after.at - before.at)) * 100_000;
    const [own, postgres] = [percent('ours'), percent('postgres')];
    const statements = ((after.statements - before.statements) / (after.at - before.at)) * 1_000;
    return [
      {
        name: 'idle: standalone and Postgres at rest',
        unit: '% of a core',
        ours: own + postgres,
        goal: `≤ ${goalPercent}`,
        ok: own + postgres <= goalPercent,
        note: `ours ${own.toFixed(2)}, Postgres ${postgres.toFixed(2)}; ${statements.toFixed(1)} statements a second; over ${ms / 1_000} s, ${ms / 1_000} s after ${posts} posts with 10 targets each were out`,
      },
    ];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

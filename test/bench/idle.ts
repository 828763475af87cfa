/**
 * Processor share of an idle standalone: it publishes some posts and is then left alone. Counts all its processes and
 * Postgres, over a window that begins when its pauses have reached their maximum.
 *
 * Run alone: node test/bench/idle.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { view } from '#projections/shapes.ts';
import { cpuSeconds, familyOf } from './environment.ts';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, printRows } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

/** Of one core. */
const goalPercent = 1.5;
/**
 * V8's memory reducer collects once in each thread some 100 s after work. The long window includes that collection and
 * two minutes more; the row also states its busiest slice.
 */
const windowOf = (quick: boolean) => (quick ? { restMs: 20_000, slices: 1 } : { restMs: 60_000, slices: 9 });
const sliceMs = 20_000;
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
  const ended = `select count(*)::int as n from ${view('post_targets')} where status in ('published', 'failed', 'outcome_unknown')`;
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

/** A process that ended meanwhile counts in its parent. */
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
  const { restMs, slices } = windowOf(quick);
  const world = await startStandalone();
  try {
    const posts = await work(world);
    await delay(restMs);
    const used = [await usedBy(world)];
    for (let slice = 0; slice < slices; slice += 1) {
      await delay(sliceMs);
      used.push(await usedBy(world));
    }
    const rate = (name: 'ours' | 'postgres' | 'statements', from: Used, to: Used) =>
      ((to[name] - from[name]) / (to.at - from.at)) * 1_000;
    const percent = (from: Used, to: Used) => 100 * (rate('ours', from, to) + rate('postgres', from, to));
    const [first, last] = [used[0] as Used, used.at(-1) as Used];
    const busiest = Math.max(...used.slice(1).map((to, at) => percent(used[at] as Used, to)));
    const [own, postgres] = [100 * rate('ours', first, last), 100 * rate('postgres', first, last)];
    return [
      {
        name: 'idle: standalone and Postgres at rest',
        unit: '% of a core',
        ours: own + postgres,
        goal: `≤ ${goalPercent}`,
        ok: own + postgres <= goalPercent,
        note: `ours ${own.toFixed(2)}, Postgres ${postgres.toFixed(2)}; busiest ${sliceMs / 1_000} s ${busiest.toFixed(2)}; ${rate('statements', first, last).toFixed(1)} statements a second; over ${(slices * sliceMs) / 1_000} s, ${restMs / 1_000} s after ${posts} posts with 10 targets each were out`,
      },
    ];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

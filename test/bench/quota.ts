/**
 * What a quota costs a post: POST /posts with ten targets, in an installation whose workspace has a quota and, turn by
 * turn, in one without. Each is standalone with everything on and production defaults.
 *
 * Run alone: node test/bench/quota.ts (QUICK=1 for the short form).
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';
import { postOfTen } from './ten-targets.ts';

const callers = 32;
/** Of the rate without a quota. */
const goal = 0.95;
/** A process knows a new rule within this time, milliseconds. */
const knownMs = 1_000;
const command = fileURLToPath(new URL('../../services/admin/main.ts', import.meta.url));

const setQuota = async (world: Standalone, limit: string): Promise<void> => {
  await promisify(execFile)(process.execPath, [command, 'quota', 'set', limit, '--mode', 'test'], {
    env: { PATH: process.env.PATH, DATABASE_URL: world.databaseUrl, SECRET_KEY: world.secretKey },
  });
  await caughtUp(world.pool);
  await delay(knownMs);
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const [turns, turnMs, eventsBefore] = quick ? [7, 4_000, 50_000] : [11, 10_000, 1_000_000];
  const worlds: Partial<Record<'with' | 'without', Standalone>> = {};
  try {
    const rates = { without: [] as number[], with: [] as number[] };
    const latencies = { without: [] as number[], with: [] as number[] };
    const turn = async (which: keyof typeof rates, ms: number): Promise<void> => {
      const world = worlds[which] ?? (await startStandalone({ eventsBefore }));
      worlds[which] = world;
      const body = JSON.stringify(postOfTen(world));
      const next = () =>
        wire({ method: 'POST', path: '/v1/posts', key: world.nextKey(), body, idempotencyKey: randomUUID() });
      const { rate, latencies: these } = await closedLoop(world.port, { callers, ms, next });
      await caughtUp(world.pool);
      rates[which].push(rate);
      for (const one of these) latencies[which].push(one);
    };
    for (const which of ['without', 'with'] as const) {
      await turn(which, 5_000);
      rates[which].length = 0;
      latencies[which].length = 0;
    }
    if (worlds.with !== undefined) await setQuota(worlds.with, '1000000');
    for (let at = 0; at < turns; at += 1) {
      for (const which of at % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        await turn(which, turnMs);
      }
    }
    for (const line of worlds.with?.environment ?? []) console.log(line);
    const [ours, limit] = [spread(rates.with), spread(rates.without)];
    const range = ({ min, max }: { min: number; max: number }): string => `${Math.round(min)} to ${Math.round(max)}`;
    const late = (which: keyof typeof latencies): string => percentile(latencies[which], 0.99).toFixed(0);
    return [
      {
        name: `quota: POST /posts of 10 targets with a quota, ${callers} callers`,
        unit: 'posts/s',
        ours: ours.median,
        limit: limit.median,
        goal: `≥ ${goal} of none`,
        ok: ours.median >= goal * limit.median,
        note: `with ${range(ours)}, p99 ${late('with')} ms; without ${range(limit)}, p99 ${late('without')} ms; load average ${loadavg()[0]?.toFixed(1)}`,
      },
    ];
  } finally {
    for (const world of Object.values(worlds)) await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

/**
 * Composing under load, standalone with everything on: a bulk call of 50 posts of ten targets, beside the same posts one
 * by one from 32 callers; and previews of ten targets by 32 callers, beside the posts' GET. Production defaults.
 *
 * Run alone: node test/bench/composing.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, percentile, printRows } from './row.ts';
import { caughtUp, inParallel, type Standalone, startStandalone } from './standalone.ts';
import { postOfTen } from './ten-targets.ts';

const callers = 32;
const bulkPosts = 50;
const goal = { bulkMs: 1_200, preview99: 40 };

interface Timing {
  readonly bulks: number;
  readonly previewMs: number;
  readonly eventsBefore: number;
}

const send = (world: Standalone, path: string, body: object): (() => string) => {
  const text = JSON.stringify(body);
  return () => wire({ method: 'POST', path, key: world.nextKey(), body: text, idempotencyKey: randomUUID() });
};

/** Milliseconds of one bulk call; its answer is streamed, which the load generator does not read. */
const bulkOnce = async (world: Standalone, post: object): Promise<number> => {
  const begun = performance.now();
  const answer = await fetch(`http://127.0.0.1:${world.port}/v1/posts/bulk`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${world.nextKey()}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({ posts: Array.from({ length: bulkPosts }, () => post) }),
  });
  const text = await answer.text();
  const tookMs = performance.now() - begun;
  const { data } = JSON.parse(text) as { readonly data: { readonly created?: number } };
  if (data.created !== bulkPosts) throw new Error(`${answer.status}: the bulk call created ${data.created} posts`);
  return tookMs;
};

const benchBulk = async (world: Standalone, { bulks }: Timing): Promise<BenchRow> => {
  const post = postOfTen(world);
  const one = send(world, '/v1/posts', post);
  await closedLoop(world.port, { callers, ms: 3_000, next: one });
  const ours: number[] = [];
  const single: number[] = [];
  for (let turn = 0; turn < bulks; turn += 1) {
    await caughtUp(world.pool);
    ours.push(await bulkOnce(world, post));
    await caughtUp(world.pool);
    const begun = performance.now();
    await inParallel(bulkPosts, callers, async () => {
      await closedLoop(world.port, { callers: 1, ms: 0.001, next: one });
    });
    single.push(performance.now() - begun);
  }
  const median = percentile(ours, 0.5);
  return {
    name: `composing: POST /posts/bulk, ${bulkPosts} posts of 10 targets`,
    unit: 'ms',
    ours: median,
    limit: percentile(single, 0.5),
    goal: `≤ ${goal.bulkMs}`,
    ok: median <= goal.bulkMs,
    note: `p50 of ${ours.length}; p99 ${percentile(ours, 0.99).toFixed(0)}; limit: the same posts one by one, ${callers} callers; load average ${loadavg()[0]?.toFixed(1)}`,
  };
};

const benchPreview = async (world: Standalone, { previewMs }: Timing): Promise<BenchRow> => {
  const next = send(world, '/v1/posts/preview', postOfTen(world));
  await closedLoop(world.port, { callers, ms: 3_000, next });
  await caughtUp(world.pool);
  const { rate, latencies } = await closedLoop(world.port, { callers, ms: previewMs, next });
  const late = percentile(latencies, 0.99);
  return {
    name: `composing: POST /posts/preview p99, 10 targets, ${callers} callers`,
    unit: 'ms',
    ours: late,
    goal: `≤ ${goal.preview99}`,
    ok: late <= goal.preview99,
    note: `${Math.round(rate)}/s; p50 ${percentile(latencies, 0.5).toFixed(1)}, p99.9 ${percentile(latencies, 0.999).toFixed(1)}; load average ${loadavg()[0]?.toFixed(1)}`,
  };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const timing: Timing = quick
    ? { bulks: 7, previewMs: 5_000, eventsBefore: 50_000 }
    : { bulks: 31, previewMs: 20_000, eventsBefore: 1_000_000 };
  const world = await startStandalone({ eventsBefore: timing.eventsBefore });
  try {
    for (const line of world.environment) console.log(line);
    return [await benchBulk(world, timing), await benchPreview(world, timing)];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

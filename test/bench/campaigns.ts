/**
 * Shifts of a campaign of 500 posts, of one target and of ten each, standalone with everything on; beside the bulk calls
 * of 100 targets that move the same targets. Production defaults.
 *
 * Run alone: node test/bench/campaigns.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { type BenchRow, percentile, printRows } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';
import { postOfTen } from './ten-targets.ts';

const posts = 500;
const bulkPosts = 50;
const bulkTargets = 100;
const goalMs = 3_000;

type Json = Readonly<Record<string, unknown>>;

const post = async (world: Standalone, path: string, body: object): Promise<Json> => {
  const answer = await fetch(`http://127.0.0.1:${world.port}/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${world.nextKey()}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return (JSON.parse(text) as { readonly data: Json }).data;
};

/** A campaign with its posts. @returns its id and the ids of all targets */
const campaignOf = async (world: Standalone, one: object): Promise<{ id: string; targetIds: readonly string[] }> => {
  const id = String((await post(world, '/campaigns', { name: 'Bench' })).id);
  const targetIds: string[] = [];
  for (let made = 0; made < posts; made += bulkPosts) {
    const body = { posts: Array.from({ length: bulkPosts }, () => ({ ...one, campaignId: id })) };
    const { results } = (await post(world, '/posts/bulk', body)) as {
      readonly results: readonly { readonly post: { readonly targets: readonly { readonly id: string }[] } }[];
    };
    targetIds.push(...results.flatMap((result) => result.post.targets.map((target) => target.id)));
  }
  return { id, targetIds };
};

const timed = async (work: () => Promise<void>): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

const bench = async (world: Standalone, one: object, targets: number, turns: number): Promise<BenchRow> => {
  const { id, targetIds } = await campaignOf(world, one);
  const ours: number[] = [];
  const bulk: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    await caughtUp(world.pool);
    ours.push(
      await timed(async () => {
        const { shifted } = await post(world, `/campaigns/${id}/shift`, { days: 1 });
        if (shifted !== targetIds.length) throw new Error(`${shifted} of ${targetIds.length} targets were moved`);
      }),
    );
    await caughtUp(world.pool);
    bulk.push(
      await timed(async () => {
        for (let at = 0; at < targetIds.length; at += bulkTargets) {
          const some = targetIds.slice(at, at + bulkTargets);
          await post(world, '/post-targets/bulk', { action: 'reschedule', targetIds: some, shiftMinutes: 1 });
        }
      }),
    );
  }
  const median = percentile(ours, 0.5);
  return {
    name: `campaigns: a shift of ${posts} posts, ${targetIds.length} targets`,
    unit: 'ms',
    ours: median,
    limit: percentile(bulk, 0.5),
    goal: targets === 1 ? `≤ ${goalMs}` : 'told',
    ok: targets > 1 || median <= goalMs,
    note: `p50 of ${ours.length}; longest ${Math.max(...ours).toFixed(0)}; limit: bulk calls of ${bulkTargets} targets, one after the other; load average ${loadavg()[0]?.toFixed(1)}`,
  };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const world = await startStandalone({ eventsBefore: quick ? 50_000 : 1_000_000 });
  const turns = quick ? 5 : 15;
  try {
    for (const line of world.environment) console.log(line);
    const ten = postOfTen(world);
    const targets = { mode: 'group', clientId: world.clientId, platforms: ['bluesky'] };
    const one = { ...ten, targets, variants: [] };
    return [await bench(world, one, 1, turns), await bench(world, ten, 10, turns)];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

/**
 * How late a tenant's targets start while one network hangs for another tenant and a third one has a burst due in the same
 * second: some of them on the network of the burst, some on a third. Production defaults; the publisher in a process of
 * its own.
 *
 * Run alone: node test/bench/publisher-shares.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { view } from '#projections/shapes.ts';
import type { Platform } from '#schemas/common.ts';
import type { PublishingWorld } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';
import { hangs, lateness, publisherOf, withWorlds } from './publisher-rounds.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';

const perPost = 10;
/** Targets of the healthy tenant, over so many milliseconds. */
const healthy = 200;
const overMs = 10_000;
/** Milliseconds from the last append to the first time of a round: longer than the publisher looks ahead. */
const leadMs = 6_000;

/** The same world as another tenant sees it. */
const tenantOf = (world: PublishingWorld): PublishingWorld =>
  Object.create(world, { workspaceId: { value: randomUUID() } }) as PublishingWorld;

/** Schedules so many targets of a new client on one network, ten to a post; answers which is due when. */
const schedule = async (
  tenant: PublishingWorld,
  platform: Platform,
  targets: number,
  { text, dueAt }: { readonly text: string; readonly dueAt: (at: number) => number },
): Promise<ReadonlyMap<string, number>> => {
  const clientId = await tenant.client();
  const accounts = await Promise.all(Array.from({ length: perPost }, () => tenant.connect(clientId, platform)));
  const due = new Map<string, number>();
  for (let post = 0; post < targets / perPost; post += 16) {
    const some = Array.from({ length: Math.min(16, targets / perPost - post) }, (_, at) => post + at);
    await Promise.all(
      some.map(async (one) => {
        const when = (at: number) => dueAt(one * perPost + at);
        const { targetIds } = await tenant.schedule(accounts, { text: `${text} ${one}`, dueAt: when });
        for (const [at, id] of targetIds.entries()) due.set(id, when(at));
      }),
    );
  }
  return due;
};

/** Milliseconds late at which each of the healthy tenant's targets begins. */
const round = async (world: PublishingWorld, burst: number): Promise<readonly number[]> => {
  const began = performance.now();
  if (burst > 0) await schedule(tenantOf(world), 'x', burst, { text: hangs, dueAt: () => Date.now() });
  const tookMs = performance.now() - began;
  const from = Date.now() + leadMs + 2 * tookMs;
  if (burst > 0) await schedule(tenantOf(world), 'linkedin', burst, { text: 'burst', dueAt: () => from });
  const tenant = tenantOf(world);
  const dueAt = new Map<string, number>();
  for (const platform of ['linkedin', 'bluesky'] as const) {
    const spreadOut = (at: number) => from + Math.floor((at * overMs) / (healthy / 2));
    const some = await schedule(tenant, platform, healthy / 2, { text: 'healthy', dueAt: spreadOut });
    for (const [id, at] of some) dueAt.set(id, at);
  }
  if (Date.now() > from - 4_000) throw new Error('scheduling took too long for this round');
  const publisher = publisherOf(world);
  try {
    await until(
      'all begun',
      async () => {
        await delay(250);
        const begun = `select count(*)::int as n from ${view('post_targets')} where id = any($1::uuid[]) and attempts > 0`;
        return (await world.pool.query(begun, [[...dueAt.keys()]])).rows[0].n === healthy;
      },
      { withinMs: from - Date.now() + 120_000 },
    );
    return lateness(dueAt, await publisher.end());
  } finally {
    publisher.kill();
  }
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const burst = quick ? 1_000 : 10_000;
  const alone: number[] = [];
  const beside: number[] = [];
  let began = healthy;
  for (let turn = 0; turn < (quick ? 1 : 3); turn += 1) {
    for (const [at, p99] of [alone, beside].entries()) {
      const late = await withWorlds(1, ([world]) => round(world as PublishingWorld, at === 0 ? 0 : burst));
      began = Math.min(began, late.length);
      p99.push(percentile(late, 0.99));
    }
  }
  const [limit, ours] = [spread(alone), spread(beside)];
  const many = burst.toLocaleString('en');
  return [
    {
      name: `start beside ${many} that hang and ${many} due of another tenant`,
      unit: 'ms p99',
      ours: ours.median,
      limit: limit.median,
      goal: '≤ 1,000',
      ok: ours.median <= 1_000 && began === healthy,
      note: `${began} of ${healthy} began; min ${Math.round(ours.min)}, max ${Math.round(ours.max)}; alone: min ${Math.round(limit.min)}, max ${Math.round(limit.max)}`,
    },
  ];
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

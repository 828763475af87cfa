/**
 * Resident memory of the webhooks process while half of its endpoints try to fill it with their answers, beside its
 * level while all of them answered the same requests well.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type ReceiverPath, startReceivers } from '#test/support/egress-receivers.ts';
import { timesEnv } from '#test/support/times.ts';
import { residentMb } from '../environment.ts';
import { type BenchRow, spread } from '../row.ts';
import { cleanup } from './cleanup.ts';
import type { Feed } from './feed.ts';
import { BenchWorld, settled } from './world.ts';

const goalMb = 30;
const rate = 40;
const sampleMs = 100;
/** Events that our log keeps in memory: they are there before the measurement. */
const remembered = 2_000;
const attacks: readonly ReceiverPath[] = ['/300mb', '/gzip-bomb', '/endless-headers', '/drip-body'];

/** Appends so many a second for so long; gives a sample of the memory every 100 ms. */
const under = async (feed: Feed, pid: number, ms: number): Promise<readonly number[]> => {
  const samples: number[] = [];
  const sampler = setInterval(() => samples.push(residentMb(pid)), sampleMs);
  try {
    const start = performance.now();
    for (let n = 0; n < (rate * ms) / 1_000; n += 1) {
      await delay(Math.max(0, start + (n * 1_000) / rate - performance.now()));
      await feed.append();
    }
  } finally {
    clearInterval(sampler);
  }
  return samples;
};

export const memory = async (quick: boolean): Promise<BenchRow[]> => {
  const [warmMs, ms] = quick ? [15_000, 15_000] : [60_000, 30_000];
  await using stack = cleanup();
  // Each endpoint attacks to the end: no breaker stops it.
  const world = await BenchWorld.open(stack, { env: timesEnv({ webhookBreakerFailures: 10_000 }) });
  const receivers = await startReceivers();
  stack.defer(() => receivers.close());
  const workspaceId = randomUUID();
  const feed = await world.feed(workspaceId);
  const ids: string[] = [];
  for (let n = 0; n < 2 * attacks.length; n += 1) ids.push(await world.register(workspaceId, receivers.url('/ok')));
  await settled(world.pool, ids.length);
  await feed.appendMany(remembered);
  const warm = await under(feed, world.webhooks.pid, warmMs);
  const level = spread(warm.slice(-50)).median;
  for (const [n, path] of attacks.entries()) await world.move(workspaceId, ids[n] ?? '', receivers.url(path));
  const during = await under(feed, world.webhooks.pid, ms);
  const { min, max } = spread(during);
  const seen = await Promise.all(attacks.map(async (path) => ({ path, ...(await receivers.seen(path)) })));
  const idle = seen.find(({ requests }) => requests === 0);
  if (idle !== undefined) throw new Error(`nothing was sent to ${idle.path}`);
  const most = Math.max(max - level, level - min);
  return [
    {
      name: 'webhooks: memory under attack, farthest from its level before',
      unit: 'MB',
      ours: most,
      goal: `≤ ${goalMb}`,
      ok: most <= goalMb,
      note: `level ${level.toFixed(0)}, then ${min.toFixed(0)} to ${max.toFixed(0)} in ${ms / 1_000} s; ${seen.map(({ path, requests, bytesSent }) => `${path} ${requests} × (${Math.round(bytesSent / 1e6)} MB taken in all)`).join(', ')}; peer quoted: 51 to 1,674 MB`,
    },
  ];
};

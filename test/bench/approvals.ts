/**
 * Approvals of a post of thirty targets, standalone with everything on; beside the bulk call that reschedules as many
 * targets of a post that needed none. Production defaults.
 *
 * Run alone: node test/bench/approvals.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchRow, percentile, printRows } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

const accounts = 30;
const goalMs = 100;

type Json = Readonly<Record<string, unknown>>;

const send = async (world: Standalone, method: string, path: string, body: object): Promise<Json> => {
  const answer = await fetch(`http://127.0.0.1:${world.port}/v1${path}`, {
    method,
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

/** A client with thirty accounts of one network. */
const clientOf = async (world: Standalone): Promise<string> => {
  const clientId = String((await send(world, 'POST', '/clients', { name: `Bench ${randomUUID()}`, type: 'brand' })).id);
  const invite = { platforms: ['bluesky'], maxAccounts: accounts };
  const { url } = await send(world, 'POST', `/clients/${clientId}/connect-invites`, invite);
  for (let n = 0; n < accounts; ) {
    const form = new URLSearchParams({ platform: 'bluesky', username: `bench-${n}`, timezone: '' });
    const answer = await fetch(String(url), { method: 'POST', body: form });
    if (answer.status === 429) {
      await delay(1_000 * Number(answer.headers.get('retry-after') ?? 1));
      continue;
    }
    n += 1;
    if (!answer.ok) throw new Error(`connecting an account was answered with ${answer.status}`);
  }
  await caughtUp(world.pool);
  return clientId;
};

const postOf = async (world: Standalone, clientId: string): Promise<Json> => {
  const scheduledAt = new Date(Date.now() + 86_400_000).toISOString();
  const made = await send(world, 'POST', '/posts', {
    ...{ clientId, content: 'A word from us.', targets: { mode: 'group', clientId } },
    schedule: { type: 'at', scheduledAt },
  });
  const { length } = made.targets as readonly unknown[];
  if (length !== accounts) throw new Error(`the post has ${length} targets`);
  return made;
};

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const world = await startStandalone({ eventsBefore: quick ? 50_000 : 1_000_000 });
  try {
    for (const line of world.environment) console.log(line);
    const [strict, free] = [await clientOf(world), await clientOf(world)];
    await send(world, 'PATCH', `/clients/${strict}`, { approvalRequired: true });
    await caughtUp(world.pool);
    const ours: number[] = [];
    const bulk: number[] = [];
    for (let turn = 0; turn < (quick ? 30 : 100); turn += 1) {
      const held = await postOf(world, strict);
      await caughtUp(world.pool);
      ours.push(await timed(() => send(world, 'POST', `/approvals/${held.approvalId}/approve`, {})));
      const { targets } = await postOf(world, free);
      const targetIds = (targets as readonly { readonly id: string }[]).map(({ id }) => id);
      await caughtUp(world.pool);
      const moved = { action: 'reschedule', targetIds, shiftMinutes: 1 };
      bulk.push(await timed(() => send(world, 'POST', '/post-targets/bulk', moved)));
    }
    const median = percentile(ours, 0.5);
    return [
      {
        name: `approvals: a post of ${accounts} targets is approved`,
        unit: 'ms',
        ours: median,
        limit: percentile(bulk, 0.5),
        goal: `≤ ${goalMs}`,
        ok: median <= goalMs,
        note: `p50 of ${ours.length}; p99 ${percentile(ours, 0.99).toFixed(0)}; limit: one bulk call that moves as many targets; load average ${loadavg()[0]?.toFixed(1)}`,
      },
    ];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

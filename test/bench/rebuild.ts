/**
 * All read models rebuilt at once by the operator's command, in a process of its own, beside POST /clients at a steady rate:
 * events of the store a second, and the p99 of the calls while it runs beside that of the same calls at rest (limit). Run
 * alone: `node test/bench/rebuild.ts` (QUICK=1 for the short form; EVENTS=200000 for another number).
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { lagOf } from '#projections/engine/positions.ts';
import { projections } from '#projections/index.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { run as runProcess } from '#test/support/processes.ts';
import { instant } from '#test/support/projecting.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { type BenchRow, percentile, printRows } from './row.ts';

/** Milliseconds between the starts of two calls. */
const everyMs = 50;
const targetsOfPost = 10;
/** A post with ten targets, each scheduled, claimed and published. */
const eventsOfPost = 1 + 3 * targetsOfPost;

const fill = async ({ eventStore, workspaceId, memberId }: World, events: number): Promise<number> => {
  const actor = { type: 'member', id: memberId };
  const body = postBody({ content: 'A caption of some length with a link https://example.com/a. '.repeat(4) });
  const clientId = randomUUID();
  const append = (stream: string, post: string, given: readonly (readonly [string, object])[]) => {
    const said = { workspaceId, partitionKey: post, actor, occurredAt: instant(1), schemaVersion: 1 };
    const ids = { commandId: randomUUID(), $correlationId: randomUUID(), $causationId: randomUUID() };
    const metadata = Buffer.from(JSON.stringify({ ...said, ...ids }));
    const made = given.map(([type, data]) => ({
      id: randomUUID(),
      type,
      data: Buffer.from(JSON.stringify(data)),
      metadata,
    }));
    return eventStore.append(
      stream,
      'none',
      made.map((one) => ({ ...one, partitionKey: post, workspaceId })),
    );
  };
  let left = Math.ceil(events / eventsOfPost);
  const total = left * eventsOfPost;
  const write = async (): Promise<void> => {
    while (left-- > 0) {
      const post = randomUUID();
      const targets = Array.from({ length: targetsOfPost }, (_, n) =>
        planned({ targetId: randomUUID(), accountId: randomUUID(), clientId, dueAt: instant(n) }),
      );
      await append(`post-${post}`, post, [
        ['PostScheduled', { clientId, createdBy: actor, body, plan: { number: 1, targets } }],
      ]);
      const claim = { attempt: 1, takeover: 0 };
      const out = { ...claim, externalId: 'e-1', permalink: 'https://x.example/1', publishedAt: instant(1) };
      for (const one of targets) {
        await append(`target-${one.targetId}`, post, [
          ['TargetScheduled', { ...one, postId: post, postRevision: 0 }],
          ['TargetPublishStarted', claim],
          ['TargetPublished', out],
        ]);
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, write));
  return total;
};

/** Latencies of calls that were meant to start at even intervals, milliseconds; until the work has ended. */
const callsDuring = async (world: World, work: Promise<unknown>): Promise<readonly number[]> => {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  ended.catch(() => undefined);
  const calls: Promise<number>[] = [];
  for (let due = performance.now(); !isOver; due += everyMs) {
    await delay(Math.max(0, due - performance.now()));
    const call = async (): Promise<number> => {
      const { status, text } = await world.owner.post('/clients', { name: `Bench ${randomUUID()}`, type: 'brand' });
      if (status !== 200) throw new Error(text);
      return performance.now() - due;
    };
    calls.push(call());
  }
  await ended;
  return Promise.all(calls);
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  const key = `v1:${randomBytes(32).toString('base64')}`;
  const world = await startWorld({ secrets: new Secrets(key), audited: false });
  try {
    const wanted = Number(process.env.EVENTS ?? (quick ? 31_000 : 1_000_000));
    const events = await fill(world, wanted);
    // Its read models have caught up before anything is measured.
    for (const { name } of projections) while ((await lagOf(world.pool, world.log, name)) > 0n) await delay(50);
    const idle = await callsDuring(world, delay(quick ? 5_000 : 20_000));
    let output = '';
    const rebuild = async (): Promise<void> => {
      const env = { DATABASE_URL: world.db.url, SECRET_KEY: key };
      const ended = await runProcess('services/admin/main.ts', { env, args: ['rebuild', 'all'], within: 1_200_000 });
      ({ output } = ended);
      if (ended.code !== 0) throw new Error(output);
    };
    const beside = await callsDuring(world, rebuild());
    // Said by the command at the end of its reading, and when the last one has its indexes, has caught up and is served.
    const [, read = 'NaN'] = /100 % of the store, \d+ events, (\d+) a second/.exec(output) ?? [];
    const ends = [...output.matchAll(/: rebuilt after ([\d.]+) s/g)].map(([, seconds]) => Number(seconds));
    const rate = Math.round(events / Math.max(...ends));
    const [ours, limit] = [percentile(beside, 0.99), percentile(idle, 0.99)];
    const load = `load average ${loadavg()[0]?.toFixed(1)}`;
    return [
      {
        ...{ name: `rebuild: all read models of ${events} events`, unit: 'events/s', ours: rate },
        ...{ goal: '≥ 15,000', ok: rate >= 15_000, note: `with indexes and switch; read at ${read} a second; ${load}` },
      },
      {
        ...{ name: 'rebuild: p99 of POST /clients beside it', unit: 'ms', ours, limit, goal: '≤ 1.5 of limit' },
        ...{ ok: ours <= 1.5 * limit, note: `${beside.length} calls beside ${idle.length} at rest; ${load}` },
      },
    ];
  } finally {
    await world.close();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

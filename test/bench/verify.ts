/**
 * `audit verify` over a workspace of short streams, with the rows that they make: events a second, and the most memory that the
 * process had (it holds the api and the projections too). Run alone: `node test/bench/verify.ts`; EVENTS sets how many.
 */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { verifyWorkspace } from '#services/admin/audit-verify.ts';
import type { Admin } from '#services/admin/context.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { postBody } from '#test/support/samples.ts';
import { type BenchRow, printRows } from './row.ts';

const perStream = 10;
const writers = 16;

const fill = async ({ eventStore, workspaceId, memberId }: World, events: number): Promise<void> => {
  const metadata = Buffer.from(
    JSON.stringify({
      ...{ workspaceId, partitionKey: 'bench', actor: { type: 'member', id: memberId }, commandId: randomUUID() },
      ...{ $correlationId: randomUUID(), $causationId: randomUUID(), occurredAt: new Date().toISOString() },
      schemaVersion: 1,
    }),
  );
  const body = postBody();
  const draft = { clientId: randomUUID(), createdBy: { type: 'member', id: memberId }, body };
  const [made, replaced] = [draft, { body }].map((data) => Buffer.from(JSON.stringify(data))) as [Buffer, Buffer];
  let left = events / perStream;
  const write = async () => {
    while (left-- > 0) {
      const id = randomUUID();
      const stored = Array.from({ length: perStream }, (_, at) => ({
        ...{ id: randomUUID(), type: at === 0 ? 'PostDrafted' : 'DraftReplaced', data: at === 0 ? made : replaced },
        ...{ metadata, workspaceId, partitionKey: id, topic: 'posts' },
      }));
      await eventStore.append(`post-${id}`, 'none', stored);
    }
  };
  await Promise.all(Array.from({ length: writers }, write));
};

const caughtUp = async ({ log, pool }: World): Promise<void> => {
  const [end] = [await log.ends(['posts'])];
  for (;;) {
    const { rows } = await pool.query<{ readonly n: number }>(
      `select count(*)::int as n from unnest($1::text[], $2::int8[]) as e (lane, next) where next > coalesce((
         select max(next_offset) from ops.consumer_positions c
         where c.lane = e.lane and c.consumer_group like 'projection-posts-%'), 0)`,
      [end.map(({ lane }) => lane), end.map(({ nextOffset }) => nextOffset)],
    );
    if (rows[0]?.n === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const events = Number(process.env.EVENTS ?? (quick ? 20_000 : 1_000_000));
  const world = await startWorld({ audited: false });
  const numbering = startNumbering(world);
  const file = path.join(tmpdir(), `verify-bench-${process.pid}.json`);
  try {
    await fill(world, events);
    await numbering.numbered();
    await numbering.stop();
    await caughtUp(world);
    await world.stopProjections();
    const { deps, pool, eventStore, codec, store, log, secrets, operator, workspaceId } = world;
    const signal = new AbortController().signal;
    const admin = {
      ...{ pool, eventStore, codec, store, log, secrets, operator, signal, analytics: null },
      ...{ blobs: deps.blobs, note: () => undefined },
    } as unknown as Admin;
    let most = 0;
    const watching = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 100);
    const started = performance.now();
    const { findings, counted, events: verified } = await verifyWorkspace(admin, workspaceId, file);
    const seconds = (performance.now() - started) / 1_000;
    clearInterval(watching);
    if (findings.length > 0) throw new Error(findings.join('\n'));
    const goal = (90 * events) / 1_000_000;
    return [
      {
        ...{ name: `verify: ${verified} events, ${counted.rows} rows`, unit: 's', ours: seconds },
        ...{ goal: `≤ ${goal}`, ok: seconds <= goal, note: `${Math.round(verified / seconds)} events/s` },
      },
      {
        ...{ name: 'verify: most memory', unit: 'MB', ours: most / 1e6, goal: '≤ 500', ok: most <= 500e6 },
        note: 'with the api of the bench',
      },
    ];
  } finally {
    rmSync(file, { force: true });
    await world.close();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

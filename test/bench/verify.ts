/**
 * The command `audit verify` over a workspace of short streams, with the rows that they make: seconds of the process, its start
 * included, and the most memory that it had. Run alone: `node test/bench/verify.ts`; EVENTS sets how many.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Secrets } from '#runtime/identity/secrets.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { Process } from '#test/support/processes.ts';
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

/** Of a process that runs, bytes; 0: it has ended. */
const highWater = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return 1_024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const events = Number(process.env.EVENTS ?? (quick ? 20_000 : 1_000_000));
  const key = `v1:${randomBytes(32).toString('base64')}`;
  const world = await startWorld({ secrets: new Secrets(key), audited: false });
  const numbering = startNumbering(world);
  const file = path.join(tmpdir(), `verify-bench-${process.pid}.json`);
  try {
    await fill(world, events);
    await numbering.numbered();
    await numbering.stop();
    await caughtUp(world);
    await world.stopProjections();
    const started = performance.now();
    const child = new Process('services/admin/main.ts', {
      env: { DATABASE_URL: world.db.url, SECRET_KEY: key },
      args: ['audit', 'verify', '--workspace', world.workspaceId, '--state', file, '--json'],
    });
    let most = 0;
    const watching = setInterval(async () => {
      most = Math.max(most, await highWater(child.pid));
    }, 20);
    const { code } = await child.exited();
    const seconds = (performance.now() - started) / 1_000;
    clearInterval(watching);
    if (code !== 0) throw new Error(child.output());
    const verified = Number(/"events":\s*(\d+)/.exec(child.output())?.[1]);
    const rows = Number(/"rows":\s*(\d+)/.exec(child.output())?.[1]);
    const goal = (90 * events) / 1_000_000;
    return [
      {
        ...{ name: `verify: ${verified} events, ${rows} rows`, unit: 's', ours: seconds },
        ...{ goal: `≤ ${goal}`, ok: seconds <= goal, note: `${Math.round(verified / seconds)} events/s` },
      },
      {
        ...{ name: 'verify: most memory', unit: 'MB', ours: most / 1e6, goal: '≤ 500', ok: most <= 500e6 },
        note: 'VmHWM of the command',
      },
    ];
  } finally {
    rmSync(file, { force: true });
    await world.close();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

/**
 * 1,000 targets due within one second, and 1,000 due at one instant: how late each publish call starts, and that none is
 * early; then the same with 1,000,000 pending rows in the read model. Production defaults; the publisher in a process of
 * its own, projections beside it keeping up, the sandbox network answering.
 *
 * Run alone: node test/bench/publisher.ts (QUICK=1 for the short form).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sharedServer } from '#test/support/postgres.ts';
import { type Account, eventually, PublishingWorld } from '#test/support/publishing.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';

const due = 1_000;
const perPost = 10;
/** Milliseconds from the last append to the first target's time: longer than the publisher looks ahead. */
const leadMs = 6_000;
const script = fileURLToPath(new URL('./publisher-child.ts', import.meta.url));

interface Late {
  /** Milliseconds from due to the start of the publish call. */
  readonly start: readonly number[];
  /** Milliseconds from due to the call that makes the post visible. */
  readonly boundary: readonly number[];
}

const lines = async (child: ChildProcess): Promise<readonly string[]> => {
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(child, 'exit');
  return text.split('\n');
};

/** Milliseconds from due to the first of its instants, for each target that has one. */
const lateness = (dueAt: ReadonlyMap<string, number>, instants: readonly [string, number][]): readonly number[] => {
  const first = new Map<string, number>();
  for (const [id, at] of instants) if (dueAt.has(id)) first.set(id, Math.min(at, first.get(id) ?? at));
  return [...first].map(([id, at]) => at - (dueAt.get(id) ?? Number.NaN));
};

/** Schedules `due` targets whose times are spread over so many milliseconds, lets them go out, measures. */
const round = async (
  world: PublishingWorld,
  clients: readonly (readonly Account[])[],
  overMs: number,
): Promise<Late> => {
  const child = spawn(process.execPath, [script, world.url], { stdio: ['pipe', 'pipe', 'inherit'] });
  const said = lines(child);
  try {
    const dueAt = new Map<string, number>();
    const from = Date.now() + leadMs;
    await Promise.all(
      clients.map(async (accounts, at) => {
        const when = (place: number) => from + Math.floor(((place * clients.length + at) * overMs) / due);
        const { targetIds } = await world.schedule(accounts, { text: `post ${at}`, dueAt: when });
        for (const [place, id] of targetIds.entries()) dueAt.set(id, when(place));
      }),
    );
    if (Date.now() > from - 4_000) throw new Error('scheduling took too long for this round');
    await eventually(
      'all begun and over',
      async () => {
        // One cheap question now and then: watching must not cost what is measured.
        await delay(250);
        const { rows } = await world.pool.query(
          `select count(*)::int as n from read.post_targets where id = any($1::uuid[]) and attempts > 0 and status <> 'publishing'`,
          [[...dueAt.keys()]],
        );
        return rows[0].n === due;
      },
      60_000,
    );
    child.kill('SIGTERM');
    const begun = JSON.parse((await said).at(-2) ?? '[]') as [string, number][];
    const calls = await world.sandbox.ledger({ targetIds: [...dueAt.keys()] });
    const made = calls.map(({ targetId, callStartedAt }): [string, number] => [targetId, callStartedAt.getTime()]);
    const start = lateness(dueAt, begun);
    const boundary = lateness(dueAt, made);
    // A machine that is overloaded defers some calls; their start was in time or not all the same.
    if (start.length !== due) throw new Error(`${start.length} targets begun of ${due}`);
    return { start, boundary };
  } finally {
    child.kill('SIGKILL');
  }
};

/** Rows of targets that are due much later; the streams behind them are never asked for. */
const fill = async (pool: pg.Pool, rows: number): Promise<void> => {
  await pool.query(
    `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
       platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, next_action_at,
       post_revision, applied_revision)
     select gen_random_uuid(), gen_random_uuid(), 0, now(), now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
       'x', 'pending', at, 'UTC', 0, 'managed', 0, 0, at, 0, 0
     from (select now() + interval '1 hour' + n * interval '1 second' as at from generate_series(1, $1) as n) as later`,
    [rows],
  );
  await pool.query('vacuum analyze read.post_targets_v1');
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const server = await sharedServer();
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  const name = `bench_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${name}`);
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const world = await PublishingWorld.open(url.href);
  try {
    const clients = await Promise.all(
      Array.from({ length: due / perPost }, async () => {
        const id = await world.client();
        return Promise.all(Array.from({ length: perPost }, () => world.connect(id, 'x')));
      }),
    );
    const rounds = quick ? 1 : 3;
    const pending = quick ? 100_000 : 1_000_000;
    const measure = async () => {
      const second: Late[] = [];
      const instant: Late[] = [];
      for (let at = 0; at < rounds; at += 1) {
        second.push(await round(world, clients, 1_000));
        instant.push(await round(world, clients, 0));
      }
      return { second, instant };
    };
    await round(world, clients, 1_000);
    const empty = await measure();
    await fill(world.pool, pending);
    const full = await measure();
    const of = (late: readonly Late[], kind: keyof Late) => spread(late.map((one) => percentile(one[kind], 0.99)));
    const all = [...empty.second, ...empty.instant, ...full.second, ...full.instant];
    const early = all.flatMap(({ start, boundary }) => [...start, ...boundary]).filter((ms) => ms < 0).length;
    const row = (label: string, late: readonly Late[], goal: string, ok: (ms: number) => boolean): BenchRow => {
      const { median, min, max } = of(late, 'start');
      const boundary = of(late, 'boundary');
      return {
        name: label,
        unit: 'ms p99',
        ours: median,
        goal,
        ok: ok(median),
        note: `min ${Math.round(min)}, max ${Math.round(max)} of ${rounds}; call that shows the post: p99 ${Math.round(boundary.median)}, made by ${Math.min(...late.map((one) => one.boundary.length))} of ${due}`,
      };
    };
    const base = of(empty.second, 'start').median;
    return [
      { name: 'targets published early', unit: 'targets', ours: early, goal: '0', ok: early === 0 },
      row('start, 1,000 due in one second', empty.second, '≤ 250', (ms) => ms <= 250),
      row('start, 1,000 due at one instant', empty.instant, 'shown', () => true),
      row(
        `the same second, ${pending.toLocaleString('en')} rows pending`,
        full.second,
        `≤ 1.2 × ${Math.round(base)} and ≤ 250`,
        (ms) => ms <= Math.max(1.2 * base, base + 5) && ms <= 250,
      ),
      row(`the same instant, ${pending.toLocaleString('en')} rows pending`, full.instant, 'shown', () => true),
    ];
  } finally {
    await world.close();
    await admin.query(`drop database if exists ${name} with (force)`);
    await admin.end();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

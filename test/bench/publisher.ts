/**
 * 1,000 targets due within one second, and 1,000 due at one instant: how late each publish call starts, and that none
 * is early; then the same with 1,000,000 pending rows in the read model, and with 1,000,000 unknown outcomes that wait.
 * Production defaults; the publisher in its own process, projections beside it, the sandbox network answering.
 *
 * Run alone: node test/bench/publisher.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { view } from '#projections/shapes.ts';
import type { Account, PublishingWorld } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';
import { lateness, publisherOf, withWorlds } from './publisher-rounds.ts';
import { type BenchRow, percentile, printRows, type Spread, spread } from './row.ts';

const due = 1_000;
const perPost = 10;
/** Milliseconds from the last append to the first target's time: longer than the publisher looks ahead. */
const leadMs = 6_000;

interface Late {
  /** Milliseconds from due to the start of the publish call. */
  readonly start: readonly number[];
  /** Milliseconds from due to the call that makes the post visible. */
  readonly boundary: readonly number[];
}

/** Schedules `due` targets with times spread over so many milliseconds, waits until they are published, measures. */
const round = async (
  world: PublishingWorld,
  clients: readonly (readonly Account[])[],
  overMs: number,
): Promise<Late> => {
  const child = publisherOf(world);
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
    await until(
      'all begun and over',
      async () => {
        // One cheap query now and then: watching must not add to the measured cost.
        await delay(250);
        const { rows } = await world.pool.query(
          `select count(*)::int as n from ${view('post_targets')} where id = any($1::uuid[]) and attempts > 0 and status <> 'publishing'`,
          [[...dueAt.keys()]],
        );
        return rows[0].n === due;
      },
      { withinMs: 60_000 },
    );
    const begun = await child.end();
    const calls = await world.sandbox.ledger({ targetIds: [...dueAt.keys()] });
    const made = calls.map(({ targetId, callStartedAt }): [string, number] => [targetId, callStartedAt.getTime()]);
    const start = lateness(dueAt, begun);
    const boundary = lateness(dueAt, made);
    // An overloaded machine defers some calls; whether they started in time counts all the same.
    if (start.length !== due) throw new Error(`${start.length} targets begun of ${due}`);
    return { start, boundary };
  } finally {
    child.kill();
  }
};

/** Rows of targets; their streams are never read. @param at SQL of the time of row `n` */
const fill = async (pool: pg.Pool, rows: number, status: string, at: string): Promise<void> => {
  await pool.query(
    `insert into read.post_targets_v1 (id, workspace_id, revision, created_at, updated_at, post_id, client_id, account_id,
       platform, status, due_at, timezone, jitter_seconds, schedule_mode, attempts, takeover, next_action_at,
       post_revision, applied_revision)
     select gen_random_uuid(), $2, 0, now(), now(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
       'x', $3, at, 'UTC', 0, 'managed', 0, 0, at, 0, 0
     from (select ${at} as at from generate_series(1, $1) as n) as rows`,
    [rows, randomUUID(), status],
  );
  await pool.query('vacuum analyze read.post_targets_v1');
};

/** Unknown outcomes, each with the lease that holds its next reconcile: more than an hour from now. */
const park = async (pool: pg.Pool, rows: number): Promise<void> => {
  await fill(pool, rows, 'outcome_unknown', `now() - n * interval '0.1 s'`);
  await pool.query(
    `insert into ops.work_leases (kind, id, holder, epoch, until, not_before)
     select 'target', id::text, 'bench', 0, now(), now() + interval '1 hour' + random() * interval '1 hour'
     from ${view('post_targets')} where status = 'outcome_unknown'`,
  );
  await pool.query('vacuum analyze ops.work_leases');
};

const accountsOf = (world: PublishingWorld): Promise<readonly (readonly Account[])[]> =>
  Promise.all(
    Array.from({ length: due / perPost }, async () => {
      const id = await world.client();
      return Promise.all(Array.from({ length: perPost }, () => world.connect(id, 'x')));
    }),
  );

/** The same second in two databases, in turn; the second one also has waiting unknown outcomes. */
const besideParked = (quick: boolean): Promise<readonly BenchRow[]> =>
  withWorlds(2, async (worlds) => {
    const [none, parked] = worlds as [PublishingWorld, PublishingWorld];
    const rows = quick ? 100_000 : 1_000_000;
    await park(parked.pool, rows);
    const both = await Promise.all(
      [none, parked].map(async (world) => ({ world, clients: await accountsOf(world), p99: [] as number[] })),
    );
    for (const { world, clients } of both) await round(world, clients, 1_000);
    for (let turn = 0; turn < (quick ? 1 : 5); turn += 1) {
      for (const { world, clients, p99 } of both) {
        p99.push(percentile((await round(world, clients, 1_000)).start, 0.99));
      }
    }
    const [without, ours] = both.map(({ p99 }) => spread(p99)) as [Spread, Spread];
    return [
      {
        name: `1,000 due in one second, ${rows.toLocaleString('en')} outcomes parked`,
        unit: 'ms p99',
        ours: ours.median,
        limit: without.median,
        goal: '≤ 250 and ≤ 1.5 × none (limit)',
        ok: ours.median <= 250 && ours.median <= 1.5 * without.median,
        note: `min ${Math.round(ours.min)}, max ${Math.round(ours.max)}; none: min ${Math.round(without.min)}, max ${Math.round(without.max)}`,
      },
    ];
  });

const besidePending = (quick: boolean): Promise<readonly BenchRow[]> =>
  withWorlds(1, async (worlds) => {
    const [world] = worlds as [PublishingWorld];
    const clients = await accountsOf(world);
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
    await fill(world.pool, pending, 'pending', `now() + interval '1 hour' + n * interval '1 second'`);
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
  });

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => [
  ...(await besidePending(quick)),
  ...(await besideParked(quick)),
];

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

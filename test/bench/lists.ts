/**
 * Lists: the first page and one 100,000 rows deep, at the same price. One post is made over HTTP; its row, and those of
 * its ten targets, are then copied by SQL into the read tables (no streams behind the copies: lists read no streams).
 *
 * Run alone: node test/bench/lists.ts (QUICK=1 for the short form).
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Answer, Connection, closedLoop, wire } from './load.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

const rows = 120_000;
const depth = 100_000;
const pageRows = 50;
const callers = 4;
const goal = 1.3;

export const makePost = async (world: Standalone): Promise<void> => {
  const body = JSON.stringify({
    clientId: world.clientId,
    content: 'A post of ordinary length, as people write them, with a link https://example.com/winter.',
    targets: { mode: 'group', clientId: world.clientId },
    variants: [
      { platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } },
      { platform: 'pinterest', overrides: { boardId: '918273645' } },
    ],
    schedule: { type: 'at', scheduledAt: new Date(Date.now() + 86_400_000).toISOString() },
  });
  await closedLoop(world.port, {
    callers: 1,
    ms: 1,
    next: () => wire({ method: 'POST', path: '/v1/posts', key: world.nextKey(), body, idempotencyKey: randomUUID() }),
  });
  await caughtUp(world.pool);
};

interface Changes {
  /** Columns and expressions that differ between the copies. */
  readonly posts?: Readonly<Record<string, string>>;
  readonly targets?: Readonly<Record<string, string>>;
}

/** Copies of the one row, each a minute older and due a minute later than the previous one. */
export const copyRows = async (pool: pg.Pool, changes: Changes = {}): Promise<void> => {
  const columnsOf = async (table: string): Promise<readonly string[]> => {
    const { rows: found } = await pool.query<{ name: string }>(
      `select attname as name from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    );
    return found.map(({ name }) => name);
  };
  const copy = async (table: string, source: string, changed: Readonly<Record<string, string>>): Promise<void> => {
    const columns = await columnsOf(table);
    const values = columns.map((name) => changed[name] ?? `one.${name}`);
    await pool.query(`insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from ${source}`);
  };
  await pool.query(`create table bench_posts as select gen_random_uuid() as id, n from generate_series(1, ${rows}) n`);
  const older = "one.created_at - n * interval '1 minute'";
  const later = "one.due_at + n * interval '1 minute'";
  await copy('read.posts_v1', '(select * from read.posts_v1 limit 1) one, bench_posts b', {
    id: 'b.id',
    created_at: older,
    updated_at: older,
    scheduled_at: "one.scheduled_at + n * interval '1 minute'",
    ...changes.posts,
  });
  await copy('read.post_targets_v1', `(select * from read.post_targets_v1 order by id limit 10) one, bench_posts b`, {
    id: 'gen_random_uuid()',
    post_id: 'b.id',
    due_at: later,
    next_action_at: later,
    ...changes.targets,
  });
  await pool.query('vacuum analyze read.posts_v1');
  await pool.query('vacuum analyze read.post_targets_v1');
};

const withQuery = (path: string, query: string): string => `${path}${path.includes('?') ? '&' : '?'}${query}`;

const cursorOf = ({ body }: Answer): string =>
  (JSON.parse(body.toString('utf8')) as { page: { nextCursor: string } }).page.nextCursor;

/** Walks as a caller does, 100 rows at a time, and returns the cursor behind `depth` rows. */
const walk = async (world: Standalone, path: string): Promise<string> => {
  const connection = await Connection.open(world.port);
  try {
    let cursor = '';
    for (let seen = 0; seen < depth; seen += 100) {
      const from = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await connection.send(
        wire({ method: 'GET', path: withQuery(path, `limit=100${from}`), key: world.nextKey() }),
      );
      if (answer.status !== 200) throw new Error(`after ${seen} rows: ${answer.body.toString('utf8')}`);
      cursor = cursorOf(answer);
    }
    return cursor;
  } finally {
    connection.close();
  }
};

export const compare = async (world: Standalone, path: string, rounds: number, roundMs: number): Promise<BenchRow> => {
  const cursor = encodeURIComponent(await walk(world, path));
  const page = (from: string) => () =>
    wire({ method: 'GET', path: withQuery(path, `limit=${pageRows}${from}`), key: world.nextKey() });
  const turns = { first: page(''), deep: page(`&cursor=${cursor}`) };
  const medians = { first: [] as number[], deep: [] as number[] };
  for (const next of Object.values(turns)) await closedLoop(world.port, { callers, ms: 1_000, next });
  for (let round = 0; round < rounds; round += 1) {
    for (const which of ['first', 'deep'] as const) {
      const { latencies } = await closedLoop(world.port, { callers, ms: roundMs, next: turns[which] });
      medians[which].push(percentile(latencies, 0.5));
    }
  }
  const first = spread(medians.first);
  const deep = spread(medians.deep);
  const ratio = deep.median / first.median;
  const range = ({ min, max }: { min: number; max: number }): string => `${min.toFixed(2)} to ${max.toFixed(2)}`;
  return {
    name: `lists: GET ${path} ${depth.toLocaleString('en')} rows deep`,
    unit: 'ms p50',
    ours: deep.median,
    limit: first.median,
    goal: `≤ ${goal} × page 1`,
    ok: ratio <= goal,
    note: `pages of ${pageRows}, ${callers} callers; page 1 ${range(first)}, deep ${range(deep)}`,
  };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const [rounds, roundMs] = quick ? [5, 1_000] : [6, 5_000];
  const world = await startStandalone();
  try {
    for (const line of world.environment) console.log(line);
    await makePost(world);
    await copyRows(world.pool);
    return [
      await compare(world, '/v1/posts', rounds, roundMs),
      await compare(world, '/v1/post-targets', rounds, roundMs),
    ];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

/**
 * The api under load, standalone with everything on: POST /posts with ten targets, and GET /posts/{id}; beside bare Koa
 * routes that do the least of the same on the same server, turn by turn. Production defaults; the callers rotate over
 * 2,000 keys. Posts are due in a day, so that the publisher looks for work and finds none.
 *
 * Run alone: node test/bench/api.ts (QUICK=1 for the short form; ONLY=post or ONLY=get for one half; BENCH_PROFILE=<dir>
 * writes a CPU profile of each thread of standalone there).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { cpuSeconds } from './environment.ts';
import { type Answer, closedLoop, openLoop, wire } from './load.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';
import { caughtUp, type Standalone, startStandalone, watchLag } from './standalone.ts';
import { postOfTen } from './ten-targets.ts';

const callers = 32;
const goal = { posts: 900, p99: 120, lag: 1_000, get: 0.6 };
/** Share of the closed loop's rate at which the open loop runs. */
const openShare = 0.8;

const composer = (world: Standalone) => {
  const body = JSON.stringify(postOfTen(world));
  return () => wire({ method: 'POST', path: '/v1/posts', key: world.nextKey(), body, idempotencyKey: randomUUID() });
};

const postOf = ({ body }: Answer) =>
  (JSON.parse(body.toString('utf8')) as { data: { id: string; targets: readonly { id: string }[] } }).data;

/** What one POST stored, for the bare route to store again. */
const sampleOf = async (world: Standalone, next: () => string): Promise<string> => {
  let answer: Answer | undefined;
  await closedLoop(world.port, { callers: 1, ms: 1, next, seen: (one) => (answer = one) });
  if (answer === undefined) throw new Error('nothing was answered');
  const { id, targets } = postOf(answer);
  const stored = async (stream: string): Promise<[string, string]> => {
    const { rows } = await world.pool.query('select data, metadata from es.events where stream = $1', [stream]);
    return [rows[0].data.toString('base64'), rows[0].metadata.toString('base64')];
  };
  const sample = {
    post: await stored(`post-${id}`),
    targets: await Promise.all(targets.map((one) => stored(`target-${one.id}`))),
    answer: answer.body.toString('utf8'),
  };
  return JSON.stringify(sample);
};

interface Bare {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const startBare = async (databaseUrl: string, sample: string): Promise<Bare> => {
  const script = fileURLToPath(new URL('./bare-api.ts', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [script, databaseUrl, sample], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  const [said] = await Promise.race([once(child.stdout ?? child, 'data'), ended]);
  const port = Number(String(said));
  if (!(port > 0)) throw new Error('the bare api did not start');
  return { port, pid: child.pid ?? Number.NaN, stop };
};

/** Milliseconds of processor for each answer, by process: comparable on a machine with other load. */
const costs = async (world: Standalone, pid: number, work: () => Promise<number>): Promise<string> => {
  const postgres = await world.postgresPids();
  const used = () => ({
    server: cpuSeconds(pid),
    postgres: postgres.reduce((sum, pid) => sum + (cpuSeconds(pid) || 0), 0),
    load: process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
  });
  const before = used();
  const count = await work();
  const after = used();
  const each = (part: keyof typeof after): string => (((after[part] - before[part]) * 1_000) / count).toFixed(2);
  return `server ${each('server')}, postgres ${each('postgres')}, load generator ${each('load')}`;
};

/** Of the rounds, in order: what a run gains or loses while it lasts. */
const inOrder = (rates: readonly number[]): string => rates.map(Math.round).join(', ');

interface Timing {
  readonly rounds: number;
  readonly roundMs: number;
  readonly openMs: number;
  readonly eventsBefore: number;
}

const benchPost = async (world: Standalone, bare: Bare, timing: Timing): Promise<BenchRow[]> => {
  const { rounds, roundMs, openMs } = timing;
  const next = composer(world);
  const plain = () => next().replace('/v1/posts', '/posts');
  await closedLoop(world.port, { callers, ms: 3_000, next });
  await closedLoop(bare.port, { callers, ms: 1_000, next: plain });
  const figures = { ours: [] as number[], bare: [] as number[] };
  const latencies: number[] = [];
  let lag = 0;
  let cost = '';
  let bareCost = '';
  const lagging = async (work: () => Promise<void>): Promise<void> => {
    const watch = watchLag(world.pool);
    try {
      await work();
    } finally {
      lag = Math.max(lag, await watch.stop());
    }
    await caughtUp(world.pool);
  };
  await caughtUp(world.pool);
  for (let round = 0; round < rounds; round += 1) {
    await lagging(async () => {
      cost = await costs(world, world.pid, async () => {
        const { rate, latencies: these } = await closedLoop(world.port, { callers, ms: roundMs, next });
        figures.ours.push(rate);
        for (const one of these) latencies.push(one);
        return these.length;
      });
    });
    bareCost = await costs(world, bare.pid, async () => {
      const { rate, latencies: these } = await closedLoop(bare.port, { callers, ms: roundMs / 2, next: plain });
      figures.bare.push(rate);
      return these.length;
    });
  }
  const closedLag = lag;
  lag = 0;
  const ours = spread(figures.ours);
  const limit = spread(figures.bare);
  const openRate = ours.median * openShare;
  let open: readonly number[] = [];
  let openCost = '';
  await lagging(async () => {
    openCost = await costs(world, world.pid, async () => {
      open = (await openLoop(world.port, { rate: openRate, ms: openMs, next })).latencies;
      return open.length;
    });
  });
  const closed99 = percentile(latencies, 0.99);
  const open99 = percentile(open, 0.99);
  return [
    {
      name: `api: POST /posts, 10 targets, ${callers} callers`,
      unit: 'posts/s',
      ours: ours.median,
      limit: limit.median,
      goal: `≥ ${goal.posts}`,
      ok: ours.median >= goal.posts,
      note:
        `${Math.round(ours.median * 11).toLocaleString('en')} events/s; ours ${inOrder(figures.ours)}, bare append ${inOrder(figures.bare)}; processor ms each: ${cost}; bare: ${bareCost}; ` +
        `load average ${loadavg()[0]?.toFixed(1)}; ${timing.eventsBefore.toLocaleString('en')} events before`,
    },
    {
      name: `api: POST /posts p99, ${callers} callers`,
      unit: 'ms',
      ours: closed99,
      goal: `≤ ${goal.p99}`,
      ok: closed99 <= goal.p99,
      note: `p50 ${percentile(latencies, 0.5).toFixed(1)}, p99.9 ${percentile(latencies, 0.999).toFixed(1)}`,
    },
    {
      name: `api: POST /posts p99, open loop ${Math.round(openRate)}/s`,
      unit: 'ms',
      ours: open99,
      goal: `≤ ${goal.p99}`,
      ok: open99 <= goal.p99,
      note: `from the intended start; p50 ${percentile(open, 0.5).toFixed(1)}; largest lag of the read model ${Math.round(lag)} ms; processor ms each: ${openCost}`,
    },
    {
      name: 'api: largest lag of the posts read model',
      unit: 'ms',
      ours: Math.max(lag, closedLag),
      goal: `≤ ${goal.lag}`,
      ok: Math.max(lag, closedLag) <= goal.lag,
      note: `closed loop ${Math.round(closedLag)}, open loop ${Math.round(lag)}`,
    },
  ];
};

const benchGet = async (world: Standalone, bare: Bare, { rounds, roundMs }: Timing): Promise<BenchRow[]> => {
  const all: string[] = [];
  // More than the api keeps rendered, so that a walk over all of them finds none of those that it kept.
  while (all.length < 5_000)
    await closedLoop(world.port, {
      callers,
      ms: 2_000,
      next: composer(world),
      seen: (one) => all.push(postOf(one).id),
    });
  await caughtUp(world.pool);
  let ids: readonly string[] = all;
  let at = 0;
  const nextId = () => ids[at++ % ids.length] ?? '';
  const ours = () => wire({ method: 'GET', path: `/v1/posts/${nextId()}`, key: world.nextKey() });
  const plain = () => wire({ method: 'GET', path: `/posts/${nextId()}`, key: world.keys[0] ?? '' });
  // The same bytes: the bare route returns our answer.
  let answer = '';
  await closedLoop(world.port, { callers: 1, ms: 1, next: ours, seen: (one) => (answer = one.body.toString('utf8')) });
  await world.pool.query('insert into bare.answers select id, $2 from unnest($1::uuid[]) id', [all, answer]);
  await world.pool.query('analyze bare.answers');
  const measured = async (what: string, posts: readonly string[]): Promise<BenchRow> => {
    ids = posts;
    await closedLoop(world.port, { callers, ms: 2_000, next: ours });
    await closedLoop(bare.port, { callers, ms: 1_000, next: plain });
    const figures = { ours: [] as number[], bare: [] as number[] };
    const latencies: number[] = [];
    let cost = '';
    let bareCost = '';
    for (let round = 0; round < rounds; round += 1) {
      cost = await costs(world, world.pid, async () => {
        const { rate, latencies: these } = await closedLoop(world.port, { callers, ms: roundMs, next: ours });
        figures.ours.push(rate);
        for (const one of these) latencies.push(one);
        return these.length;
      });
      bareCost = await costs(world, bare.pid, async () => {
        const { rate, latencies: these } = await closedLoop(bare.port, { callers, ms: roundMs, next: plain });
        figures.bare.push(rate);
        return these.length;
      });
    }
    const mine = spread(figures.ours);
    const limit = spread(figures.bare);
    return {
      name: `api: GET /posts/{id}, 10 targets, ${callers} callers, ${what}`,
      unit: 'answers/s',
      ours: mine.median,
      limit: limit.median,
      goal: `≥ ${goal.get} limit`,
      ok: mine.median >= goal.get * limit.median,
      note:
        `${answer.length.toLocaleString('en')} bytes; ours ${inOrder(figures.ours)}, bare ${inOrder(figures.bare)}; p99 ${percentile(latencies, 0.99).toFixed(1)} ms; processor ms each: ${cost}; bare: ${bareCost}; ` +
        `load average ${loadavg()[0]?.toFixed(1)}`,
    };
  };
  return [await measured('1,000 posts', all.slice(0, 1_000)), await measured(`${all.length} posts`, all)];
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const timing: Timing = quick
    ? { rounds: 3, roundMs: 5_000, openMs: 5_000, eventsBefore: 50_000 }
    : { rounds: 3, roundMs: 20_000, openMs: 60_000, eventsBefore: 1_000_000 };
  const only = process.env.ONLY;
  const world = await startStandalone({ eventsBefore: timing.eventsBefore });
  let bare: Bare | null = null;
  try {
    for (const line of world.environment) console.log(line);
    bare = await startBare(world.databaseUrl, await sampleOf(world, composer(world)));
    return [
      ...(only === 'get' ? [] : await benchPost(world, bare, timing)),
      ...(only === 'post' ? [] : await benchGet(world, bare, timing)),
    ];
  } finally {
    await bare?.stop();
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));

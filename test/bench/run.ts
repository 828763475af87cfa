/**
 * `make bench`: every bench in its own process, one after the other, and one table at the end. A bench is a file that
 * exports `run({ quick })`; the table marks a missed goal, and the run still succeeds.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { type BenchRow, printRows } from './row.ts';

const names = [
  'event-store',
  'eventstoredb',
  'relay',
  'projections',
  'api',
  'composing',
  'approvals',
  'campaigns',
  'quota',
  'lists',
  'filters',
  'mcp',
  'tokens',
  'console',
  'publisher',
  'publisher-shares',
  'networks',
  'memory',
  'idle',
  'bytes',
  'packing',
  'webhooks',
  'neighbour',
  'pull',
  'feed',
  'asof',
  'verify',
  'rebuild',
] as const;

const help = `usage: npm run bench -- [--only <name>]…      (or: make bench ARGS="--only api")

Measures ours, beside the bare clients (limit) and other libraries (peer) doing the same work on the same servers.

  --only <name>   this bench alone; may be given several times: ${names.join(', ')}
  --help          print this

Environment: QUICK=1 takes the short form, for development: its figures are not comparable.
DATABASE_URL, KAFKA_BROKERS, ESDB_URL give real servers; each figure names what it was measured on. BENCH_PROFILE=<dir>: CPU profiles of standalone.
The exit code is 0 also when a goal is missed: the table says MISSED. It is 1 when a bench could not run.`;

interface Reported {
  readonly rows: readonly BenchRow[];
}

const fileOf = (name: string): string => path.join(import.meta.dirname, `${name}.ts`);

/** Runs in the child: `run` of one bench; sends its rows to the parent. */
const runOne = async (name: string): Promise<void> => {
  const { run } = (await import(fileOf(name))) as {
    run: (options: { readonly quick: boolean }) => Promise<readonly BenchRow[]>;
  };
  const rows = await run({ quick: process.env.QUICK === '1' });
  await new Promise((resolve) => process.send?.({ rows } satisfies Reported, resolve));
  process.disconnect();
};

/** Null when the bench could not run. Its output goes to ours. */
const inChild = async (name: string): Promise<readonly BenchRow[] | null> => {
  const child = fork(import.meta.filename, ['--child', name], { serialization: 'advanced' });
  const stop = (): void => void child.kill('SIGTERM');
  process.once('SIGINT', stop).once('SIGTERM', stop);
  let rows: readonly BenchRow[] | null = null;
  child.on('message', (reported) => {
    ({ rows } = reported as Reported);
  });
  // Its last message may still be on its way when it has ended.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  process.off('SIGINT', stop).off('SIGTERM', stop);
  // The rows are its last step: a bench that sent them has run to the end.
  return rows;
};

/** Ours as a share of the limit and a multiple of the peer, where there are such. */
const withRatio = (row: BenchRow): BenchRow => {
  const parts = [
    ...(row.limit === undefined ? [] : [`${(row.ours / row.limit).toFixed(2)} × limit`]),
    ...(row.peer === undefined ? [] : [`${(row.ours / row.peer).toFixed(2)} × peer`]),
  ];
  return { ...row, ratio: parts.join(', ') };
};

const describe = async (): Promise<void> => {
  const server = await sharedServer();
  try {
    for (const line of await environment(server.url)) console.log(line);
    console.log(`postgres server: ${server.source}; seed: none, inputs are fixed`);
  } finally {
    await server.stop();
  }
};

const main = async (only: readonly string[]): Promise<void> => {
  const unknown = only.find((name) => !names.some((known) => known === name));
  if (unknown !== undefined) throw new Error(`no bench is called ${unknown}: there are ${names.join(', ')}`);
  const chosen = names.filter((name) => (only.length === 0 || only.includes(name)) && existsSync(fileOf(name)));
  if (process.env.QUICK === '1') console.log('QUICK=1: the short form');
  await describe();
  const rows: BenchRow[] = [];
  const broken: string[] = [];
  for (const name of chosen) {
    const before = loadavg()[0]?.toFixed(1);
    const started = performance.now();
    console.log(`\n${name} …`);
    const made = await inChild(name);
    const seconds = Math.round((performance.now() - started) / 1_000);
    console.log(`${name}: ${seconds} s, load average before ${before}${made === null ? ', FAILED' : ''}`);
    if (made === null) broken.push(name);
    else rows.push(...made.map(withRatio));
  }
  console.log();
  printRows(rows);
  const missed = rows.filter((row) => !row.ok).length;
  console.log(
    `\n${rows.length} figures, ${missed} MISSED${broken.length === 0 ? '' : `; could not run: ${broken.join(', ')}`}`,
  );
  if (broken.length > 0) process.exitCode = 1;
};

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      child: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) console.log(help);
  else if (values.child !== undefined) await runOne(values.child);
  else await main(values.only ?? []);
} catch (error) {
  console.error(error instanceof Error ? (process.argv.includes('--child') ? error : error.message) : error);
  process.exitCode = 1;
}

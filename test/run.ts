/**
 * `make test`: types, lint, then every test file, three processes at once, two worlds among them, and two that wait, over
 * one shared Postgres and one ClickHouse; while the processors rest, up to seven. Short files take turns in a process: its
 * start costs as much as one of them. Of files that kill at each step or walk a long table, and of the rows of such tables in
 * others, a run draws a quarter. The last line is `N passed, N failed` (`, N skipped`), the one before names unsteady files;
 * the exit code is 1 when anything failed.
 */
import { randomBytes } from 'node:crypto';
import { globSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sharedClickHouse } from './support/clickhouse.ts';
import { memoryFolder } from './support/memory-folder.ts';
import { sharedServer } from './support/postgres.ts';
import { offerServers } from './support/run-servers.ts';
import {
  checkJob,
  costOf,
  declares,
  type FileJob,
  fileJob,
  type Job,
  limitOf,
  type Outcome,
  type SharedJob,
  sharedJob,
  stopAll,
} from './support/runner.ts';
import { partOf, type Random, seeded } from './support/seed.ts';
import { LEAST_TIMEOUT_MS } from './support/suite.ts';

const HELP = `usage: npm test -- [--all] [--quick] [--only <text>] [--dir <folder>]

  --all            all, where a run takes a quarter of what kills at each step and of the rows of long tables
  --quick          types, lint, the rules of the house, schemas and domain: within a minute, for each save
  --only <text>    run only, and all, that has this text in its path ("types" and "lint" are paths too)
  --dir <folder>   run the files of this folder alone: no types, no lint, no shared servers
  --help           print this

Environment: CI=true makes a skipped test a failure. DATABASE_URL, CLICKHOUSE_URL, KAFKA_BROKERS, ESDB_URL give
real servers. SEED=<n> plays a random test again, and a run with the same files.`;

type Work = Job | SharedJob;

/** How many processes run at once on two cores: most of them wait for part of their time. */
const AT_ONCE = 3;
/** Beside them, of those that do little but wait. */
const WAITING_AT_ONCE = 2;
/**
 * Of the three, worlds: files that start many processes. Their places are kept for them: with something short in them, the
 * worlds would run last, alone, and leave a core idle.
 */
const WORLDS_AT_ONCE = 2;
const isWorld = ({ name }: Work): boolean => /[\\/]e2e[\\/]/.test(name);
/** One more begins, up to so many, after a look in which this part of the processors' time was nobody's. */
const MOST_AT_ONCE = 7;
const REST_ENOUGH = 0.15;
const LOOK_MS = 1_000;
/** How many short files take turns, at most and at least. */
const MOST_IN_TURN = 32;
const LEAST_IN_TURN = 4;
const SLOWEST = 5;
/** The processors are what a run waits for: this is the list to shorten. */
const BUSIEST = 12;
const MOST_AGAIN = 4;
const root = path.resolve(import.meta.dirname, '..');
const prepareJob = checkJob('prepare', [path.join(root, 'test/support/prepare.ts')], root);
/** Where the files of `--quick` begin; the names on disk start a Postgres of their own. */
const QUICK = [
  'test/folder-papers.test.ts',
  'test/papers.test.ts',
  'test/walks.test.ts',
  ...['test/architecture.test.ts', 'test/names-on-disk.test.ts', 'test/patterns.test.ts'],
  ...['test/mutants/', 'test/schemas/', 'test/services/domain/'],
];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      ...{ quick: { type: 'boolean' }, only: { type: 'string' } },
      ...{ dir: { type: 'string' }, help: { type: 'boolean' }, all: { type: 'boolean' } },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const started = performance.now();
  const rest = restOf();
  const { dir, only = '', quick = false, all = dir !== undefined || quick || only !== '' } = values;
  const random = all ? undefined : seeded('what this run draws');
  const { parallel, serial, files } = plan(dir, only, quick, random);
  // A third of a file's start is stripping and compiling; its own children inherit this.
  const env: Record<string, string> = { NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/node') };
  const needsServers = dir === undefined && !quick && files.length > 0;
  const servers = needsServers ? await startServers() : undefined;
  Object.assign(env, servers?.env, random && { TEST_DRAWS: String(random.seed) });

  const outcomes: Outcome[] = [];
  let unsteady: readonly string[] = [];
  const leave = (signal: NodeJS.Signals) => {
    console.log(`\n${signal}: stopping`);
    void Promise.allSettled([stopAll(), servers?.stop()]).then(() => process.exit(130));
  };
  process.on('SIGINT', leave).on('SIGTERM', leave).on('SIGHUP', leave);
  try {
    let prepared = Promise.resolve();
    const carryOut = async (work: Work): Promise<void> => {
      // Types and lint need nothing of it.
      if ('runAll' in work || 'file' in work) await prepared;
      const ended = 'runAll' in work ? await work.runAll(env) : [await work.run(env)];
      outcomes.push(...ended);
      ended.forEach(show);
    };
    if (needsServers) {
      env.TEST_BUNDLES = path.join(root, '.cache/tests');
      prepared = carryOut(prepareJob);
    }
    await sideBySide(parallel, carryOut);
    for (const job of serial) await carryOut(job);
    unsteady = await again(files, outcomes, env);
  } finally {
    await servers?.stop();
    process.off('SIGINT', leave).off('SIGTERM', leave).off('SIGHUP', leave);
  }
  process.exitCode = conclude(outcomes, unsteady, started, rest()) ? 0 : 1;
}

/** Tells, at each call, which part of the processors' time since the call before nobody took. */
function restOf(): () => number {
  const sum = () => {
    const all = cpus().flatMap(({ times }) => Object.values(times));
    const idle = cpus().map(({ times }) => times.idle);
    return [idle, all].map((of) => of.reduce((total, ms) => total + ms, 0)) as [number, number];
  };
  let [idleBefore, before] = sum();
  return () => {
    const [idle, now] = sum();
    const rest = (idle - idleBefore) / Math.max(1, now - before);
    [idleBefore, before] = [idle, now];
    return rest;
  };
}

/**
 * In order, each as soon as there is room for it. Those for which there is none are passed by those that find room, but
 * not in the place that the next world waits for. Where the processors rest there is room for one more.
 */
async function sideBySide(jobs: readonly Work[], carryOut: (work: Work) => Promise<void>): Promise<void> {
  const waiting = [...jobs];
  const running = new Map<Work, Promise<void>>();
  const count = (of: (work: Work) => boolean): number => [...running.keys()].filter(of).length;
  const isIdle = (work: Work): boolean => 'waits' in work && work.waits === true;
  const fits = (job: Work): boolean => {
    const idle = count(isIdle);
    if (isIdle(job)) return idle < WAITING_AT_ONCE;
    const worlds = count(isWorld);
    if (isWorld(job)) return worlds < WORLDS_AT_ONCE;
    const places = Math.min(WORLDS_AT_ONCE, worlds + waiting.filter(isWorld).length);
    return running.size - idle - worlds < AT_ONCE - places;
  };
  const rest = restOf();
  /** False as soon as one ends, which makes room itself. */
  const restEnough = async (): Promise<boolean> => {
    rest();
    const looked = delay(LOOK_MS, true, { ref: false });
    const isOver = await Promise.race([looked, ...[...running.values()].map((one) => one.then(() => false))]);
    return isOver && rest() > REST_ENOUGH && running.size - count(isIdle) < MOST_AT_ONCE;
  };
  const fitsBeside = (job: Work): boolean => !isIdle(job) && !(isWorld(job) && count(isWorld) > WORLDS_AT_ONCE);
  while (waiting.length > 0) {
    const fitting = waiting.findIndex(fits);
    const next = fitting === -1 && (await restEnough()) ? waiting.findIndex(fitsBeside) : fitting;
    const [job] = next === -1 ? [] : waiting.splice(next, 1);
    if (job !== undefined)
      running.set(
        job,
        carryOut(job).finally(() => running.delete(job)),
      );
  }
  await Promise.all(running.values());
}

/**
 * Up to four files that failed are run once more, alone, and what they come to counts. It is said loudly, for it is a fault
 * to be found: of the test, or of what it tests. More are no accident and stay red.
 * Answers the names of those that passed the second time.
 */
async function again(
  files: readonly FileJob[],
  outcomes: Outcome[],
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const red = files.filter(({ name }) => outcomes.some((one) => one.name === name && one.failed > 0));
  if (red.length > MOST_AGAIN) return [];
  const unsteady: string[] = [];
  for (const job of red) {
    console.log(`\nUNSTEADY  ${job.name} failed; once more, alone:`);
    const outcome = await job.run(env);
    outcomes.splice(
      outcomes.findIndex((one) => one.name === job.name),
      1,
      outcome,
    );
    show(outcome);
    if (outcome.failed === 0) unsteady.push(job.name);
  }
  return unsteady;
}

interface Plan {
  readonly parallel: readonly Work[];
  readonly serial: readonly Work[];
  /** All of either. */
  readonly files: readonly FileJob[];
}

function plan(dir: string | undefined, only: string, quick: boolean, random: Random | undefined): Plan {
  const folder = path.resolve(dir ?? path.join(root, 'test'));
  // Fixtures are test files that fail on purpose, for the test of this runner.
  const isQuick = (file: string) =>
    QUICK.some((start) => path.relative(root, path.join(folder, file)).replaceAll(path.sep, '/').startsWith(start));
  const node = (script: string, ...args: string[]) => [path.join(root, 'node_modules', script), ...args];
  const checks = [
    // More checkers at once check the same types again.
    checkJob('types', node('typescript/bin/tsc', '-p', root, '--checkers', '1'), root),
    checkJob('lint', node('@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '--colors=off'), root),
  ];
  const wanted = (job: Job) => job.name.includes(only);
  const found = globSync('**/*.test.ts', { cwd: folder })
    .filter((file) => !/^(bench|support[\\/]fixtures)[\\/]/.test(file))
    .filter((file) => !quick || isQuick(file))
    .sort()
    .map((file) => path.join(folder, file))
    .map((file) => fileJob(file, path.relative(root, file)))
    .filter(wanted);
  const files = random === undefined ? found : drawn(found, random);
  const isShort = (job: FileJob) =>
    limitOf(job.file) <= LEAST_TIMEOUT_MS && !isWorld(job) && !job.waits && !declares(job.file, 'alone');
  const sideBySide = files.filter(({ file }) => !declares(file, 'serial'));
  // The longest first: one that begins late would run alone at the end.
  const long = sideBySide.filter((job) => !isShort(job)).sort((a, b) => limitOf(b.file) - limitOf(a.file));
  return {
    parallel: [...(dir === undefined ? checks.filter(wanted) : []), ...long, ...shares(sideBySide.filter(isShort))],
    serial: files.filter(({ file }) => declares(file, 'serial')),
    files,
  };
}

/** Without the files that this run leaves to others. */
function drawn(files: readonly FileJob[], random: Random): readonly FileJob[] {
  const some = files.filter(({ file }) => declares(file, 'drawn'));
  const taken = partOf(some, ({ file }) => costOf(file), random);
  const names = taken.map(({ name }) => path.relative('test', name)).join(', ');
  console.log(`${taken.length} of ${some.length} long tests are drawn (all: make test ARGS=--all): ${names}`);
  return files.filter((job) => !some.includes(job) || taken.includes(job));
}

/**
 * Neighbours share a process: they import the same. A new process spends one to three seconds on what one that has run a file
 * has ready, so the first take many; the last take few, as one would run on alone at the end.
 */
function shares(files: readonly FileJob[]): Work[] {
  const [first, ...others] = files;
  if (first === undefined) return [];
  const size = Math.min(MOST_IN_TURN, Math.max(LEAST_IN_TURN, Math.ceil(files.length / AT_ONCE)));
  const rest = others.slice(0, size - 1);
  return [rest.length === 0 ? first : sharedJob([first, ...rest]), ...shares(files.slice(size))];
}

/** Those of the run; an embedded ClickHouse takes no memory until a file asks it something, others do not run till then. */
async function startServers(): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  const { folder, drop } = memoryFolder();
  process.env.TMPDIR = folder;
  // No file ends this server, and none of them loses power.
  const postgres = await sharedServer({ durable: false });
  const clickhouse = await sharedClickHouse().catch(async (error: unknown) => {
    await postgres.stop();
    throw error;
  });
  const offered = await offerServers({ pds: async () => (await import('./support/networks/pds.ts')).startPds() });
  console.log(`postgres: ${postgres.source}, clickhouse: ${clickhouse.source}`);
  return {
    env: {
      TEST_DATABASE_URL: postgres.url,
      TEST_PREPARED_DATABASE: `prepared_${randomBytes(8).toString('hex')}`,
      // What waits for no disk is copied faster than logged.
      ...(postgres.source === 'embedded' ? { TEST_COPY_STRATEGY: 'FILE_COPY' } : {}),
      TEST_CLICKHOUSE_URL: clickhouse.url,
      TEST_SERVERS: offered.url,
    },
    stop: async () => {
      offered.close();
      await Promise.all([postgres.stop(), clickhouse.stop()]);
      await drop();
    },
  };
}

function show({ name, passed, failed, skipped, ms, processorMs, output, why }: Outcome): void {
  const counts = [
    `${passed} passed`,
    failed > 0 && `${failed} failed`,
    skipped.length > 0 && `${skipped.length} skipped`,
  ];
  const line = [failed > 0 ? 'FAIL' : ' ok ', name, counts.filter(Boolean).join(', '), spent(ms, processorMs)].join(
    '  ',
  );
  console.log(line);
  for (const rows of output.matchAll(/^.*: \d+ of \d+ are drawn: .*$/gm)) console.log(`        ${rows[0]}`);
  if (failed > 0)
    console.log(`${output.trimEnd()}\n${why.map((reason) => `  ${reason}\n`).join('')}  ---- end of ${name}`);
}

/** Prints what the run comes to; true when it is green. */
function conclude(outcomes: readonly Outcome[], unsteady: readonly string[], started: number, rest: number): boolean {
  const onCi = process.env.CI === 'true';
  const sum = (count: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + count(outcome), 0);
  const skipped = outcomes.flatMap((outcome) => outcome.skipped.map((skip) => ({ ...skip, file: outcome.name })));
  const red = outcomes.filter((outcome) => outcome.failed > 0);

  const slow = outcomes.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST);
  console.log(`\nslowest: ${slow.map(({ name, ms }) => `${name} ${seconds(ms)}`).join(', ')}`);
  const busy = outcomes.toSorted((a, b) => b.processorMs - a.processorMs).slice(0, BUSIEST);
  console.log(`busiest: ${busy.map(({ name, processorMs }) => `${name} ${seconds(processorMs)}`).join(', ')}`);
  console.log(`processor time of all: ${seconds(sum((outcome) => outcome.processorMs))}`);
  console.log(
    `took ${seconds(performance.now() - started)}, the processors at rest for ${Math.round(rest * 100)} % of it`,
  );
  if (skipped.length > 0) {
    console.log(onCi ? '\nskipped, which on CI is a failure unless the tool is an extra:' : '\nskipped:');
    for (const { file, name, reason, isExtra } of skipped)
      console.log(`  ${isExtra ? 'extra: ' : ''}${file}: ${name}: ${reason}`);
  }
  if (red.length > 0) console.log('\nfailed:');
  for (const { name, failures, why } of red) {
    for (const what of [...failures, ...why]) console.log(`  ${name}: ${what}`);
  }
  if (outcomes.length === 0) console.log('\nfailed: nothing matches, so nothing ran');
  const failed =
    sum((outcome) => outcome.failed) +
    (onCi ? skipped.filter(({ isExtra }) => !isExtra).length : 0) +
    (outcomes.length === 0 ? 1 : 0);
  const tail = skipped.length > 0 && !onCi ? `, ${skipped.length} skipped` : '';
  console.log(unsteady.length > 0 ? `\nunsteady: ${unsteady.join(', ')}` : '');
  console.log(`${sum((outcome) => outcome.passed)} passed, ${failed} failed${tail}`);
  return failed === 0;
}

const spent = (ms: number, processorMs: number): string => `${seconds(ms)} (${seconds(processorMs)})`;

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

await main();

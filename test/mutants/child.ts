/**
 * A process that runs the tests of one file once for each change that it is told; the first of a file runs them on the
 * file as it is before. It loads anew what depends on the changed file, and nothing else: a test takes milliseconds, where a process takes a third of a
 * second to load what they all have in common.
 */
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Message } from '#test/support/suite.ts';

export interface Job {
  readonly file: string;
  /** The text of the file with its changes, each behind a switch. */
  readonly text: string;
  readonly tests: readonly string[];
  /** From the process that ran them first; absent: this one. */
  readonly learnt?: Learnt;
}

/** What the first run of the tests tells of the others. */
export interface Learnt {
  /** By module: who imports it. */
  readonly importers: readonly (readonly [url: string, importers: readonly string[]])[];
  /** Milliseconds of processor time by test, the loading of what it needs among them. */
  readonly cleanMs: readonly (readonly [test: string, ms: number])[];
}

/** `id` undefined: the process is ready for changes. */
export interface Outcome {
  readonly id: string | undefined;
  readonly learnt?: Learnt;
  /** Why the tests fail; null: they pass. */
  readonly fault: string | null;
}

/**
 * Processor time of one test file under a change, as a multiple of that of its first run, which also loads everything,
 * and milliseconds beside it: a test that computes without end is noticed, however busy the machine is.
 */
const allowance = { times: 2, ms: 500 };

const root = path.resolve(import.meta.dirname, '../..');
const urlOf = (file: string): string => pathToFileURL(path.join(root, file)).href;
const bare = (url: string): string => url.split('?run=')[0] ?? url;
const job = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Job;
const changed = urlOf(job.file);
const suite = urlOf('test/support/suite.ts');
const own = urlOf('');

/** Who imports a module. */
const importers = new Map(job.learnt?.importers.map(([url, them]) => [url, new Set(them)]));
const fresh = new Set([suite]);
let run = 0;

/** Without types, which are stripped once and not for each change. */
const sources = new Map<string, string>();
const sourceOf = (url: string): string => {
  const text = () => (url === changed ? job.text : readFileSync(fileURLToPath(url), 'utf8'));
  const source = sources.get(url) ?? stripTypeScriptTypes(text());
  sources.set(url, source);
  return source;
};

registerHooks({
  resolve: (specifier, context, next) => {
    const parent = context.parentURL === undefined ? undefined : bare(context.parentURL);
    const found = next(specifier, { ...context, parentURL: parent });
    if (!found.url.startsWith(own) || found.url.includes('/node_modules/')) return found;
    const url = bare(found.url);
    if (parent !== undefined) importers.set(url, (importers.get(url) ?? new Set()).add(parent));
    return { ...found, url: fresh.has(url) ? `${url}?run=${run}` : url };
  },
  load: (url, context, next) =>
    fresh.has(bare(url)) || bare(url) === changed
      ? { format: 'module', source: sourceOf(bare(url)), shortCircuit: true }
      : next(url, context),
});

const dependsOn = (url: string): void => {
  if (fresh.has(url)) return;
  fresh.add(url);
  for (const importer of importers.get(url) ?? []) dependsOn(importer);
};

/** Ends this process once a test has used up its time: the main thread may never be free again. */
const watched = new Int32Array(new SharedArrayBuffer(8));
const watch = `
  const { workerData: watched } = require('node:worker_threads');
  let [seen, since] = [-1, process.cpuUsage()];
  setInterval(() => {
    const [beat, allowedMs] = watched;
    if (beat !== seen) [seen, since] = [beat, process.cpuUsage()];
    const { user, system } = process.cpuUsage(since);
    if (allowedMs > 0 && user + system > allowedMs * 1_000) process.kill(process.pid, 'SIGKILL');
  }, 100);`;
// Unreferenced: what keeps this process alive is what a test waits for.
new Worker(watch, { eval: true, workerData: watched }).unref();
const cleanMs = new Map(job.learnt?.cleanMs);
/** @param allowedMs 0: without end */
const allow = (allowedMs: number): void => {
  watched[1] = allowedMs;
  Atomics.add(watched, 0, 1);
};

const answer = process.send?.bind(process);
/** What the file that runs now came to. */
let ended: (fault: string | null) => void = () => {};
process.send = (message: Message, done?: unknown): boolean => {
  if (message.kind === 'report') {
    const { declared, passed, failures } = message;
    ended(failures.length > 0 || passed < declared || declared === 0 ? failures.join('; ') || 'too few tests' : null);
  }
  if (typeof done === 'function') done();
  return true;
};
// Each suite listens to the end of the channel.
process.setMaxListeners(0);
const thrown = (error: unknown): void => ended(error instanceof Error ? (error.stack ?? error.message) : String(error));
process.on('uncaughtException', thrown);
process.on('unhandledRejection', thrown);

/** Each test file has a suite of its own, and the changed file anew. */
const faultOf = async (test: string): Promise<string | null> => {
  run += 1;
  const { promise, resolve } = Promise.withResolvers<string | null>();
  ended = resolve;
  // In place of what the suites before it do then: end the process.
  process.removeAllListeners('beforeExit');
  process.once('beforeExit', () => thrown(new Error('it waits for what never comes')));
  const clean = cleanMs.get(test);
  allow(clean === undefined ? 0 : allowance.times * clean + allowance.ms);
  const begun = process.cpuUsage();
  await import(`${urlOf(test)}?run=${run}`).catch(thrown);
  const fault = await promise;
  const { user, system } = process.cpuUsage(begun);
  if (clean === undefined) cleanMs.set(test, (user + system) / 1_000);
  allow(0);
  return fault;
};

const faultUnder = async (id: string | undefined): Promise<string | null> => {
  Object.assign(globalThis, { __stryker__: id === undefined ? {} : { activeMutant: id } });
  let fault: string | null = null;
  process.channel?.unref();
  for (const test of job.tests) fault ??= await faultOf(test);
  process.channel?.ref();
  return fault;
};
const tell = (outcome: Outcome): void => void answer?.(outcome);

const cleanFault = job.learnt === undefined ? await faultUnder(undefined) : null;
for (const url of [changed, ...job.tests.map(urlOf)]) dependsOn(url);
process.on('message', async (id: string) => tell({ id, fault: await faultUnder(id) }));
const learnt = { importers: Array.from(importers, ([url, them]) => [url, [...them]] as const), cleanMs: [...cleanMs] };
tell({ id: undefined, fault: cleanFault, learnt });

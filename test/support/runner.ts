/** How `test/run.ts` runs a job: a process in its own group, a time limit, and a result of each file from its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { built } from './bundles.ts';
import { DEFAULT_TIMEOUT_MS, END, type Message, type Report } from './suite.ts';

export interface Outcome {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: Report['skipped'];
  /** Names of the tests and hooks that failed. */
  readonly failures: readonly string[];
  /** Faults of the file as a whole: a crash, the time limit, no tests, a process left running. */
  readonly why: readonly string[];
  /** Everything it wrote, in order. */
  readonly output: string;
  readonly ms: number;
  /** Milliseconds of processor time, those of its children that have ended included. Linux only, else 0. */
  readonly processorMs: number;
}

export interface Job {
  readonly name: string;
  /** Missing for a tool. */
  readonly file?: string;
  /** It causes no load. */
  readonly waits?: boolean;
  run(env: Env): Promise<Outcome>;
}

export type FileJob = Job & { readonly file: string };

/** Files that one process takes in turn. */
export interface SharedJob {
  readonly name: string;
  /** An outcome of each file, and one more where their process ends badly behind them. */
  runAll(env: Env): Promise<readonly Outcome[]>;
}

type Env = Readonly<Record<string, string>>;

/** Milliseconds between asking a process to end and ending its group. */
const GRACE_MS = 3_000;
/** Milliseconds for a file's own children to end after it. */
const FOLLOW_MS = 1_000;
/** Milliseconds types or lint may take. */
const CHECK_MS = 300_000;

const running = new Set<ChildProcess>();
/** Milliseconds of processor time of the children that have ended and are counted. */
let reapedMs = 0;

/** Ends every running job, with all its processes. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(endOf));
}

/** Whether a suite of the file declares the option, read from its text: the order is fixed before anything runs. */
export function declares(file: string, option: 'serial' | 'waits' | 'alone' | 'drawn'): boolean {
  const name = `(?:'[^']*'|"[^"]*"|[^,]+)`;
  const declared = new RegExp(`\\bsuite\\(\\s*${name},\\s*\\{[^}]*\\b${option}:\\s*true\\b`);
  return declared.test(readFileSync(file, 'utf8'));
}

/** The longest time limit in milliseconds that the text of the file names, 0 without one. */
export function limitOf(file: string): number {
  const found = readFileSync(file, 'utf8').matchAll(/\btimeoutMs: ([\d_]+)/g);
  return Math.max(0, ...[...found].map(([, limit = '']) => Number(limit.replaceAll('_', ''))));
}

/** Seconds of processor time that the text of a drawn file says of it; one that says nothing is taken for one of many. */
export function costOf(file: string): number {
  return Number(/\bcosts: (\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? 10);
}

/** A tool whose exit code is the whole result; it counts as one test. */
export function checkJob(name: string, command: readonly string[], cwd: string): Job {
  return {
    name,
    run: async (extra) => {
      const { end, parts } = await watch(command, { cwd, env: { ...process.env, ...extra }, limit: CHECK_MS });
      const bad = end.exit !== CLEAN;
      const why = end.timedOut ? [`did not end within ${CHECK_MS} ms`] : bad ? [end.exit] : [];
      return { ...parts[0], name, passed: bad ? 0 : 1, failed: bad ? 1 : 0, skipped: [], failures: [], why };
    },
  };
}

export function fileJob(file: string, name: string): FileJob {
  return {
    name,
    file,
    waits: declares(file, 'waits'),
    run: async (extra) => {
      const { end, parts } = await watch([built(file, extra.TEST_BUNDLES)], ofFile(extra));
      return outcomeOf(name, declares(file, 'serial'), parts[0], end);
    },
  };
}

/** A job for several files. Those behind one that ends the process, or reaches its time limit, run as they would alone. */
export function sharedJob(jobs: readonly [FileJob, ...FileJob[]]): SharedJob {
  const name = `${jobs[0].name} and ${jobs.length - 1} more`;
  return {
    name,
    runAll: async (extra) => {
      const files = jobs.map(({ file }) => pathToFileURL(built(file, extra.TEST_BUNDLES)).href);
      const { end, parts } = await watch([built(HOST, extra.TEST_BUNDLES), ...files], ofFile(extra));
      const clean = { ...end, exit: CLEAN, timedOut: false, left: [] };
      const outcomes = parts.map((part, index) => {
        const last = index === parts.length - 1;
        return outcomeOf(jobs[index]?.name ?? name, false, part, last ? { ...end, left: [] } : clean);
      });
      if (end.left.length > 0 && !end.timedOut) {
        const why = [`left running: ${end.left.join('; ')}`];
        const nothing = { passed: 0, skipped: [], failures: [], output: '', ms: 0, processorMs: 0 };
        outcomes.push({ name, ...nothing, failed: 1, why });
      }
      for (const job of jobs.slice(parts.length)) outcomes.push(await job.run(extra));
      return outcomes;
    },
  };
}

const HOST = path.join(import.meta.dirname, 'files-process.ts');
const CLEAN = 'exit code 0';

const ofFile = (extra: Env): WatchOptions => ({ env: { ...process.env, ...extra }, limit: DEFAULT_TIMEOUT_MS });

function outcomeOf(name: string, serial: boolean, part: Part, end: End): Outcome {
  const { report, test = 'no test yet', isSerial, output, ms, processorMs } = part;
  const why: string[] = [];
  if (end.timedOut) why.push(`stopped at its time limit of ${end.limit} ms, in: ${test}`);
  else if (report === undefined) why.push(`crashed (${end.exit}), in: ${test}`);
  else if (report.declared === 0 && report.skipped.length === 0) why.push('declares no test');
  else if (end.exit !== CLEAN && report.failures.length === 0) why.push(`ended with ${end.exit}`);
  if (isSerial && !serial) why.push('is serial, but not in a form the runner can read: see SuiteOptions');
  if (end.left.length > 0 && !end.timedOut) why.push(`left running: ${end.left.join('; ')}`);

  const { failures = [], skipped = [], passed = 0, declared = 0 } = report ?? {};
  const failed = Math.max(failures.length, declared - passed) + why.length;
  return { name, passed, failed, skipped, failures, why, output, ms, processorMs };
}

/** How a process ended. */
interface End {
  readonly exit: string;
  readonly timedOut: boolean;
  /** Milliseconds that the file which came last had. */
  readonly limit: number;
  /** Command lines of processes of its group that outlived it; they are ended. Linux only. */
  readonly left: readonly string[];
}

/** What a process did, or each of its files. */
interface Part {
  readonly output: string;
  readonly ms: number;
  readonly processorMs: number;
  /** The test that began last. */
  readonly test?: string;
  readonly report?: Report;
  readonly isSerial?: boolean;
}

interface WatchOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limit: number;
}

/** Runs node with `args` to its end, or to the time limit of a file. */
async function watch(
  args: readonly string[],
  { cwd, env, limit: first }: WatchOptions,
): Promise<{ end: End; parts: [Part, ...Part[]] }> {
  if (running.size === 0) reapedMs = processorMsOf('self').ofChildren;
  const child = spawn(process.execPath, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  running.add(child);
  const chunks: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));

  let limit = first;
  let timedOut = false;
  let timer: NodeJS.Timeout | undefined;
  const within = (ms: number) => {
    limit = ms;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timedOut = true;
      void endOf(child);
    }, ms);
  };
  within(first);
  type Seen = Omit<Part, 'output' | 'ms'> & { readonly began: number };
  const done: Seen[] = [];
  const begun = () => ({ began: performance.now(), processorMs: 0 });
  let seen: Seen = begun();
  let spentMs = 0;
  const spend = (totalMs: number) => {
    seen = { ...seen, processorMs: Math.max(0, totalMs - spentMs) };
    spentMs = totalMs;
  };
  child.on('message', (message: Message) => {
    if (message.kind === 'running') seen = { ...seen, test: message.name };
    else if (message.kind === 'report') seen = { ...seen, report: message };
    else if (message.kind === 'options') {
      seen = { ...seen, isSerial: message.serial };
      within(message.timeoutMs);
    } else if (message.index > 0) {
      spend(processorMsOf(child.pid ?? 0).total);
      done.push(seen);
      seen = begun();
      within(first);
    }
  });

  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exit = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  // The system adds what a child spent to its parent as it ends: read before another one can.
  const { ofChildren } = processorMsOf('self');
  spend(ofChildren - reapedMs);
  reapedMs = ofChildren;
  clearTimeout(timer);
  const left = await followers(child.pid);
  killGroup(child.pid, 'SIGKILL');
  // A process outside the group may still hold the pipe; its output is not awaited.
  await Promise.race([closed, delay(FOLLOW_MS, undefined, { ref: false })]);
  running.delete(child);
  const outputs = Buffer.concat(chunks).toString('utf8').split(END);
  const ended = performance.now();
  const all = [...done, seen];
  const part = (one: Seen, index: number): Part => {
    const until = all[index + 1]?.began ?? ended;
    return { ...one, ms: until - one.began, output: outputs[index] ?? '' };
  };
  const [head, ...tail] = all.map(part);
  return { end: { exit, timedOut, limit, left }, parts: [head as Part, ...tail] };
}

/** Milliseconds of processor time of a process and its ended children, from /proc; 0 where there is none. */
function processorMsOf(pid: number | 'self'): { readonly total: number; readonly ofChildren: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Behind the bracketed name: ten more, then user and system of its own and of its children, in hundredths of a second.
    const [user = 0, system = 0, ofChildren = 0, inSystem = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
      .map((ticks) => Number(ticks) * 10);
    return { total: user + system + ofChildren + inSystem, ofChildren: ofChildren + inSystem };
  } catch {
    return { total: 0, ofChildren: 0 };
  }
}

/** Asks the process to end, so that its children can end too, then ends the whole group. */
async function endOf(child: ChildProcess): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await Promise.race([gone, delay(GRACE_MS, undefined, { ref: false })]);
  killGroup(child.pid, 'SIGKILL');
}

/** Processes that are left in a group after its leader ended and its children had a moment to follow. */
async function followers(group: number | undefined): Promise<readonly string[]> {
  const deadline = performance.now() + FOLLOW_MS;
  for (;;) {
    const left = group === undefined ? [] : members(group);
    if (left.length === 0 || performance.now() > deadline) return left;
    await delay(20);
  }
}

/** Command lines of the live processes of a group, from /proc. */
function members(group: number): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
        // Behind the bracketed name: state, parent, group. One in state Z has ended.
        const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (Number(pgrp) !== group || state === 'Z') return [];
        return [readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
      } catch {
        // It ended meanwhile.
        return [];
      }
    });
}

function killGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

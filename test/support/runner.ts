/** How `test/run.ts` runs one job: a process in its own group, a time limit, and a result from its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { built } from './bundles.ts';
import { DEFAULT_TIMEOUT_MS, type Message, type Report } from './suite.ts';

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
}

export interface Job {
  readonly name: string;
  /** Missing for a tool. */
  readonly file?: string;
  /** It causes no load. */
  readonly waits?: boolean;
  run(env: Readonly<Record<string, string>>): Promise<Outcome>;
}

/** Milliseconds between asking a process to end and ending its group. */
const GRACE_MS = 3_000;
/** Milliseconds for a file's own children to end after it. */
const FOLLOW_MS = 1_000;
/** Milliseconds types or lint may take. */
const CHECK_MS = 300_000;

const running = new Set<ChildProcess>();

/** Ends every running job, with all its processes. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(end));
}

/** Whether a suite of the file declares the option, read from its text: the order is fixed before anything runs. */
export function declares(file: string, option: 'serial' | 'waits'): boolean {
  return new RegExp(`\\bsuite\\(\\s*[^,]+,\\s*\\{[^}]*\\b${option}:\\s*true\\b`).test(readFileSync(file, 'utf8'));
}

/** The longest time limit in milliseconds that the text of the file names, 0 without one. */
export function limitOf(file: string): number {
  const found = readFileSync(file, 'utf8').matchAll(/\btimeoutMs: ([\d_]+)/g);
  return Math.max(0, ...[...found].map(([, limit = '']) => Number(limit.replaceAll('_', ''))));
}

/** A tool whose exit code is the whole result; it counts as one test. */
export function checkJob(name: string, command: readonly string[], cwd: string): Job {
  return {
    name,
    run: async (extra) => {
      const ended = await watch(command, { cwd, env: { ...process.env, ...extra }, limit: CHECK_MS });
      const bad = ended.exit !== 'exit code 0';
      const why = ended.timedOut ? [`did not end within ${CHECK_MS} ms`] : bad ? [ended.exit] : [];
      return { ...ended, name, passed: bad ? 0 : 1, failed: bad ? 1 : 0, skipped: [], failures: [], why };
    },
  };
}

export function fileJob(file: string, name: string): Job {
  return {
    name,
    file,
    waits: declares(file, 'waits'),
    run: async (extra) => {
      const ended = await watch([built(file, extra.TEST_BUNDLES)], {
        env: { ...process.env, ...extra },
        limit: DEFAULT_TIMEOUT_MS,
      });
      return outcomeOf(name, declares(file, 'serial'), ended);
    },
  };
}

function outcomeOf(name: string, serial: boolean, ended: Ended): Outcome {
  const { report, options } = ended;
  const why: string[] = [];
  if (ended.timedOut) why.push(`stopped at its time limit of ${ended.limit} ms, in: ${ended.test ?? 'no test yet'}`);
  else if (report === undefined) why.push(`crashed (${ended.exit}), in: ${ended.test ?? 'no test yet'}`);
  else if (report.declared === 0 && report.skipped.length === 0) why.push('declares no test');
  else if (ended.exit !== 'exit code 0' && report.failures.length === 0) why.push(`ended with ${ended.exit}`);
  if (options?.serial && !serial) why.push('is serial, but not in a form the runner can read: see SuiteOptions');
  if (ended.left.length > 0 && !ended.timedOut) why.push(`left running: ${ended.left.join('; ')}`);

  const failures = report?.failures ?? [];
  const missing = (report?.declared ?? 0) - (report?.passed ?? 0);
  return {
    ...ended,
    name,
    passed: report?.passed ?? 0,
    failed: Math.max(failures.length, missing) + why.length,
    skipped: report?.skipped ?? [],
    failures,
    why,
  };
}

interface Ended {
  readonly exit: string;
  readonly timedOut: boolean;
  readonly limit: number;
  readonly output: string;
  readonly ms: number;
  /** Command lines of processes of its group that outlived it; they are ended. Linux only. */
  readonly left: readonly string[];
  /** The test that began last. */
  readonly test: string | undefined;
  readonly report: Report | undefined;
  readonly options: { readonly serial: boolean } | undefined;
}

interface WatchOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limit: number;
}

/** Runs node with `args` to its end, or to the time limit of the file. */
async function watch(args: readonly string[], { cwd, env, limit: first }: WatchOptions): Promise<Ended> {
  const started = performance.now();
  const child = spawn(process.execPath, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  running.add(child);
  const chunks: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));

  let limit = first;
  let timedOut = false;
  const expire = () => {
    timedOut = true;
    void end(child);
  };
  let timer = setTimeout(expire, limit);
  let test: string | undefined;
  let report: Report | undefined;
  let options: { serial: boolean } | undefined;
  child.on('message', (message: Message) => {
    if (message.kind === 'running') test = message.name;
    else if (message.kind === 'report') report = message;
    else {
      options = message;
      limit = message.timeoutMs;
      clearTimeout(timer);
      timer = setTimeout(expire, limit);
    }
  });

  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exit = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  clearTimeout(timer);
  const left = await followers(child.pid);
  killGroup(child.pid, 'SIGKILL');
  // A process outside the group may still hold the pipe; its output is not awaited.
  await Promise.race([closed, delay(FOLLOW_MS, undefined, { ref: false })]);
  running.delete(child);
  const output = Buffer.concat(chunks).toString('utf8');
  return { exit, timedOut, limit, output, ms: performance.now() - started, left, test, report, options };
}

/** Asks the process to end, so that its children can end too, then ends the whole group. */
async function end(child: ChildProcess): Promise<void> {
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

/**
 * The one way in which a test file declares its tests. Its suites run one after the other in the order of declaration,
 * and its process ends non-zero when anything failed. In a run a process takes one file, or several in turn.
 *
 *     suite('event store', (t) => {
 *       t.before(async () => { … });
 *       t('appends at an exact revision', async () => { … });
 *       t.skip('survives a broker restart', 'no Java on this machine');
 *     });
 *
 * NOTE: uvu alone swallows a hook that throws (0 of 1 passed, exit code 0). Here a failed hook fails the file.
 */
import { inspect } from 'node:util';
import { patience } from './patience.ts';

export interface SuiteOptions {
  /**
   * Time limit of the whole file in milliseconds on a quiet machine, from its declaration on; default and least 120,000.
   * The largest of a file's suites counts, and is stretched by `patience`.
   */
  readonly timeoutMs?: number;
  /**
   * True: the runner starts this file alone, after all others. For tests that load the machine. The runner reads it
   * from the text of the file, so write it literally: `suite('name', { serial: true }, …)`.
   */
  readonly serial?: boolean;
  /**
   * True: the file spends nearly all its time waiting, for example for leases to end. The runner starts it beside the
   * files that load the machine. Read from the text as well.
   */
  readonly waits?: boolean;
  /** True: in a run too the file has a process to itself, whose memory or variables it looks at. Read from the text. */
  readonly alone?: boolean;
  /**
   * True: a run takes one of four such files, others each time; `make test ARGS=--all` takes all. For deaths at each step,
   * long tables and races, of which each file costs as much as thirty others. Read from the text.
   */
  readonly drawn?: boolean;
  /**
   * Seconds of processor time that a drawn file takes in a run, as the runner prints them in brackets: by them it makes the
   * four parts alike of which it takes one. Default 10. Read from the text.
   */
  readonly costs?: number;
}

type Step = () => unknown;

interface Hook {
  (step: Step): void;
  each(step: Step): void;
}

export interface Declare {
  (name: string, test: Step): void;
  /** A test that cannot run here. The reason is printed; with CI=true it counts as a failure. */
  skip(name: string, reason: string): void;
  /** As `skip`, of a test that only more tools than Node and npm make possible: told, and no failure on CI either. */
  skipExtra(name: string, reason: string): void;
  before: Hook;
  after: Hook;
}

interface Skip {
  readonly name: string;
  readonly reason: string;
  readonly isExtra: boolean;
}

/** How a file ended. */
export interface Report {
  readonly kind: 'report';
  readonly declared: number;
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: readonly Skip[];
}

/**
 * Messages of a process to `test/run.ts` over its channel. Of a file: its options, each test as it begins, and one report.
 * Of one that takes several: each as it begins.
 */
export type Message =
  | { readonly kind: 'file'; readonly index: number }
  | { readonly kind: 'options'; readonly serial: boolean; readonly timeoutMs: number }
  | { readonly kind: 'running'; readonly name: string }
  | Report;

/** Milliseconds on a quiet machine: the default, and the least that a file has. */
export const LEAST_TIMEOUT_MS = 120_000;
/** Milliseconds for a file unless one of its suites says otherwise. */
export const DEFAULT_TIMEOUT_MS = LEAST_TIMEOUT_MS * patience;
/** Milliseconds after the last test until processes or handles that still run count as a failure; TEST_LINGER_MS has another. */
const LINGER_MS = 10_000;

/** `failure`: once a test has failed no other of its file runs, for a caller who asks only whether one does. */
const END_AT = process.env.TEST_END_AT;

/** Between the outputs of two files of a process. */
export const END = '\0 end of the file\n';

const emptyQueue = () => [[null]];
// NOTE: set before uvu is loaded: it then waits for our `exec()` instead of starting by itself.
Object.assign(globalThis, { UVU_DEFER: 1, UVU_QUEUE: emptyQueue(), UVU_INDEX: 0 });
const uvu = await import('uvu');

const nothingYet = () => ({
  failures: [] as string[],
  skipped: [] as Skip[],
  cleanups: [] as Step[],
  declared: 0,
  passed: 0,
  serial: false,
  timeoutMs: DEFAULT_TIMEOUT_MS,
  phase: 'declaring' as 'declaring' | 'waiting' | 'running',
});
/** The file whose turn it is. */
let file = nothingYet();
let next: () => void = () => process.exit();

// A killed runner cannot end its files: they end themselves, by the signal that their children listen to.
if (process.channel) {
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel.unref();
}

/** Runs `step` after the last test of the file, also when tests failed; the latest registered runs first. */
export function afterFile(step: Step): void {
  file.cleanups.push(step);
}

/** Runs the steps of `afterFile`, the latest first: for a program that uses these helpers and is not a test file. */
export async function runCleanups(): Promise<void> {
  for (const cleanup of file.cleanups.splice(0).reverse()) await cleanup();
}

/**
 * Imports the files, each when nothing of the one before is left in this process. One that keeps it alive ends it, and
 * those behind it do not begin; so does one that crashes.
 */
export function inTurn(files: readonly string[]): void {
  const waiting = files.entries();
  const begin = (): void => {
    const { value, done } = waiting.next();
    if (done) process.exit();
    const [index, url] = value;
    if (index > 0) process.stdout.write(END);
    file = nothingYet();
    Object.assign(globalThis, { UVU_QUEUE: emptyQueue() });
    process.exitCode = 1;
    tell({ kind: 'file', index });
    void import(url);
  };
  next = begin;
  begin();
}

export function suite(name: string, body: (t: Declare) => void): void;
export function suite(name: string, options: SuiteOptions, body: (t: Declare) => void): void;
export function suite(name: string, second: SuiteOptions | ((t: Declare) => void), third?: (t: Declare) => void): void {
  const [options, body] = typeof second === 'function' ? [{}, second] : [second, third];
  if (body === undefined) throw new TypeError(`suite '${name}' has no body`);
  if (file.phase === 'running') throw new Error(`suite '${name}' was declared after the first test had started`);
  file.serial ||= options.serial ?? false;
  file.timeoutMs = Math.max(file.timeoutMs, (options.timeoutMs ?? 0) * patience);

  const inner = uvu.suite(name);
  // A failed hook ends the suite: the tests after it would run without what the hook prepares.
  let broken = false;
  const hook = (label: string, step: Step, fatal: boolean) => async () => {
    try {
      await step();
    } catch (error) {
      broken = true;
      fail(`${name}: ${label} hook`, error);
      if (fatal) throw error;
    }
  };
  const declare = ((test: string, step: Step) => {
    file.declared += 1;
    inner(test, async () => {
      if (broken) throw new Error('not run: a hook of this suite failed');
      if (END_AT === 'failure' && file.failures.length > 0) throw new Error('not run: another test failed');
      const full = `${name}: ${test}`;
      tell({ kind: 'running', name: full });
      try {
        await step();
        file.passed += 1;
      } catch (error) {
        file.failures.push(full);
        throw presentable(error);
      }
    });
  }) as Declare;
  const skip = (isExtra: boolean) => (test: string, reason: string) => {
    if (typeof reason !== 'string' || reason === '') throw new TypeError(`skip of '${test}' needs a reason`);
    file.skipped.push({ name: `${name}: ${test}`, reason, isExtra });
  };
  declare.skip = skip(false);
  declare.skipExtra = skip(true);
  declare.before = Object.assign((step: Step) => inner.before(hook('before', step, true)), {
    each: (step: Step) => inner.before.each(hook('before each', step, false)),
  });
  declare.after = Object.assign((step: Step) => inner.after(hook('after', step, false)), {
    each: (step: Step) => inner.after.each(hook('after each', step, false)),
  });

  const returned: unknown = body(declare);
  if (returned instanceof Promise) throw new TypeError(`the body of suite '${name}' must not be async; await above it`);
  inner.run();
  if (file.phase === 'declaring') {
    file.phase = 'waiting';
    setImmediate(runAll);
  }
}

async function runAll(): Promise<void> {
  file.phase = 'running';
  tell({ kind: 'options', serial: file.serial, timeoutMs: file.timeoutMs });
  await uvu.exec();
  // Not green before the report is sent: a clean-up that never ends lets the process run out of work and exit here.
  process.exitCode = 1;
  for (const cleanup of file.cleanups.reverse()) {
    try {
      await cleanup();
    } catch (error) {
      fail('cleanup of the file', error);
    }
  }
  const { declared, passed, failures, skipped } = file;
  const red = failures.length > 0 || passed < declared;
  process.exitCode = red ? 1 : 0;
  for (const { name, reason } of skipped) process.stdout.write(`  skipped: ${name} (${reason})\n`);
  if (red) process.stdout.write(`  ${declared - passed} of ${declared} tests failed\n`);
  const report = { kind: 'report', declared, passed, failures, skipped } as const;
  await new Promise<void>((done) => tell(report, done));
  const lingerMs = Number(process.env.TEST_LINGER_MS ?? LINGER_MS);
  // Unreferenced: the timer fires only if a handle of the file still keeps the process alive.
  const linger = setTimeout(() => {
    process.stdout.write(`The file was still alive ${lingerMs} ms after its last test: ${heldBy().join(', ')}\n`);
    process.exit(1);
  }, lingerMs).unref();
  // NOTE: with nothing left to do, Node 24.21 may loop for ever in its own clean-up after an HTTP/2 socket was reset.
  process.once('beforeExit', () => {
    clearTimeout(linger);
    next();
  });
}

interface Handle {
  readonly type: string;
  readonly is_active: boolean;
  readonly is_referenced: boolean;
  readonly fd?: number;
  readonly pid?: number;
  readonly localEndpoint?: { readonly port?: number } | null;
  readonly remoteEndpoint?: { readonly port?: number } | null;
}

/**
 * What keeps this process alive. NOTE: the pipes of its own output are among them; the second list has what Node does not
 * name, such as a thread or an addon, and whose a pipe or a socket is.
 */
function heldBy(): readonly string[] {
  // It would ask for the names of the other ends. Its types lack this.
  Object.assign(process.report, { excludeNetwork: true });
  const { libuv } = process.report.getReport() as unknown as { readonly libuv: readonly Handle[] };
  const handles = libuv.filter((one) => one.is_active && one.is_referenced && one.type !== 'loop');
  const said = handles.map(({ type, fd, pid, localEndpoint, remoteEndpoint }) => {
    const ports = [localEndpoint?.port, remoteEndpoint?.port].filter((port) => port !== undefined);
    return [type, fd === undefined ? '' : `fd ${fd}`, pid === undefined ? '' : `pid ${pid}`, ports.join('→')]
      .filter(Boolean)
      .join(' ');
  });
  return [...process.getActiveResourcesInfo(), ...said];
}

/** Prints at once and counts failures outside of tests. */
function fail(label: string, error: unknown): void {
  file.failures.push(label);
  process.stdout.write(`\n  FAIL  "${label}"\n    ${inspect(error).replaceAll('\n', '\n    ')}\n`);
}

/**
 * An Error whose stack also shows its causes: uvu prints message and stack only, and crashes on anything but an Error.
 */
function presentable(thrown: unknown): Error {
  if (!(thrown instanceof Error)) return new Error(`thrown: ${inspect(thrown)}`);
  const parts = thrown instanceof AggregateError ? thrown.errors : thrown.cause === undefined ? [] : [thrown.cause];
  if (parts.length > 0) thrown.stack = `${thrown.stack}\n${parts.map((part) => `cause: ${inspect(part)}`).join('\n')}`;
  return thrown;
}

function tell(message: Message, done?: () => void): void {
  if (process.send === undefined || !process.connected) done?.();
  else process.send(message, () => done?.());
}

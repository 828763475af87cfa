/**
 * One run of a tool over a file that nobody trusts: its own process group, without network or rights where that can be
 * had (isolation.ts), limits of the system on it, a bounded answer, and an end in any case. It ends when it is aborted, when
 * its time is up, and when this process dies.
 *
 * NOTE: fluent-ffmpeg builds the commands but does not run them: it can neither put a child into a group of its own nor
 * limit it, and it starts ffmpeg again and again to ask what it can do.
 */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { interrupted } from './failures.ts';
import { type Grants, isolated, toolEnv } from './isolation.ts';

export interface Limits extends Grants {
  /** Address space in bytes. */
  readonly memory: number;
  /** Of processor time. */
  readonly cpuSeconds: number;
  /** Largest file that may be written, in bytes. */
  readonly fileBytes: number;
  /** By the clock: ends what hangs, and says nothing of the file. */
  readonly wallMs: number;
  /** Most bytes of standard output; more ends the run. */
  readonly answerBytes: number;
  /** Processors it may run on; null: any. */
  readonly processors: readonly number[] | null;
}

const MiB = 1024 ** 2;

export const limits = (given: Partial<Limits>): Limits => ({
  memory: 4096 * MiB,
  cpuSeconds: 60,
  fileBytes: 64 * MiB,
  wallMs: 120_000,
  answerBytes: 8 * MiB,
  processors: null,
  reads: [],
  writes: [],
  ...given,
});

export interface Ended {
  /** 0: it did what it was told. */
  readonly code: number;
  readonly stdout: string;
  /** The last 16 KiB. */
  readonly stderr: string;
  /** The limit that ended it; null: none did. */
  readonly struck: 'processor' | 'file' | 'answer' | null;
}

/**
 * `sh` sets the limits, each where the system lets it, starts the tool, and ends it on TERM. Descriptor 3 is a pipe that
 * only this process holds open: when it closes, we are dead, and the whole group goes. A line on it says that the tool was
 * begun: an end without one is of the machine, which had no process to give, and not of the file.
 */
const wrapper = `
try() { ( ulimit "$@" ) 2>/dev/null && ulimit "$@"; }
try -c 0; try -v "$1"; try -S -t "$2"; try -H -t $(($2 + 10)); try -f "$3"
[ -n "$4" ] && taskset -pc "$4" $$ >/dev/null 2>&1
shift 4
trap 'kill -s KILL "$tool" 2>/dev/null' TERM
"$@" </dev/null 3<&- & tool=$!
( trap - TERM; read -r _ <&3; kill -s KILL -- "-$$" ) </dev/null >/dev/null 2>&1 & watcher=$!
echo >&3
exec 3<&-
wait "$tool"; code=$?
wait "$tool" 2>/dev/null
kill -s KILL "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null
exit "$code"`;

/** How long the wrapper may take to end what it started; then its group is killed from outside. */
const graceMs = 2_000;
const stderrBytes = 16_384;

/** ffmpeg answers the processor limit's signal by leaving in order, with 255. */
const outOfProcessor: readonly number[] = [255, 128 + constants.signals.SIGXCPU];
const struckBy = (code: number): Ended['struck'] =>
  outOfProcessor.includes(code) ? 'processor' : code === 128 + constants.signals.SIGXFSZ ? 'file' : null;

/**
 * Whose fault an end is that no limit on the file's own work brought about, nobody knows: a machine that stalls or runs
 * out of memory, or a file that makes it. So it is neither a verdict nor `interrupted`: whoever counts ends that are none
 * gives the file up after a few.
 * @param onLine each line of standard output, which is then not kept
 * @throws Error when its time was up or it was killed from outside
 * @throws TranscodeError `interrupted` when it was aborted or could not be started
 */
export const runTool = async (
  tool: string,
  args: readonly string[],
  limit: Limits,
  signal: AbortSignal,
  onLine?: (line: string) => void,
): Promise<Ended> => {
  const stripped = await isolated(tool, limit);
  return run([...stripped, 'sh'], tool, args, limit, signal, onLine);
};

const run = (
  [program = 'sh', ...before]: readonly string[],
  tool: string,
  args: readonly string[],
  limit: Limits,
  signal: AbortSignal,
  onLine: ((line: string) => void) | undefined,
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(interrupted(signal.reason));
    const child = spawn(
      program,
      [
        ...before,
        ...['-c', wrapper, 'sh', String(Math.ceil(limit.memory / 1024)), String(Math.ceil(limit.cpuSeconds))],
        ...[String(Math.ceil(limit.fileBytes / 512)), limit.processors?.join(',') ?? ''],
        ...[tool, ...args],
      ],
      { detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'], env: toolEnv },
    );
    let struck: Ended['struck'] = null;
    let begun = false;
    let late = false;
    let failure: unknown = null;
    let kept = 0;
    let line = '';
    let stderr = '';
    const stdout: string[] = [];
    let ending: NodeJS.Timeout | undefined;

    const end = (): void => {
      if (ending !== undefined || child.pid === undefined) return;
      const group = -child.pid;
      child.kill('SIGTERM');
      ending = setTimeout(() => {
        try {
          process.kill(group, 'SIGKILL');
        } catch {
          // Gone in between.
        }
      }, graceMs);
    };
    const timer = setTimeout(() => {
      late = struck === null;
      end();
    }, limit.wallMs);
    signal.addEventListener('abort', end, { once: true });

    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      if (onLine === undefined) {
        kept += text.length;
        if (kept <= limit.answerBytes) stdout.push(text);
        else {
          struck ??= 'answer';
          end();
        }
        return;
      }
      const lines = (line + text).split('\n');
      line = lines.pop()?.slice(-1_000) ?? '';
      for (const each of lines) onLine(each);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-stderrBytes);
    });
    // Where this process may open no more files, a child has no pipes at all.
    const held = child.stdio?.[3] as Socket | null | undefined;
    held
      ?.on('error', () => {})
      .once('data', () => {
        begun = true;
      });
    child.on('error', (error) => {
      failure = error;
    });
    child.on('close', (code, killedBy) => {
      clearTimeout(timer);
      clearTimeout(ending);
      signal.removeEventListener('abort', end);
      held?.destroy();
      if (signal.aborted) return reject(interrupted(signal.reason));
      if (failure !== null) return reject(interrupted(failure));
      const status = code ?? 128 + (killedBy === null ? 0 : constants.signals[killedBy]);
      if (late) return reject(new Error('a tool ran out of time'));
      if (!begun) return reject(interrupted(new Error(`a tool was not begun: ${stderr.trim()}`)));
      struck ??= struckBy(status);
      if (struck === null && status === 128 + constants.signals.SIGKILL) {
        return reject(new Error('a tool was killed from outside'));
      }
      if (struck === null && /No space left on device|Disk quota exceeded/.test(stderr)) {
        return reject(interrupted(new Error('there is no room left in the work folder')));
      }
      resolve({ code: status, stdout: stdout.join(''), stderr, struck });
    });
  });

/**
 * One run of a tool over an untrusted file: in its own process group, without network or rights where possible
 * (isolation.ts), with the system's limits, a bounded output and a certain end. It ends when it is aborted, when its
 * time is up, and when this process dies.
 *
 * NOTE: fluent-ffmpeg builds the commands but does not run them: it can neither put a child into its own group nor
 * limit it, and it starts ffmpeg again and again to query its features.
 */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { interrupted } from './failures.ts';
import { type Grants, isolated, toolEnv } from './isolation.ts';

export interface Limits extends Grants {
  /** Address space in bytes. */
  readonly memory: number;
  /** Seconds of processor time. */
  readonly cpuSeconds: number;
  /** Largest file that it may write, in bytes. */
  readonly fileBytes: number;
  /** Wall-clock limit: ends a tool that hangs, and says nothing about the file. */
  readonly wallMs: number;
  /** Most bytes of standard output; more ends the run. */
  readonly answerBytes: number;
  /** Processors that it may use; null: any. */
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
  /** 0: success. */
  readonly code: number;
  readonly stdout: string;
  /** The last 16 KiB. */
  readonly stderr: string;
  /** The limit that ended it; null: none did. */
  readonly struck: 'processor' | 'file' | 'answer' | null;
}

/**
 * `sh` sets the limits that the system allows, starts the tool, and ends it on TERM. Descriptor 3 is a pipe that only
 * this process holds open: when it closes, this process is dead, and the whole group ends. A line on it confirms that
 * the tool was started: an end without that line is the machine's fault, which had no process to give, and not the
 * file's.
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

/** How long the wrapper may take to end the tool; then its group is killed from outside. */
const graceMs = 2_000;
const stderrBytes = 16_384;

/** ffmpeg ends in order with 255 on the signal of the processor limit. */
const outOfProcessor: readonly number[] = [255, 128 + constants.signals.SIGXCPU];
const struckBy = (code: number): Ended['struck'] =>
  outOfProcessor.includes(code) ? 'processor' : code === 128 + constants.signals.SIGXFSZ ? 'file' : null;

/**
 * An end that no limit on the tool's own work caused has an unknown culprit: a machine that stalls or runs out of
 * memory, or a file that makes it do so. Such an end is neither a result nor `interrupted`: callers count them and give
 * the file up after a few.
 * @param onLine receives each line of standard output, which is then not collected
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
          // It ended in between.
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
    // When this process may open no more files, a child has no pipes at all.
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
      if (!begun) return reject(interrupted(new Error(`a tool was not started: ${stderr.trim()}`)));
      struck ??= struckBy(status);
      if (struck === null && status === 128 + constants.signals.SIGKILL) {
        return reject(new Error('a tool was killed from outside'));
      }
      if (struck === null && /No space left on device|Disk quota exceeded/.test(stderr)) {
        return reject(interrupted(new Error('the disk of the work folder is full')));
      }
      resolve({ code: status, stdout: stdout.join(''), stderr, struck });
    });
  });

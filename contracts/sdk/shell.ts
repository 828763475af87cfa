import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';

/** Other people's programs: their output goes to a log, and its end into the error when one fails. */

/** A tool or a registry that this machine lacks: the client is not checked, unless --all asks for every one. */
export class MissingTool extends Error {}

/** How pip, Maven, Go, NuGet and what they are made of say that nobody answers, or that a proxy lets nothing through. */
const unreachable = new RegExp(
  [
    'E(?:CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|AI_AGAIN)|[Nn]o such host|Name or service not known|UnknownHostException',
    'Temporary failure in name resolution|Network is unreachable|nodename nor servname|Unknown host',
    'Failed to establish a new connection|Max retries exceeded with url|connection broken by|dial tcp|i/o timeout',
    'Could not transfer (?:artifact|metadata)|Connection (?:refused|timed out|reset)|Connect timed out',
    'NU1301|Unable to load the service index|Proxy Authentication Required|Tunnel connection failed',
  ].join('|'),
);

export interface RunOptions {
  readonly cwd: string;
  readonly log: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly within?: number;
  /** Whether it fetches packages: then a registry that cannot be reached is a `MissingTool`, and no failure. */
  readonly fetches?: boolean;
}

const tailLines = 25;
const running = new Set<ChildProcess>();

/** A program and everything that it began, which Maven and .NET do. Windows has no groups of processes. */
const endAll = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? child.pid : -child.pid, signal);
  } catch {
    // It has ended.
  }
};

let isStopped = false;

/** Ends what runs, and starts nothing more, so that Ctrl-C leaves no compiler behind. */
export const stopAll = (): void => {
  isStopped = true;
  for (const child of running) endAll(child, 'SIGKILL');
};

interface Ended {
  readonly code: number | null;
  readonly isLate: boolean;
  readonly output: string;
}

const patience = 600_000;

const ended = (program: string, args: readonly string[], options: RunOptions): Promise<Ended> =>
  new Promise((resolve, reject) => {
    if (isStopped) throw new Error('stopped');
    const { cwd, env = {}, within = patience } = options;
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    // The caller's environment names their mirrors and proxies.
    const detached = process.platform !== 'win32';
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio, detached });
    running.add(child);
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      endAll(child, 'SIGKILL');
    }, within);
    const close = () => {
      clearTimeout(timer);
      running.delete(child);
    };
    child.once('error', (error) => {
      close();
      reject(error);
    });
    child.once('close', (code) => {
      close();
      resolve({ code, isLate, output: Buffer.concat(chunks).toString('utf8') });
    });
  });

/** @returns what it printed on both streams. @throws MissingTool, or Error when it does not start, fails or takes too long */
export const run = async (program: string, args: readonly string[], options: RunOptions): Promise<string> => {
  mkdirSync(path.dirname(options.log), { recursive: true });
  const { code, isLate, output } = await ended(program, args, options);
  appendFileSync(options.log, `$ ${program} ${args.join(' ')}\n${output}\n`);
  if (code === 0) return output;
  const tail = output.trimEnd().split('\n').slice(-tailLines).join('\n');
  if (options.fetches === true && (isLate || unreachable.test(output))) {
    throw new MissingTool(`the registry of its packages cannot be reached, see ${options.log}`);
  }
  const limit = `took longer than ${(options.within ?? patience) / 1_000} s`;
  const how = isLate ? limit : code === null ? 'was ended' : `ended with ${code}`;
  throw new Error(`${path.basename(program)} ${how}:\n${tail}\nAll of it: ${options.log}`);
};

export interface Tool {
  /** Names to try, in order. */
  readonly programs: readonly string[];
  readonly args: readonly string[];
  /** Its first group is the version. */
  readonly version: RegExp;
  readonly atLeast: readonly [major: number, minor: number];
  /** What the reader installs. */
  readonly install: string;
}

export const tools = {
  java: {
    programs: ['java'],
    args: ['-version'],
    version: /version "(\d+(?:\.\d+)?)/,
    atLeast: [11, 0],
    install: 'Java 11 or later',
  },
  maven: {
    programs: ['mvn'],
    args: ['-version'],
    version: /Apache Maven (\d+\.\d+)/,
    atLeast: [3, 6],
    install: 'Apache Maven 3.6 or later',
  },
  python: {
    programs: ['python3', 'python'],
    args: ['--version'],
    version: /Python (\d+\.\d+)/,
    atLeast: [3, 11],
    install: 'Python 3.11 or later with venv',
  },
  go: {
    programs: ['go'],
    args: ['version'],
    version: /go(\d+\.\d+)/,
    atLeast: [1, 24],
    install: 'Go 1.24 or later',
  },
  dotnet: {
    programs: ['dotnet'],
    args: ['--version'],
    version: /^(\d+\.\d+)/m,
    atLeast: [8, 0],
    install: 'the .NET SDK 8 or later',
  },
} as const satisfies Readonly<Record<string, Tool>>;

/** @returns the program's name. @throws MissingTool where none is there, or none that is new enough */
export const find = async (tool: Tool): Promise<string> => {
  for (const program of tool.programs) {
    const { output } = await ended(program, tool.args, { cwd: '.', log: '', within: 60_000 }).catch(() => ({
      output: '',
    }));
    const [major = 0, minor = 0] = (tool.version.exec(output)?.[1] ?? '').split('.').map(Number);
    if (major > tool.atLeast[0] || (major === tool.atLeast[0] && minor >= tool.atLeast[1])) return program;
  }
  throw new MissingTool(`install ${tool.install}`);
};

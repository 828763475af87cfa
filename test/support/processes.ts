/**
 * Our own processes as an operator starts them: `node <main>` with an environment that holds nothing else of ours.
 *
 *     const api = await start('services/api/main.ts', { env: { DATABASE_URL: db.url, SECRET_KEY } });
 *     api.url('/v1/posts'); api.opsUrl('/readyz'); await api.kill(); await api.stop();
 *
 * Processes that still run at the end of the file are killed; the runner does the same when the file itself is killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { built } from './bundles.ts';
import { patience } from './patience.ts';
import { afterFile } from './suite.ts';

export type Line = Readonly<Record<string, unknown>>;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Milliseconds since it was asked to end. */
  readonly ms: number;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Output that shows it works; default: the log line `ready`. */
  readonly readyAt?: RegExp;
  /** Milliseconds it may take until then. */
  readonly within?: number;
  /** Folder of the build that the main is of. Default: this tree. */
  readonly root?: string;
  /** From its sources, also in a run that made bundles: where the start itself is tested, or the sources are changed. */
  readonly sources?: boolean;
  /** Its own process group, as a terminal gives it: `signalGroup` then reaches all of it. */
  readonly group?: boolean;
}

const ownRoot = fileURLToPath(new URL('../../', import.meta.url));

/** Variables of our environment that a child may see: none that names a dependency of ours. */
const seen = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'XDG_CACHE_HOME', 'NODE_EXTRA_CA_CERTS', 'NODE_COMPILE_CACHE'];

const bare = (): Record<string, string> =>
  Object.fromEntries(
    seen.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

const serving = 'serving /livez, /readyz and /metrics';

const parsed = (text: string): Line | null => {
  if (!text.startsWith('{')) return null;
  try {
    return JSON.parse(text) as Line;
  } catch {
    return null;
  }
};

export class Process {
  readonly main: string;
  readonly #child: ChildProcess;
  readonly #group: boolean;
  readonly #texts: string[] = [];
  readonly #lines: Line[] = [];
  readonly #exited: Promise<Ended>;
  /** Looks of those who wait for its output, at each line of it. */
  readonly #waiting = new Set<() => void>();
  #asked = 0;

  constructor(
    main: string,
    { env = {}, args = [], group = false, root = ownRoot, sources = env.MUTANT !== undefined }: StartOptions,
  ) {
    this.main = main;
    this.#group = group;
    this.#child = spawn(process.execPath, [sources ? path.join(root, main) : built(path.join(root, main)), ...args], {
      cwd: root,
      env: { ...bare(), ...env },
      detached: group,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (text) => {
        this.#texts.push(text);
        const line = parsed(text);
        if (line !== null) this.#lines.push(line);
        for (const look of this.#waiting) look();
      });
    }
    const { promise, resolve } = Promise.withResolvers<Ended>();
    // `close`, not `exit`: then all its output has been read.
    this.#child.once('close', (code, signal) => resolve({ code, signal, ms: performance.now() - this.#asked }));
    this.#child.once('error', (error) => {
      this.#texts.push(error.message);
      resolve({ code: -1, signal: null, ms: 0 });
    });
    this.#exited = promise;
    afterFile(() => this.kill());
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** All it wrote, both streams. */
  output(): string {
    return this.#texts.join('\n');
  }

  /** The JSON lines among what it wrote. */
  log(): readonly Line[] {
    return this.#lines;
  }

  said(message: string): Line | undefined {
    return this.#lines.find((line) => line.msg === message);
  }

  /**
   * Resolves when its output has this text, or this log message so many times; rejects when it ends before, or takes
   * too long.
   */
  async saying(what: RegExp | string, within = 30_000, times = 1): Promise<void> {
    const said = () => this.#lines.filter(({ msg }) => msg === what).length;
    const there = () => (typeof what === 'string' ? said() >= times : what.test(this.output()));
    if (there()) return;
    const { promise, resolve } = Promise.withResolvers<'said' | 'late'>();
    const look = () => void (there() && resolve('said'));
    this.#waiting.add(look);
    const timer = setTimeout(() => resolve('late'), within * patience);
    try {
      const how = await Promise.race([promise, this.#exited]);
      if (how === 'said' || there()) return;
      const when = how === 'late' ? `within ${within * patience} ms` : 'before it ended';
      throw new Error(`${this.main} did not print ${what} ${when}:\n${this.output()}`);
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  /** Of the api. */
  url(path: string): string {
    return this.#at(this.said('ready')?.port, path);
  }

  /** For operators: /livez, /readyz with its reasons, /metrics. */
  opsUrl(path: string): string {
    return this.#at(this.said(serving)?.opsPort, path);
  }

  /** One for each ops server of a process that runs several; an api without one answers itself. */
  opsUrls(path: string): readonly string[] {
    const served = this.#lines.filter(({ msg }) => msg === serving);
    return served.length === 0 ? [this.url(path)] : served.map(({ opsPort }) => `http://127.0.0.1:${opsPort}${path}`);
  }

  #at(port: unknown, path: string): string {
    if (typeof port !== 'number') throw new Error(`${this.main} does not serve ${path}:\n${this.output()}`);
    return `http://127.0.0.1:${port}${path}`;
  }

  /** Sent to it, or to its whole group where it has one. */
  signal(name: NodeJS.Signals): void {
    if (this.#asked === 0) this.#asked = performance.now();
    if (this.#group) process.kill(-this.pid, name);
    else this.#child.kill(name);
  }

  exited(): Promise<Ended> {
    return this.#exited;
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.running && this.#child.pid !== undefined) this.signal('SIGKILL');
    await this.#exited;
  }

  /** Asks it to drain; kills it after `within` milliseconds, which then shows as its signal. */
  async stop(within = 20_000): Promise<Ended> {
    if (this.running) this.signal('SIGTERM');
    const timer = setTimeout(() => void this.kill(), within * patience);
    try {
      return await this.#exited;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Where a standalone process serves its api, `/v1` included, as it printed it; empty before. */
export const printedUrl = (output: string): string => /Ready in [\d.]+ s: (\S+)/.exec(output)?.[1] ?? '';

/** Runs it, ready when this resolves. */
export const start = async (main: string, options: StartOptions = {}): Promise<Process> => {
  const child = new Process(main, options);
  await child.saying(options.readyAt ?? 'ready', options.within ?? 60_000);
  return child;
};

/** Runs it to its end. */
export const run = async (main: string, options: StartOptions = {}): Promise<Ended & { readonly output: string }> => {
  const child = new Process(main, options);
  const timer = setTimeout(() => void child.kill(), (options.within ?? 60_000) * patience);
  try {
    const ended = await child.exited();
    return { ...ended, output: child.output() };
  } finally {
    clearTimeout(timer);
  }
};

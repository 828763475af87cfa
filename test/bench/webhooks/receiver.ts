/**
 * The other side: bare node:http in its own process, a port for each endpoint, 204 to everything. It counts arrivals,
 * recognises repeats by their id, and records the time of each arrival on request. Run as a program this file is that
 * process.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monotonicMs } from './clock.ts';

export interface Counts {
  readonly arrived: number;
  /** Different ids, over all ports. */
  readonly ids: number;
  /** Sum of the first 32 bits of the different ids: different sets of ids have different sums, except by chance. */
  readonly digest: number;
  /** Arrivals with an id that the port has had before. */
  readonly repeated: number;
  readonly shortest: number;
  readonly longest: number;
}

interface Options {
  readonly ports: number;
  /** Milliseconds until an answer. */
  readonly answerMs: number;
  /** Records when each id arrived. */
  readonly timed: boolean;
}

interface Reported {
  readonly ports?: readonly number[];
  readonly progress?: { readonly arrived: number; readonly at: number };
  readonly counts?: Counts;
  readonly times?: ReadonlyMap<string, number>;
}

/** Milliseconds between two reports of progress. */
const reportMs = 4;

export class Receiver {
  readonly urls: readonly string[];
  /** Requests that had arrived a few milliseconds ago. */
  arrived = 0;
  /** Monotonic time of the last arrival. */
  arrivedAt = 0;
  readonly #child: ChildProcess;
  #changed = Promise.withResolvers<void>();

  static async start(options: Partial<Options> = {}): Promise<Receiver> {
    const { ports = 1, answerMs = 0, timed = false } = options;
    const all: Options = { ports, answerMs, timed };
    const child = fork(import.meta.filename, [JSON.stringify(all)], { serialization: 'advanced', execArgv: [] });
    const [{ ports: given = [] }] = (await once(child, 'message')) as [Reported];
    return new Receiver(child, given);
  }

  private constructor(child: ChildProcess, ports: readonly number[]) {
    this.#child = child;
    this.urls = ports.map((port) => `http://127.0.0.1:${port}/events`);
    child.on('message', ({ progress }: Reported) => {
      if (progress === undefined) return;
      this.arrived = progress.arrived;
      this.arrivedAt = progress.at;
      const { resolve } = this.#changed;
      this.#changed = Promise.withResolvers();
      resolve();
    });
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  /** Resolves with the next report of progress. */
  progress(): Promise<void> {
    return this.#changed.promise;
  }

  /** @throws when fewer arrive, with how many are missing. */
  async until(arrived: number, withinMs: number): Promise<void> {
    const deadline = AbortSignal.timeout(withinMs);
    const late = once(deadline, 'abort').then(() => {
      throw new Error(`${arrived - this.arrived} of ${arrived} did not arrive within ${withinMs} ms`);
    });
    late.catch(() => undefined);
    while (this.arrived < arrived) await Promise.race([this.progress(), late]);
  }

  async counts(): Promise<Counts> {
    return (await this.#ask('counts')).counts ?? Promise.reject(new Error('no counts'));
  }

  /** When each id first arrived; the receiver then forgets them. */
  async times(): Promise<ReadonlyMap<string, number>> {
    return (await this.#ask('times')).times ?? new Map();
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async #ask(what: 'counts' | 'times'): Promise<Reported> {
    const { promise, resolve } = Promise.withResolvers<Reported>();
    const hear = (reported: Reported): void => {
      if (reported[what] !== undefined) resolve(reported);
    };
    this.#child.on('message', hear);
    this.#child.send(what);
    const reported = await promise;
    this.#child.off('message', hear);
    return reported;
  }
}

const receive = async ({ ports, answerMs, timed }: Options): Promise<void> => {
  const seen = Array.from({ length: ports }, () => new Set<string>());
  let times = new Map<string, number>();
  let [arrived, at, reported, repeated, shortest, longest] = [0, 0, 0, 0, Number.POSITIVE_INFINITY, 0];
  const listening: number[] = [];
  for (const ids of seen) {
    const server = createServer((request, response) => {
      request.on('end', () => {
        arrived += 1;
        at = monotonicMs();
        const id = String(request.headers['webhook-id']);
        if (ids.has(id)) repeated += 1;
        ids.add(id);
        if (timed && !times.has(id)) times.set(id, at);
        const length = Number(request.headers['content-length']);
        if (length < shortest) shortest = length;
        if (length > longest) longest = length;
        if (answerMs === 0) response.writeHead(204).end();
        else setTimeout(() => response.writeHead(204).end(), answerMs);
      });
      request.resume();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    listening.push((server.address() as AddressInfo).port);
  }
  const tell = (message: Reported): void => void process.send?.(message);
  setInterval(() => {
    if (arrived === reported) return;
    reported = arrived;
    tell({ progress: { arrived, at } });
  }, reportMs);
  process.on('message', (asked) => {
    if (asked === 'times') {
      tell({ times });
      times = new Map();
      return;
    }
    const all = new Set(seen.flatMap((ids) => [...ids]));
    let digest = 0;
    for (const id of all) digest += Number.parseInt(id.slice(0, 8), 16);
    tell({ counts: { arrived, ids: all.size, digest, repeated, shortest, longest } });
  });
  // The parent is gone. Ctrl-C is for the parent, which stops this process when the senders have ended.
  process.on('disconnect', () => process.exit());
  process.on('SIGINT', () => undefined);
  tell({ ports: listening });
};

if (import.meta.main) await receive(JSON.parse(process.argv[2] ?? '{}') as Options);

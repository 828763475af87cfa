import { Worker } from 'node:worker_threads';
import type { FromThread, ToThread } from '#runtime/process/lifecycle.ts';
import type { Check, MetricsJson, SelfReport } from '#runtime/process/telemetry.ts';

/**
 * The processes of standalone other than the api, on threads with their own event loop and pool: a lease or a heartbeat
 * never waits behind a render.
 */

/** The processes of each thread, by their main.ts relative to this folder. */
const layout: Readonly<Record<string, readonly string[]>> = {
  projections: ['../../projections/main.ts', '../outcomes/main.ts', '../webhooks/main.ts'],
  publisher: ['../publisher/main.ts'],
  media: ['../media/main.ts', '../insights/main.ts', '../reports/main.ts'],
};

/**
 * Limit of the young generation of a thread's heap. Without one it grows tenfold while a thread loads its modules, and
 * an idle thread gives nothing back. The api's thread, which makes the most garbage, has no such limit. At 6 MB the
 * projections spend 29 % of their time on collecting it under load, at 16 MB 19 %, for 15 MB more.
 */
const youngMb = (thread: string): number => (thread === 'projections' ? 16 : 6);

export interface Threads {
  /** Resolves when every process is ready; rejects when one failed. */
  readonly ready: Promise<void>;
  /** Rejects when a thread ends before `stop` was called. */
  readonly failed: Promise<never>;
  readonly report: SelfReport;
  /** Lets every process finish its started work. */
  stop(): Promise<void>;
}

interface Report {
  readonly checks: readonly Check[];
  readonly metrics: readonly MetricsJson[];
}

class Thread {
  readonly name: string;
  readonly ready: Promise<void>;
  readonly failed: Promise<never>;
  readonly #worker: Worker;
  readonly #processes: number;
  readonly #exited: Promise<void>;
  readonly #pending = new Map<number, { readonly reports: Report[]; done(report: Report): void }>();
  #stopping = false;
  #nextId = 0;

  constructor(name: string, mains: readonly string[], env: Readonly<Record<string, string | undefined>>) {
    this.name = name;
    this.#processes = mains.length;
    const urls = mains.map((main) => new URL(main, import.meta.url).href);
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      workerData: { mains: urls },
      env: { ...env },
      name,
      resourceLimits: { maxYoungGenerationSizeMb: youngMb(name) },
    });
    const { promise: ready, resolve: isReady, reject: isNot } = Promise.withResolvers<void>();
    const { promise: failed, reject: fail } = Promise.withResolvers<never>();
    let waiting = mains.length;
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        const error = new Error(`the thread ${name} has ended`);
        isNot(error);
        if (!this.#stopping) fail(error);
        for (const [id, { done, reports }] of this.#pending) {
          this.#pending.delete(id);
          done(merged(reports));
        }
        resolve();
      });
    });
    this.#worker.on('error', (error) => {
      isNot(error);
      fail(error);
    });
    this.#worker.on('message', (message: FromThread) => {
      if (message.type === 'ready') {
        waiting -= 1;
        if (waiting === 0) isReady();
      } else if (message.type === 'failed') {
        const { process, reason } = message;
        fail(new Error(`${process} has stopped${reason === null ? '; its log says why' : `: ${reason}`}`));
        isNot(new Error(`${process} did not start${reason === null ? '; its log says why' : `: ${reason}`}`));
      } else this.#take(message.id, message);
    });
    this.ready = ready;
    this.failed = failed;
    ready.catch(() => undefined);
    failed.catch(() => undefined);
  }

  #take(id: number, report: Report): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    pending.reports.push(report);
    if (pending.reports.length < this.#processes) return;
    this.#pending.delete(id);
    pending.done(merged(pending.reports));
  }

  /** A thread without an answer in time is reported as not ready. */
  ask(timeoutMs: number): Promise<Report> {
    return new Promise((resolve) => {
      this.#nextId += 1;
      const id = this.#nextId;
      const silent: Report = { checks: [{ name: this.name, ok: false, detail: 'does not answer' }], metrics: [] };
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        resolve(silent);
      }, timeoutMs);
      const done = (report: Report): void => {
        clearTimeout(timer);
        resolve(report.checks.length === 0 ? silent : report);
      };
      this.#pending.set(id, { reports: [], done });
      this.#send({ type: 'report', id });
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#send({ type: 'drain' });
    await this.#exited;
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}

const merged = (reports: readonly Report[]): Report => ({
  checks: reports.flatMap((one) => one.checks),
  metrics: reports.flatMap((one) => one.metrics),
});

/** @param env the environment of the threads, from which they read their config */
export const startThreads = (env: Readonly<Record<string, string | undefined>>, own: SelfReport): Threads => {
  const threads = Object.entries(layout).map(([name, mains]) => new Thread(name, mains, env));
  const reports = () => Promise.all(threads.map((thread) => thread.ask(3_000)));
  return {
    ready: Promise.all(threads.map((thread) => thread.ready)).then(() => undefined),
    failed: Promise.race(threads.map((thread) => thread.failed)),
    report: {
      checks: async () => [...(await own.checks()), ...(await reports()).flatMap((one) => one.checks)],
      metrics: async () => [...(await own.metrics()), ...(await reports()).flatMap((one) => one.metrics)],
    },
    stop: async () => {
      await Promise.all(threads.map((thread) => thread.stop()));
    },
  };
};

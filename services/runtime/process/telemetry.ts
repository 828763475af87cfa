import type { Server } from 'node:http';
import { type Logger, type LoggerOptions, pino } from 'pino';
import { within } from '#contracts/base/pause.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { processEnv, readCommit } from './config.ts';
import { type ListenAt, listen, originOf } from './listen.ts';
import { LogFile, type LogLimits } from './log-file.ts';
import { Lines } from './log-lines.ts';
import { cutMembers, shownMessage } from './log-members.ts';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from './metrics.ts';

/** The reports of a process about itself: logs, metrics, liveness and readiness. */

export type { Logger };

/** What runs: the first line of the log, /readyz and /metrics say it. */
export const build = { version: packageJson.version, commit: readCommit(processEnv()) } as const;

/** Bytes that are gathered before a write to a log file, and the longest that lines wait, milliseconds. */
const gathered = 8_192;
const lingerMs = 250;

const usualLimits: LogLimits = { bytes: 64 * 1024 ** 2, files: 5 };

/**
 * A log file gathers lines, so that not every request costs a write. A kill -9 loses the last lines; an orderly end
 * flushes them.
 */
const openLines = (name: string, file: string | null, limits: LogLimits): Lines => {
  const gap = (dropped: number, why: string): string => {
    const time = new Date().toISOString();
    return `${JSON.stringify({ level: 40, time, name, dropped, why, msg: 'log lines could not be written' })}\n`;
  };
  const stdout = (): number => 1;
  if (file === null) return new Lines({ descriptor: stdout, gathered: 0, lingerMs, gap });
  const opened = new LogFile(file, limits);
  return new Lines({ descriptor: () => opened.descriptor(), gathered, lingerMs, gap });
};

/**
 * For an error that is logged alone pino takes the message before the formatters run, so the hook removes values from
 * it.
 */
const hooks: LoggerOptions['hooks'] = {
  logMethod(args, method) {
    const [error] = args as unknown[];
    if (error instanceof Error && args.length === 1) method.call(this, { err: error }, shownMessage(error));
    else method.apply(this, args);
  },
};

export interface OpenedLog {
  readonly logger: Logger;
  /** Lines that could not be written since the start. */
  dropped(): number;
}

/**
 * @param file of the log; null = standard output. Several threads may share one: lines are written whole.
 * @throws where the file cannot be opened
 */
export const openLog = (
  name: string,
  level: string,
  file: string | null = null,
  limits: LogLimits = usualLimits,
): OpenedLog => {
  const formatters = { log: cutMembers };
  const options = { name, level, formatters, hooks, base: { name }, timestamp: pino.stdTimeFunctions.isoTime };
  const lines = openLines(name, file, limits);
  const logger = pino(options, lines);
  // Bindings of a child bypass the formatters.
  const { child } = logger;
  logger.child = function (this: Logger, bindings: object, more?: object) {
    return child.call(this, cutMembers(bindings), more);
  } as typeof child;
  return { logger, dropped: () => lines.dropped };
};

export const createLogger = (name: string, level: string, file: string | null = null): Logger =>
  openLog(name, level, file).logger;

export const countDropped = (registry: Registry, dropped: () => number): void => {
  new Counter({
    name: 'log_lines_dropped_total',
    help: 'Lines of the log that could not be written, for example because its disk was full',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(dropped());
    },
  });
};

export const createRegistry = (thread: string): Registry => {
  const registry = new Registry();
  registry.setDefaultLabels({ thread });
  // Includes nodejs_eventloop_lag_*: leases and heartbeats must not share a thread with work over 50 ms.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 200 });
  new Gauge({
    name: 'postline_build_info',
    help: 'Always 1; version and commit of the build that runs',
    labelNames: ['version', 'commit'],
    registers: [registry],
  }).set(build, 1);
  return registry;
};

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Why it is not ready; also figures such as a lag. */
  readonly detail?: string;
}

/** The dependencies of a process, each checked on request. */
export class Readiness {
  readonly #checks = new Map<string, () => Promise<string | null>>();

  /** `check` resolves to a detail (or null) when the dependency is well and rejects when it is not. */
  add(name: string, check: () => Promise<string | null>): void {
    this.#checks.set(name, check);
  }

  async ask(): Promise<readonly Check[]> {
    return Promise.all(
      [...this.#checks].map(async ([name, check]): Promise<Check> => {
        try {
          const detail = await within<string | null>(answerMs, check(), noAnswer);
          return detail === null ? { name, ok: true } : { name, ok: true, detail };
        } catch (error) {
          return { name, ok: false, detail: error instanceof Error ? error.message : String(error) };
        }
      }),
    );
  }
}

/** Milliseconds for one check. */
const answerMs = 2_000;

const noAnswer = (): never => {
  throw new Error(`no answer within ${answerMs} ms`);
};

export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface SelfReport {
  checks(): Promise<readonly Check[]>;
  metrics(): Promise<readonly MetricsJson[]>;
}

export interface OpsAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Name of the check that tells in its detail of held publishing; without a detail publishing is on. */
export const publishingCheck = 'publishing';
/** Name of the check that tells in its detail of the newest restore from an older copy. */
export const restoreCheck = 'restore';

/** Name of the check that tells in its detail of networks that no longer answer the version they are asked for. */
export const networkRestsCheck = 'networks';

/** What /readyz answers: held publishing is no fault, and the answer names it. */
export const readyAnswer = (checks: readonly Check[]) => {
  const isHeld = checks.some(({ name, ok, detail }) => name === publishingCheck && ok && detail !== undefined);
  const status = checks.every((one) => one.ok) ? ('ready' as const) : ('not_ready' as const);
  return { status, ...(isHeld ? { publishing: 'hold' as const } : {}) };
};

/** Answers /livez, /readyz and /metrics; null for any other path. */
export const opsAnswer = async (path: string, report: SelfReport): Promise<OpsAnswer | null> => {
  if (path === '/livez') return { status: 200, contentType: 'application/json', body: '{"status":"alive"}' };
  if (path === '/readyz') {
    const checks = await report.checks();
    const answer = readyAnswer(checks);
    const body = JSON.stringify({ ...answer, version: build.version, checks });
    return { status: answer.status === 'ready' ? 200 : 503, contentType: 'application/json', body };
  }
  if (path !== '/metrics') return null;
  const merged = AggregatorRegistry.aggregate([...(await report.metrics())]);
  return { status: 200, contentType: merged.contentType, body: await merged.metrics() };
};

/** Milliseconds that the operators' port waits for a request, and how many connections it holds. */
const opsLimits = { headersTimeout: 10_000, requestTimeout: 10_000, keepAliveTimeout: 65_000 };
const maxOpsConnections = 256;
/**
 * Without a byte either way: a client that reads no answer would otherwise hold its connection, and 256 of them the
 * port, for ever.
 */
const opsSilentMs = 30_000;

/** The path of a request; null where its target is not one, such as `//`. */
const pathOf = (target: string | undefined): string | null =>
  URL.canParse(target ?? '/', 'http://ops') ? new URL(target ?? '/', 'http://ops').pathname : null;

/** The server on OPS_PORT, for operators: no caller of the api may reach it. */
export const serveOps = async (
  at: ListenAt,
  report: SelfReport,
  silentMs: number = opsSilentMs,
): Promise<{ readonly port: number; readonly origin: string; readonly server: Server }> => {
  // Imported on use (see metrics.ts).
  const { createServer } = await import('node:http');
  const answer = async (target: string | undefined): Promise<OpsAnswer> => {
    const path = pathOf(target);
    const known = path === null ? null : await opsAnswer(path, report);
    return known ?? { status: 404, contentType: 'text/plain', body: 'not found' };
  };
  const server = createServer(opsLimits, (incoming, outgoing) => {
    answer(incoming.url)
      .catch(() => ({ status: 500, contentType: 'text/plain', body: 'failed' }))
      .then(({ status, contentType, body }) => {
        // A request that came before the port closed and is answered after: a connection kept alive would keep the
        // process alive.
        if (!server.listening) outgoing.setHeader('connection', 'close');
        outgoing.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
      });
  });
  server.maxConnections = maxOpsConnections;
  server.timeout = silentMs;
  const port = await listen(server, at);
  return { port, origin: originOf(at.host, port), server };
};

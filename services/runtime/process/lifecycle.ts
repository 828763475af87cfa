import { isMainThread, parentPort } from 'node:worker_threads';
import type { Registry } from 'prom-client';
import { SetupError } from '#contracts/ports/setup-error.ts';
import {
  type Config,
  ConfigError,
  type ConfigOf,
  configHelp,
  processEnv,
  readConfig,
  requireSet,
  type SettingKey,
} from './config.ts';
import { everyProcess } from './settings/reads.ts';
import {
  build,
  type Check,
  countDropped,
  createRegistry,
  type Logger,
  type MetricsJson,
  type OpenedLog,
  openLog,
  Readiness,
  type SelfReport,
  serveOps,
} from './telemetry.ts';

/**
 * The life of a process: read the config, start, report ready, and on one signal end by emptying its loops. As a thread
 * of standalone it does the same, on a message of its parent instead of a signal.
 */

export interface ProcessContext<K extends SettingKey = SettingKey> {
  readonly name: string;
  readonly config: ConfigOf<K>;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly readiness: Readiness;
  readonly report: SelfReport;
  /** Aborts once, when the process is to drain. */
  readonly signal: AbortSignal;
  /** Reports that the process does its work now; `details` is logged. */
  ready(details?: Readonly<Record<string, unknown>>): void;
  /** Runs when `main` has returned, last added first. */
  onClose(close: () => Promise<void>): void;
}

/** Messages between a thread and its parent. */
export type ToThread = { readonly type: 'drain' } | { readonly type: 'report'; readonly id: number };
export type FromThread =
  | { readonly type: 'ready'; readonly process: string; readonly details: Readonly<Record<string, unknown>> }
  /** @property reason for the operator; null where only the log has it */
  | { readonly type: 'failed'; readonly process: string; readonly reason: string | null }
  | {
      readonly type: 'report';
      readonly process: string;
      readonly id: number;
      readonly checks: readonly Check[];
      readonly metrics: readonly MetricsJson[];
    };

export interface ProcessOptions<K extends SettingKey> {
  readonly name: string;
  readonly summary: string;
  /** The settings that `main` may read, and that `--help` shows beside those of the log and of the operators' port. */
  readonly reads: readonly K[];
  /** Serves /livez, /readyz and /metrics on OPS_PORT; standalone does it itself, for all its threads. */
  readonly ops?: boolean;
  /**
   * Settings that the process needs; without them it ends with exit code 2 and a message. Default: the database and the
   * secret key.
   */
  readonly requires?: readonly SettingKey[];
  /** Default: that of the process. Standalone adds the settings that it has determined. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Runs until `context.signal` aborts and started work is finished. */
  main(context: ProcessContext<K>): Promise<void>;
}

export const runProcess = async <K extends SettingKey>({
  name,
  summary,
  reads,
  ops = true,
  requires = ['databaseUrl', 'secretKey'],
  env = processEnv(),
  main,
}: ProcessOptions<K>): Promise<void> => {
  if (isMainThread && process.argv.includes('--help')) {
    process.stdout.write(`${name}: ${summary}\n\nEnvironment:\n\n${configHelp([...everyProcess, ...reads])}\n`);
    return;
  }
  let config: Config;
  let log: OpenedLog;
  try {
    config = readConfig(env);
    requireSet(config, requires);
    log = logOf(name, config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name}: ${error.message}\nSee --help for its variables.\n`);
    process.exitCode = 2;
    return;
  }
  const { logger } = log;
  logger.info(build, 'starting');
  const registry = createRegistry(name);
  countDropped(registry, log.dropped);
  const readiness = new Readiness();
  let starting: readonly Check[] = [{ name: 'start', ok: false, detail: 'still starting' }];
  const report: SelfReport = {
    checks: async () => [...starting, ...(await readiness.ask())],
    metrics: async () => [await registry.getMetricsAsJSON()],
  };
  const draining = new AbortController();
  const closers: (() => Promise<void>)[] = [];
  const undoDrain = listenForDrain(name, draining, logger, report);
  const context: ProcessContext<K> = {
    name,
    config,
    logger,
    registry,
    readiness,
    report,
    signal: draining.signal,
    ready: (details = {}) => {
      starting = [];
      logger.info(details, 'ready');
      sendToParent({ type: 'ready', process: name, details });
    },
    onClose: (close) => void closers.unshift(close),
  };
  try {
    if (ops && isMainThread) {
      const { port, server } = await serveOps(opsAt(config), report);
      logger.info({ opsPort: port }, 'serving /livez, /readyz and /metrics');
      context.onClose(async () => void server.close());
    }
    await main(context);
  } catch (error) {
    // A start that waited for something was asked to end.
    if (error === draining.signal.reason) return;
    logger.fatal({ err: error }, 'stopped by an error');
    const reason = error instanceof SetupError ? error.message : null;
    if (reason !== null && isMainThread) process.stderr.write(`${name}: ${reason}\n`);
    process.exitCode = reason === null ? 1 : 2;
    sendToParent({ type: 'failed', process: name, reason });
  } finally {
    for (const close of closers)
      await close().catch((error: unknown) => logger.error({ err: error }, 'closing failed'));
    undoDrain();
    logger.info('stopped');
    logger.flush();
  }
};

/** @throws ConfigError */
const logOf = (name: string, { logLevel, logFile, logFileBytes: bytes, logFiles: files }: Config): OpenedLog => {
  try {
    return openLog(name, logLevel, logFile, { bytes, files });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`LOG_FILE must be a file that can be written: ${why}`);
  }
};

/** Without a setting of the operator the port is open to this machine only. */
const opsAt = ({ host, opsHost, opsPort }: Config) => ({
  host: opsHost ?? (opsPort === 0 ? '127.0.0.1' : host),
  port: opsPort,
  setting: 'OPS_PORT',
});

const sendToParent = (message: FromThread): void => {
  if (!isMainThread) parentPort?.postMessage(message);
};

/**
 * One SIGTERM or SIGINT drains, and so does the end of bootstrap.mjs; a second signal ends the process at once. One
 * Ctrl-C under `npm start` arrives up to three times (from the terminal, npm and bootstrap.mjs), so signals within a
 * second count as one.
 */
const listenForDrain = (name: string, draining: AbortController, logger: Logger, report: SelfReport): (() => void) => {
  if (!isMainThread) {
    const heed = (message: ToThread): void => {
      if (message.type === 'drain') draining.abort();
      else void answerReport(name, message.id, report);
    };
    parentPort?.on('message', heed);
    return () => parentPort?.off('message', heed);
  }
  let since = 0;
  const drain = (signal: NodeJS.Signals): void => {
    if (draining.signal.aborted) {
      if (performance.now() - since > 1_000) process.exit(130);
      return;
    }
    since = performance.now();
    logger.info({ signal }, 'draining');
    draining.abort();
  };
  const orphaned = (): void => {
    if (draining.signal.aborted) return;
    logger.info('draining: the parent of this process has ended');
    draining.abort();
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  // A parent that starts this process with a channel holds it for as long as it lives. The channel alone must not keep
  // this process alive.
  process.on('disconnect', orphaned);
  process.channel?.unref();
  return () => {
    process.off('SIGTERM', drain);
    process.off('SIGINT', drain);
    process.off('disconnect', orphaned);
  };
};

const answerReport = async (name: string, id: number, report: SelfReport): Promise<void> => {
  sendToParent({ type: 'report', process: name, id, checks: await report.checks(), metrics: await report.metrics() });
};

/** Resolves when all have ended. If one fails, it aborts `failed`, waits for the others, and rejects. */
export const together = async (parts: readonly Promise<unknown>[], failed: AbortController): Promise<void> => {
  try {
    await Promise.all(parts);
  } catch (error) {
    failed.abort();
    await Promise.allSettled(parts);
    throw error;
  }
};

/** Resolves when the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

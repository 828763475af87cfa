import { existsSync } from 'node:fs';
import path from 'node:path';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { openAdapters } from '#infra/adapters.ts';
import { startEmbeddedAnalytics } from '#infra/clickhouse/embedded.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { sandboxAccounts, sandboxAhead, sandboxInboxes, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { startWithoutFormerData } from '#infra/postgres/former-data.ts';
import { isRebuildOpen } from '#projections/analytics/live.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { secretKeyFile, secretKeyOf } from '#runtime/identity/secret-key.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { type Config, processEnv, settingKeys } from '#runtime/process/config.ts';
import { aborted, type ProcessContext, runProcess } from '#runtime/process/lifecycle.ts';
import { type Logger, type Readiness, serveOps } from '#runtime/process/telemetry.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { openDoor } from '#services/api/server.ts';
import { baseUrlOf, makeApiTables, startApi } from '#services/api/start.ts';
import { frontParts } from '#services/front/parts.ts';
import { addressesOf, diskRoom } from './addresses.ts';
import { firstStart } from './first-start.ts';
import { help, type Options, outdatedFfmpegAt, readOptions } from './options.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { Screen } from './screen.ts';
import { startThreads } from './threads.ts';
import { tour } from './tour.ts';

/**
 * The file is long because it alone starts the adapters, every process, the first workspace and the tour, in this
 * order.
 */

const env = processEnv();

const serve = async (options: Options): Promise<void> => {
  const receiver = await startReceiver();
  try {
    await serveWith(options, receiver);
  } finally {
    await receiver.close();
  }
};

const serveWith = (options: Options, receiver: Receiver): Promise<void> => {
  const dataDir = path.resolve(options.dataDir ?? env.DATA_DIR ?? './data');
  const own = {
    ...env,
    DATA_DIR: dataDir,
    SECRET_KEY: env.SECRET_KEY ?? secretKeyOf(dataDir),
    LOG_FILE: env.LOG_FILE ?? path.join(dataDir, 'standalone.log'),
    // The tour's receiver is on this machine, which webhooks may reach only when the configuration names it.
    PRIVATE_TARGETS: env.PRIVATE_TARGETS === '*' ? '*' : [env.PRIVATE_TARGETS, receiver.host].filter(Boolean).join(','),
    ...(options.port === null ? {} : { PORT: String(options.port) }),
  };
  return runProcess({
    name: 'standalone',
    summary: 'all processes with one command',
    ops: false,
    reads: settingKeys,
    requires: ['secretKey'],
    env: own,
    async main(context) {
      const screen = new Screen();
      try {
        await run(context, screen, options, own, dataDir, receiver);
      } catch (error) {
        if (!(error instanceof SetupError))
          screen.problem(error instanceof Error ? error.message : String(error), own.LOG_FILE);
        throw error;
      }
    },
  });
};

const run = async (
  context: ProcessContext,
  screen: Screen,
  options: Options,
  own: Readonly<Record<string, string | undefined>>,
  dataDir: string,
  receiver: Receiver,
): Promise<void> => {
  const { config, logger, registry, readiness, report, signal, ready, onClose } = context;
  if (config.ffmpegPath !== null) await findBinaries(config.ffmpegPath);
  // Before Postgres, so that the operator learns at once of a taken port, and before the threads, which need the
  // address: networks fetch media files from it.
  const door = await openDoor({ ...config, setting: '--port or PORT', registry });
  onClose(door.close);
  readiness.add('disk', () => diskRoom(dataDir));
  let shown = report;
  const ops = await serveOps(opsAt(config, door.port, own), {
    checks: () => shown.checks(),
    metrics: () => shown.metrics(),
  });
  onClose(async () => void ops.server.close());
  const secrets = new Secrets(
    config.secretKey ?? '',
    env.SECRET_KEY !== undefined ? 'SECRET_KEY' : secretKeyFile(dataDir),
  );
  const baseUrl = baseUrlOf(config, door);
  const addresses = await addressesOf(config, door);
  const stores = await openStores({ screen, logger, readiness, config, dataDir, onClose, secrets, baseUrl });
  const { adapters, silent } = stores;
  screen.step('Starting the projections, the publisher, the webhooks and the media worker');
  const threads = startThreads(
    {
      OUTDATED_FFMPEG: outdatedFfmpegAt(config.host),
      ...{ ...own, DATABASE_URL: stores.databaseUrl, CLICKHOUSE_URL: stores.clickhouseUrl, PORT: String(door.port) },
      ...(stores.mayBeLost ? { ANALYTICS_LOST: 'rebuild' } : {}),
    },
    report,
  );
  onClose(threads.stop);
  shown = threads.report;
  await threads.ready;
  const codec = new EventCodec(adapters.dataKeys);
  onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
  const api = await startApi({
    adapters,
    door,
    config: { ...config, ...addresses },
    secrets,
    logger,
    readiness,
    report: threads.report,
    ...{ sandboxProfile, sandboxAhead, sandboxAccounts, sandboxInboxes },
    liveOf: (options) => liveNetworks({ ...options, stores: adapters }),
    parts: frontParts(config, registry),
  });
  onClose(api.stop);
  ready({ port: api.port, baseUrl: api.baseUrl });
  const first = await firstStart({
    store: api.store,
    pool: adapters.pool,
    log: adapters.log,
    secrets,
    readiness: threads.report,
    logger,
  });
  screen.started(api.baseUrl, ops.origin, first.made);
  const isTour = options.tour || options.tourOnly || (first.made !== null && !options.noTour);
  let toured: Toured = { passed: true, testKey: null };
  if (isTour && silent.length > 0) {
    screen.warning('The tour is left out, it needs what does not answer. Later: --tour.');
    toured = { passed: false, testKey: null };
  } else if (isTour) toured = await takeTour({ api, config, first, screen, receiver, signal });
  if (options.tourOnly) {
    if (!toured.passed) process.exitCode = 1;
    return;
  }
  if (!signal.aborted) {
    screen.serving({
      baseUrl: api.baseUrl,
      dataDir,
      logFile: own.LOG_FILE ?? '',
      // What it shows to try finds something in the workspace of the tour.
      testKey: toured.testKey ?? first.made?.testKey ?? null,
      people: { consoleUrl: api.consoleUrl, mcpUrl: api.mcpUrl, link: await first.ownersLink() },
    });
  }
  await Promise.race([aborted(signal), threads.failed]);
  screen.step('Draining');
};

interface TourParts {
  readonly api: Awaited<ReturnType<typeof startApi>>;
  readonly config: Config;
  readonly first: Awaited<ReturnType<typeof firstStart>>;
  readonly screen: Screen;
  readonly receiver: Receiver;
  readonly signal: AbortSignal;
}

interface Toured {
  readonly passed: boolean;
  /** Of the workspace in which the tour left its posts; null: there was no tour. */
  readonly testKey: string | null;
}

const takeTour = async ({ api, config, first, screen, receiver, signal }: TourParts): Promise<Toured> => {
  const place = await first.tourPlace();
  const tourOptions = {
    baseUrl: api.baseUrl,
    key: place.testKey,
    real: config.tourBluesky === null ? null : { ...config.tourBluesky, key: await place.liveKey() },
    session: await place.session(),
    timezone: place.timezone,
    screen,
    receiver,
    signal,
  };
  // Ctrl-C during the tour is not a failure.
  const taken = await tour(tourOptions).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return null;
  });
  if (taken !== null && !signal.aborted) {
    const link = api.consoleUrl + (await place.ownersLink());
    screen.tourEnds({ baseUrl: api.baseUrl, key: place.testKey, clientId: taken.clientId, link });
  }
  return { passed: taken?.passed ?? false, testKey: place.testKey };
};

interface StoreParts {
  readonly screen: Screen;
  readonly logger: Logger;
  readonly readiness: Readiness;
  readonly config: Config;
  readonly dataDir: string;
  readonly onClose: (close: () => Promise<void>) => void;
  readonly secrets: Secrets;
  readonly baseUrl: string;
}

/** Starts the databases that the operator did not name, and opens the adapters on all of them. */
const openStores = async (parts: StoreParts) => {
  const { screen, logger, config, dataDir, onClose, secrets, baseUrl } = parts;
  const databaseUrl = config.databaseUrl ?? (await embedded(parts, config, dataDir, onClose));
  const isNewEngine = !existsSync(path.join(dataDir, 'analytics', 'data'));
  const clickhouseUrl = config.clickhouseUrl ?? (await embeddedAnalytics(dataDir, logger, onClose));
  const adapters = await openAdapters({
    name: 'api',
    config: { ...config, databaseUrl, clickhouseUrl },
    secrets,
    logger,
    baseUrl: () => baseUrl,
  });
  onClose(adapters.close);
  const silent = await adapters.silent({ analytics: config.clickhouseUrl !== null });
  for (const line of silent) {
    logger.warn(line);
    screen.warning(line);
  }
  await makeApiTables(adapters.pool);
  // Not at every start: the check starts the engine.
  const mayBeLost = config.clickhouseUrl === null && (isNewEngine || (await isRebuildOpen(adapters.pool)));
  return { adapters, silent, databaseUrl, clickhouseUrl, mayBeLost };
};

/** The port after the api's own, unless the operator named one; any free port where the api took any free port. */
const opsAt = (
  { opsHost, opsPort, port }: Config,
  listening: number,
  named: Readonly<Record<string, string | undefined>>,
) => {
  const beside = port === 0 ? 0 : (listening + 1) % 65_536;
  return { host: opsHost ?? '127.0.0.1', port: named.OPS_PORT === undefined ? beside : opsPort, setting: 'OPS_PORT' };
};

const embedded = async (
  { screen, logger, readiness }: { readonly screen: Screen; readonly logger: Logger; readonly readiness: Readiness },
  { logFileBytes: bytes, logFiles: files }: Config,
  dataDir: string,
  onClose: (close: () => Promise<void>) => void,
): Promise<string> => {
  screen.step('Starting Postgres');
  const server = await startWithoutFormerData({
    dataDir,
    log: { bytes, files },
    onProgress: (step) => screen.step(step),
    onTrouble: (line) => logger.warn(line),
  });
  onClose(server.stop);
  readiness.add('postgres', async () => {
    const trouble = server.trouble();
    if (trouble !== null) throw new Error(trouble);
    return null;
  });
  return server.url;
};

/** Costs only a socket until the first request. */
const embeddedAnalytics = async (
  dataDir: string,
  logger: Logger,
  onClose: (close: () => Promise<void>) => void,
): Promise<string> => {
  const engine = await startEmbeddedAnalytics({
    dir: path.join(dataDir, 'analytics'),
    onTrouble: (reason) => logger.warn(reason),
  });
  onClose(engine.stop);
  return engine.url;
};

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(help());
  else await serve(options);
} catch (error) {
  const isUsage = error instanceof UsageError;
  if (!isUsage && !(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n${isUsage ? 'See --help.\n' : ''}`);
  process.exitCode = 2;
}

/** Chooses the adapter behind each port from the configuration. Only this file knows all adapters. */
import { isMainThread } from 'node:worker_threads';
import type { ClickHouseClient } from '@clickhouse/client';
import type pg from 'pg';
import { within } from '#contracts/base/pause.ts';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventEraser, EventStore } from '#contracts/ports/event-store.ts';
import { type Log, LogError, type LogWriter } from '#contracts/ports/log.ts';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { type BlobConfig, openBlobs } from './blob/index.ts';
import type { KafkaOptions } from './kafka/client.ts';
import { PostgresAppLimits } from './postgres/app-limits.ts';
import { PostgresConnectAttempts } from './postgres/connect-attempts.ts';
import { type CodeGap, PostgresConnectCodes } from './postgres/connect-codes.ts';
import { type CredentialGap, PostgresCredentials } from './postgres/credentials.ts';
import { PostgresDataKeys } from './postgres/data-keys.ts';
import { eventSchema, migrateEvents, PostgresEventStore } from './postgres/event-store.ts';
import type { EventTail } from './postgres/event-tail.ts';
import { checkKeys } from './postgres/key-checks.ts';
import { openPostgresLog } from './postgres/log.ts';
import { type KeeperOptions, runInOneProcess } from './postgres/one-process.ts';
import { openPool } from './postgres/pool.ts';
import { PostgresPushedPosts, type PushedGap } from './postgres/pushed-posts.ts';
import { migrateSchema, operationalSchema, pendingFiles, type SchemaGap } from './postgres/schema.ts';
import { checkServer } from './postgres/server-check.ts';
import { addressOf, type Dependency, messageFor, requireAnswer } from './setup-errors.ts';

export interface AdaptersOptions {
  /** Name of the process, as Postgres and Kafka show it. */
  readonly name: string;
  readonly config: BlobConfig & {
    readonly databaseUrl: string | null;
    readonly eventStoreUrl: string | null;
    readonly clickhouseUrl: string | null;
    readonly kafkaBrokers: readonly string[];
    readonly kafkaPrefix: string;
    readonly kafkaReplicationFactor: number | null;
    readonly kafkaMinInSyncReplicas: number | null;
    readonly partitions: number;
    readonly poolSize: number;
    readonly baseUrl: string | null;
    readonly host: string;
    readonly port: number;
  };
  /** Wraps the data keys of clients and signs URLs of media files. */
  readonly secrets: {
    readonly current: string;
    readonly source: string;
    versions(): readonly string[];
    has(version: string): boolean;
    subKey(purpose: 'wrapping' | 'blob-urls' | 'key-check', version?: string): Buffer;
  };
  /**
   * False for a command that only reads: its keys must agree with those of the database, and no check value is stored.
   * Default true.
   */
  readonly decidesKeys?: boolean;
  /**
   * REST root of the api, with `/v1`, when it is known better than from the configuration: by the api itself, once it
   * listens.
   */
  readonly baseUrl?: () => string;
  /** Where a test kills the process between two writes. */
  readonly faultPoint?: (name: CredentialGap | CodeGap | PushedGap | SchemaGap) => void;
  /** Gets a line where a newer build has changed the tables. */
  readonly logger?: { warn(line: string): void };
}

export interface Adapters {
  readonly databaseUrl: string;
  readonly pool: pg.Pool;
  /** Opens another pool whose statements have this deadline, milliseconds. The caller ends it. */
  openPool(answerMs: number): pg.Pool;
  readonly store: EventStore;
  /**
   * Fills the index by which `store.readWorkspace` finds a workspace's events, until the signal. One process of the
   * system at a time fills it, whichever calls this. Without it those reads scan all events.
   */
  keepWorkspaceIndex(options: KeeperOptions): Promise<void>;
  /** As `runInOneProcess`, over the Postgres of the installation. */
  inOneProcess(
    options: KeeperOptions & { readonly name: string },
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void>;
  readonly log: Log;
  /** Reports appends of any process; null where the event store cannot. */
  readonly changes: Pick<EventTail, 'version' | 'changed'> | null;
  readonly eraser: EventEraser;
  readonly dataKeys: PostgresDataKeys;
  readonly credentials: PostgresCredentials;
  readonly attempts: PostgresConnectAttempts;
  readonly connectCodes: PostgresConnectCodes;
  readonly pushedPosts: PostgresPushedPosts;
  readonly appLimits: PostgresAppLimits;
  readonly blobs: BlobStore;
  /** Null where none is configured. */
  readonly analytics: ClickHouseClient | null;
  /**
   * One line for each optional dependency (S3, ClickHouse) that does not answer now.
   * @param ask `analytics: false` for an embedded engine, which the query would start
   */
  silent(ask?: { readonly analytics: boolean }): Promise<readonly string[]>;
  /** The log that a relay writes to; null where the event table is the log. */
  openLogWriter(): Promise<LogWriter | null>;
  close(): Promise<void>;
}

/** @throws SetupError while a workspace is being imported */
const requireNoImport = async (pool: pg.Pool): Promise<void> => {
  const { rows } = await pool.query<{ readonly id: string }>(
    'select workspace_id::text as id from ops.workspace_moves where imported_at is null limit 1',
  );
  if (rows[0] === undefined) return;
  throw new SetupError(
    `DATABASE_URL: the import of workspace ${rows[0].id} has not ended. Run npm run audit -- import again, with the same export, and start then.`,
  );
};

const lacksUrl = 'DATABASE_URL is required: read models and operational tables live in Postgres';

/** @throws when the configured adapters do not go together, or one refuses to start */
export const openAdapters = async ({
  name,
  config,
  secrets,
  baseUrl,
  decidesKeys = true,
  faultPoint,
  logger,
}: AdaptersOptions): Promise<Adapters> => {
  const { databaseUrl: url, eventStoreUrl, kafkaBrokers, partitions } = config;
  if (url === null) throw new Error(lacksUrl);
  const hasKafka = kafkaBrokers.length > 0;
  if (eventStoreUrl !== null && !hasKafka) {
    throw new Error('ESDB_URL needs KAFKA_BROKERS: without Kafka the log is the Postgres event table');
  }
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    await requireAnswer({ dependency: 'Postgres', setting: 'DATABASE_URL', address: addressOf(url) }, () =>
      checkServer(url),
    );
    const pool = openPool({ url, max: config.poolSize, name });
    closers.push(() => pool.end());
    // Threads of one process would repeat the line.
    const warn = (line: string): void => (isMainThread ? logger?.warn(line) : undefined);
    await migrateSchema(pool, { warn, ...(faultPoint && { faultPoint }) });
    const dataKeys = new PostgresDataKeys({ pool, secrets });
    const dying = faultPoint && { faultPoint };
    const credentials = new PostgresCredentials({ pool, keys: dataKeys, ...dying });
    const attempts = new PostgresConnectAttempts({ pool, keys: dataKeys });
    const connectCodes = new PostgresConnectCodes({ pool, ...dying });
    const pushedPosts = new PostgresPushedPosts({ pool, ...dying });
    const appLimits = new PostgresAppLimits({ pool });
    // A wrong key that is found only at the first read would have accepted posts that no process can publish.
    await checkKeys(pool, secrets, dataKeys, decidesKeys);
    // Commands of an operator go on with it; a process would read half a workspace.
    if (decidesKeys) await requireNoImport(pool);
    const postgres = eventStoreUrl === null ? await shareStore(url, partitions, warn) : null;
    const { store, eraser, release, keepWorkspaceIndex } =
      postgres ?? (await openEventStoreDb(eventStoreUrl ?? '', url, pool));
    closers.push(release);
    if (eventStoreUrl !== null) await askEventStoreDb(eventStoreUrl, store);
    const { kafkaReplicationFactor: factor, kafkaMinInSyncReplicas: minInSync } = config;
    const kafka = {
      ...{ brokers: kafkaBrokers, prefix: config.kafkaPrefix, partitions, clientId: name },
      ...(factor === null ? {} : { replicationFactor: factor }),
      ...(minInSync === null ? {} : { minInSyncReplicas: minInSync }),
    };
    const log = hasKafka
      ? await openKafka(kafka)
      : await openPostgresLog({ url, partitions, ...(postgres === null ? {} : { store: postgres.store }) });
    closers.push(() => log.close());
    const blobs = await openBlobs(config, secrets, () => (baseUrl?.() ?? configuredUrl(config)).replace(/\/v1$/, ''));
    closers.push(() => blobs.close());
    const analytics =
      config.clickhouseUrl === null
        ? null
        : (await import('./clickhouse/client.ts')).openAnalytics({ url: config.clickhouseUrl });
    closers.push(async () => analytics?.close());
    const openLogWriter = async () => (hasKafka ? (await import('./kafka/writer.ts')).openKafkaLogWriter(kafka) : null);
    const silent: Adapters['silent'] = (ask = { analytics: true }) =>
      silentDependencies(config, blobs, ask.analytics ? analytics : null);
    const changes = postgres?.store.tail ?? null;
    return {
      ...{ databaseUrl: url, pool, store, keepWorkspaceIndex, log, changes, eraser, dataKeys, blobs, analytics },
      ...{ credentials, attempts, connectCodes, pushedPosts, appLimits, openLogWriter, silent, close },
      openPool: (answerMs) => openPool({ url, max: config.poolSize, name, answerMs }),
      inOneProcess: (options, work) => runInOneProcess({ ...options, url }, work),
    };
  } catch (error) {
    await close();
    throw error;
  }
};

/** The numbered files of an installation's Postgres: for every process, and of the event store where Postgres is that. */
export interface InstalledSchema {
  readonly pool: pg.Pool;
  /** Files that were not carried out yet, in their order. */
  pending(): Promise<readonly { readonly schema: string; readonly file: string }[]>;
  migrate(): Promise<void>;
  close(): Promise<void>;
}

/** Changes nothing by itself, unlike `openAdapters`. @throws when Postgres does not answer, or is too old */
export const openSchema = async (
  url: string | null,
  { eventStoreUrl, partitions }: Pick<AdaptersOptions['config'], 'eventStoreUrl' | 'partitions'>,
): Promise<InstalledSchema> => {
  if (url === null) throw new Error(lacksUrl);
  await requireAnswer({ dependency: 'Postgres', setting: 'DATABASE_URL', address: addressOf(url) }, () =>
    checkServer(url),
  );
  const pool = openPool({ url, max: 2, name: 'schema' });
  const schemas = [operationalSchema(), ...(eventStoreUrl === null ? [eventSchema('es')] : [])];
  return {
    pool,
    pending: async () => {
      const found = await Promise.all(
        schemas.map(async (one) =>
          (await pendingFiles(pool, one)).map(({ name }) => ({ schema: one.schema, file: name })),
        ),
      );
      return found.flat();
    },
    migrate: async () => {
      await migrateSchema(pool);
      if (eventStoreUrl === null) await migrateEvents(pool, 'es', partitions);
    },
    close: () => pool.end(),
  };
};

/** @throws SetupError; a log that exists and does not fit keeps its own message */
const openKafka = (options: KafkaOptions): Promise<Log> => {
  const named = { dependency: 'Kafka', setting: 'KAFKA_BROKERS', address: options.brokers.join(',') };
  return requireAnswer(named, async () => {
    try {
      return await (await import('./kafka/log.ts')).openKafkaLog(options);
    } catch (error) {
      if (!(error instanceof LogError) || error.code === 'unavailable') throw error;
      throw new SetupError(error.message, { cause: error });
    }
  });
};

/**
 * Logs which optional adapters do not answer at the start; the process starts all the same. Of a process with threads,
 * only the main thread logs.
 */
export const warnOfSilent = (adapters: Adapters, logger: { warn(line: string): void }): void => {
  if (!isMainThread) return;
  void adapters.silent().then((lines) => {
    for (const line of lines) logger.warn(line);
  });
};

/** A dependency that hangs for this long counts as unavailable. Milliseconds. */
const deadlineMs = 5_000;

const silentDependencies = async (
  { s3Endpoint, clickhouseUrl }: AdaptersOptions['config'],
  blobs: BlobStore,
  analytics: ClickHouseClient | null,
): Promise<readonly string[]> => {
  const checks: (readonly [Dependency, () => Promise<unknown>])[] = [];
  if (s3Endpoint !== null) {
    const named = { dependency: 'S3', setting: 'S3_ENDPOINT', address: addressOf(s3Endpoint) };
    checks.push([named, () => blobs.ping()]);
  }
  if (clickhouseUrl !== null && analytics !== null) {
    const named = { dependency: 'ClickHouse', setting: 'CLICKHOUSE_URL', address: addressOf(clickhouseUrl) };
    const abort_signal = AbortSignal.timeout(deadlineMs);
    checks.push([named, () => analytics.command({ query: 'select 1', abort_signal })]);
  }
  const lines = await Promise.all(
    checks.map(([named, ask]) =>
      within(deadlineMs, ask()).then(
        () => null,
        (error: unknown) => messageFor(named, error),
      ),
    ),
  );
  return lines.filter((line) => line !== null);
};

/** Where the api is, as far as another process knows. */
const configuredUrl = ({ baseUrl, host, port }: AdaptersOptions['config']): string => {
  if (baseUrl !== null) return baseUrl;
  if (port === 0)
    throw new Error(
      'URLs of media files need BASE_URL or PORT: with PORT=0 no other process knows the port of the api',
    );
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/v1`;
};

// The clients of Kafka and EventStoreDB are imported on use: otherwise every thread of standalone would hold them in
// memory.
const openEventStoreDb = async (esdbUrl: string, url: string, pool: pg.Pool): Promise<OpenStore> => {
  const [{ EventStoreDbStore }, { fillIndex }, { WorkspacePositions }] = await Promise.all([
    import('./eventstoredb/event-store.ts'),
    import('./eventstoredb/workspace-index.ts'),
    import('./postgres/workspace-positions.ts'),
  ]);
  const index = new WorkspacePositions(pool);
  const store = new EventStoreDbStore({ url: esdbUrl, index });
  return {
    ...{ store, eraser: store },
    release: () => store.close(),
    keepWorkspaceIndex: (options) =>
      runInOneProcess({ ...options, url, name: 'workspace index' }, (signal) =>
        fillIndex(store, index, { ...options, signal }),
      ),
  };
};

/** A cluster that elects its leader takes some seconds to answer. Milliseconds. */
const eventStoreMs = 15_000;

/** @throws SetupError when it does not answer */
const askEventStoreDb = (url: string, store: EventStore): Promise<unknown> => {
  const named = { dependency: 'EventStoreDB', setting: 'ESDB_URL', address: addressOf(url) };
  return requireAnswer(named, () => within(eventStoreMs, store.head()));
};

/** An event store, its release, and the process that fills its index of workspaces. */
type OpenStore = Pick<Adapters, 'store' | 'eraser' | 'keepWorkspaceIndex'> & { release(): Promise<void> };

interface SharedStore {
  readonly opening: Promise<PostgresEventStore>;
  users: number;
}

const sharedStores = new Map<string, SharedStore>();

/**
 * The Postgres event store of this thread: processes that share one (standalone) read the table once for all of them.
 * The last release closes it.
 */
const shareStore = async (url: string, partitions: number, warn: (line: string) => void) => {
  const name = `${partitions} ${url}`;
  const shared = sharedStores.get(name) ?? { opening: PostgresEventStore.open({ url, partitions, warn }), users: 0 };
  sharedStores.set(name, shared);
  shared.users += 1;
  const leave = (): boolean => {
    shared.users -= 1;
    if (shared.users === 0) sharedStores.delete(name);
    return shared.users === 0;
  };
  try {
    const store = await shared.opening;
    return {
      ...{ store, eraser: store },
      release: async () => (leave() ? store.close() : undefined),
      keepWorkspaceIndex: (options: KeeperOptions) => store.keepWorkspaceIndex(options),
    };
  } catch (error) {
    leave();
    throw error;
  }
};

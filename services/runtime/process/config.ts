/**
 * The one reader of the environment. `variables` is the whole list, with defaults and meaning; `--help` prints it and a
 * wrong value is an error that names the variable.
 */

import { standardMediaQuota } from '#domain/media-types.ts';
import { noProxies } from '#runtime/identity/proxies.ts';
import {
  brokers,
  durations,
  eventStoreUrl,
  integer,
  list,
  oneOf,
  optional,
  proxies,
  type Reader,
  secretKeys,
  targets,
  text,
  topicPrefix,
  url,
} from './config-values.ts';

interface Variable<T> {
  readonly name: string;
  /** Former name, read where `name` is not set. */
  readonly former?: string;
  readonly read: Reader<T>;
  readonly fallback: T;
  readonly help: string;
}

export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}

const variable = <T>(name: string, read: Reader<T>, fallback: T, help: string, former?: string): Variable<T> => ({
  name,
  ...(former === undefined ? {} : { former }),
  read,
  fallback,
  help: former === undefined ? help : `${help}; its former name ${former} still works`,
});

const variables = {
  databaseUrl: variable(
    'DATABASE_URL',
    optional(url('postgres:', 'postgresql:')),
    null as string | null,
    'Postgres for read models and operational tables. Standalone: none = an embedded server under the data folder',
  ),
  eventStoreUrl: variable(
    // Not EVENTSTORE_…: the server reads every variable of that prefix and refuses to start at one that it does not know (24.10).
    'ESDB_URL',
    optional(eventStoreUrl),
    null as string | null,
    'EventStoreDB; none = the Postgres event store',
    'EVENTSTORE_URL',
  ),
  kafkaBrokers: variable(
    'KAFKA_BROKERS',
    brokers,
    [] as readonly string[],
    'host:port list; none = the embedded log over the Postgres event table',
  ),
  kafkaPrefix: variable('KAFKA_TOPIC_PREFIX', topicPrefix, '', 'put before every topic name'),
  kafkaReplicationFactor: variable(
    'KAFKA_REPLICATION_FACTOR',
    optional(integer(1, 10)),
    null as number | null,
    'brokers that hold each record of a topic made here; none = what the cluster has, up to 3',
  ),
  kafkaMinInSyncReplicas: variable(
    'KAFKA_MIN_INSYNC_REPLICAS',
    optional(integer(1, 10)),
    null as number | null,
    'brokers that must have a record before it counts as written; none = one less than KAFKA_REPLICATION_FACTOR, at least 1',
  ),
  partitions: variable(
    'LOG_PARTITIONS',
    integer(1, 1024),
    12,
    'partitions of each topic, stored at creation; a mismatch refuses to start',
  ),
  clickhouseUrl: variable(
    'CLICKHOUSE_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'ClickHouse over HTTP for analytics, http://user:password@host:8123/database; the database is there already. None = no analytics; standalone: an embedded engine under the data folder',
  ),
  analyticsLost: variable(
    'ANALYTICS_LOST',
    oneOf('wait', 'rebuild'),
    'wait' as 'wait' | 'rebuild',
    'what the projections do at their start where ClickHouse has lost its observations: wait for npm run admin -- rebuild analytics, or rebuild at once. Standalone rebuilds what its embedded engine lost',
  ),
  secretKey: variable(
    'SECRET_KEY',
    optional(secretKeys),
    null as string | null,
    'v2:<base64 of 32 bytes>,v1:…; the first is current. Standalone makes one under the data folder',
  ),
  host: variable('HOST', text, '127.0.0.1', 'address the api listens on'),
  port: variable('PORT', integer(0, 65_535), 8080, 'port the api listens on; 0 = any free one'),
  opsPort: variable(
    'OPS_PORT',
    integer(0, 65_535),
    0,
    'port of /livez, /readyz and /metrics of every process, for operators alone; 0 = any free one, on 127.0.0.1 unless OPS_HOST is set. Standalone: PORT + 1',
  ),
  opsHost: variable(
    'OPS_HOST',
    optional(text),
    null as string | null,
    'address that OPS_PORT listens on; none = HOST, or 127.0.0.1 where OPS_PORT is 0. Standalone: 127.0.0.1',
  ),
  baseUrl: variable(
    'BASE_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'REST root as callers see it, with /v1; none = made from HOST and PORT',
  ),
  consoleUrl: variable(
    'CONSOLE_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'host of the invite page; none = the api itself',
  ),
  dataDir: variable('DATA_DIR', text, './data', 'folder of the embedded parts'),
  logLevel: variable(
    'LOG_LEVEL',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info' as const,
    'pino level',
  ),
  logFile: variable(
    'LOG_FILE',
    optional(text),
    null as string | null,
    'file the log is appended to; none = standard output',
  ),
  logFileBytes: variable(
    'LOG_FILE_BYTES',
    integer(64 * 1024, 1024 ** 4),
    64 * 1024 ** 2,
    'at so many bytes the log file is put aside and a new one begun; standalone: also the log of the embedded Postgres',
  ),
  logFiles: variable('LOG_FILES', integer(1, 1_000), 5, 'log files put aside that are kept'),
  poolSize: variable('DATABASE_POOL', integer(2, 200), 10, 'Postgres connections per process or thread'),
  trustedProxies: variable(
    'TRUSTED_PROXIES',
    proxies,
    noProxies,
    'proxies in front of the api, so that each caller has an allowance of its own: how many hops of X-Forwarded-For are yours, counted from the right, if no caller can go round them; or their addresses, like 10.0.0.0/8,fd00::/8',
  ),
  maxConnections: variable('MAX_CONNECTIONS', integer(1, 1_000_000), 10_000, 'connections the api holds at once'),
  maxConnectionsPerAddress: variable(
    'MAX_CONNECTIONS_PER_ADDRESS',
    integer(1, 1_000_000),
    1_000,
    'of them from one address; a trusted proxy is no caller and may hold all',
  ),
  ratePerMinute: variable(
    'RATE_LIMIT_PER_MINUTE',
    integer(1, 1_000_000),
    600,
    'requests a minute per credential and process',
  ),
  rateBurst: variable('RATE_LIMIT_BURST', integer(1, 1_000_000), 100, 'requests a credential may make at once'),
  privateTargets: variable(
    'PRIVATE_TARGETS',
    targets,
    [] as readonly string[],
    'host:port list that urls of callers may reach though private or plain http; * = any (development); none = public https only',
  ),
  projections: variable(
    'PROJECTIONS',
    list,
    [] as readonly string[],
    'names of the projections this process runs; none = all',
  ),
  leaseTtlMs: variable('LEASE_TTL_MS', integer(300, 600_000), 15_000, 'a lease that is not renewed lapses after this'),
  boundaryDeadlineMs: variable(
    'BOUNDARY_DEADLINE_MS',
    optional(integer(100, 600_000)),
    null as number | null,
    'time the boundary call may take; none = the adapter’s own (30 s, sandbox 3 s)',
  ),
  settleWindowMs: variable(
    'SETTLE_WINDOW_MS',
    optional(integer(0, 7 * 86_400_000)),
    null as number | null,
    'how long after the deadline “absent” stays unknown; none = the adapter’s own (≥ 10 min, sandbox 10 s)',
  ),
  reconcileDelaysMs: variable(
    'RECONCILE_DELAYS_MS',
    durations,
    [0, 5_000, 30_000, 120_000, 600_000] as readonly number[],
    'waits between reconciles of an unknown outcome; then hourly for 72 h',
  ),
  deferDelaysMs: variable(
    'DEFER_DELAYS_MS',
    durations,
    [30_000, 120_000, 600_000] as readonly number[],
    'waits after transient failures before the call; then the target fails',
  ),
  maxRateLimits: variable('MAX_RATE_LIMITS', integer(0, 1_000), 10, 'automatic retries after a rate limit'),
  sweepIntervalMs: variable(
    'SWEEP_INTERVAL_MS',
    integer(100, 3_600_000),
    30_000,
    'how often the sweeper looks for plans that were not carried out',
  ),
  publishConcurrency: variable(
    'PUBLISH_CONCURRENCY',
    integer(1, 10_000),
    4_096,
    'targets one publisher works on at once; more that are due wait for one to end',
  ),
  insightsConcurrency: variable(
    'INSIGHTS_CONCURRENCY',
    integer(1, 256),
    8,
    'accounts that one process asks their networks for at once, for the figures of their posts and their own',
    'METRICS_CONCURRENCY',
  ),
  insightsYoungDelaysMs: variable(
    'INSIGHTS_YOUNG_DELAYS_MS',
    durations,
    [3_600_000, 21_600_000, 86_400_000] as readonly number[],
    'when a post is looked at after its publication, rising; after the first also after each midnight of its workspace for 90 days. A story has looks of its own',
    'METRICS_YOUNG_DELAYS_MS',
  ),
  reportWaitMs: variable(
    'REPORT_WAIT_MS',
    integer(0, 7 * 86_400_000),
    6 * 3_600_000,
    'how long after it was asked for a report waits until the figures of its days are final; then it is made, and names the days that are not',
  ),
  webhookRetryDelaysMs: variable(
    'WEBHOOK_RETRY_DELAYS_MS',
    durations,
    [
      0, 5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
    ] as readonly number[],
    'waits before each attempt of a webhook delivery, counted from the attempt before; then the delivery has failed',
  ),
  webhooksPerWorkspace: variable(
    'WEBHOOKS_PER_WORKSPACE',
    integer(1, 10_000),
    50,
    'webhook endpoints a workspace may have; those it has beyond that go on working',
  ),
  webhookPerEndpoint: variable(
    'WEBHOOK_PER_ENDPOINT',
    integer(1, 10_000),
    64,
    'webhook requests under way to one endpoint; of this and the other three of its kind at most half for retries and replays',
  ),
  webhookPerHost: variable(
    'WEBHOOK_PER_HOST',
    integer(1, 10_000),
    128,
    'webhook requests under way of one tenant to one host (name and port), whatever number of endpoints it has there',
  ),
  webhookHostFailures: variable(
    'WEBHOOK_HOST_FAILURES',
    integer(1, 10_000),
    50,
    'webhook requests a second of one tenant to one host from endpoints that do not take what they are sent; first as many as WEBHOOK_PER_HOST',
  ),
  webhookPerTenant: variable('WEBHOOK_PER_TENANT', integer(1, 10_000), 256, 'webhook requests under way of one tenant'),
  webhookConcurrency: variable('WEBHOOK_CONCURRENCY', integer(1, 10_000), 1_024, 'webhook requests under way at all'),
  webhookExchangeMs: variable(
    'WEBHOOK_EXCHANGE_MS',
    integer(50, 60_000),
    15_000,
    'time a webhook request may take, from the lookup of the name to the end of the answer',
  ),
  webhookLeaseMs: variable(
    'WEBHOOK_LEASE_MS',
    integer(100, 600_000),
    32_000,
    'after this somebody else may send a delivery that a sender has begun with; more than twice WEBHOOK_EXCHANGE_MS',
  ),
  webhookBreakerFailures: variable(
    'WEBHOOK_BREAKER_FAILURES',
    integer(1, 10_000),
    10,
    'failures in a row after which nothing is sent to an endpoint for a while',
  ),
  webhookBreakerMs: variable(
    'WEBHOOK_BREAKER_MS',
    integer(10, 3_600_000),
    30_000,
    'how long that while is at first; it doubles up to twenty times this',
  ),
  webhookDisableAfterMs: variable(
    'WEBHOOK_DISABLE_AFTER_MS',
    integer(100, 31 * 86_400_000),
    5 * 86_400_000,
    'an endpoint without a success for so long is turned off',
  ),
  blobDir: variable(
    'BLOB_DIR',
    optional(text),
    null as string | null,
    'folder of the media files where S3_ENDPOINT is not set; none = blobs under DATA_DIR. All processes must see it',
  ),
  s3Endpoint: variable(
    'S3_ENDPOINT',
    optional(url('http:', 'https:')),
    null as string | null,
    'S3 for media files, as this process reaches it; none = a folder',
  ),
  s3PublicEndpoint: variable(
    'S3_PUBLIC_ENDPOINT',
    optional(url('http:', 'https:')),
    null as string | null,
    'S3 as callers and networks reach it, put into presigned URLs; none = S3_ENDPOINT',
  ),
  s3Bucket: variable('S3_BUCKET', text, 'postline', 'bucket of the media files'),
  s3Region: variable('S3_REGION', text, 'us-east-1', 'region that S3 requests are signed for'),
  s3AccessKeyId: variable('S3_ACCESS_KEY_ID', optional(text), null as string | null, 'S3 access key'),
  s3SecretAccessKey: variable('S3_SECRET_ACCESS_KEY', optional(text), null as string | null, 'its secret'),
  ffmpegPath: variable(
    'FFMPEG_PATH',
    optional(text),
    null as string | null,
    'ffmpeg; ffprobe is looked for beside it. None = the one on PATH, else the npm package’s',
  ),
  outdatedFfmpeg: variable(
    'OUTDATED_FFMPEG',
    oneOf('refuse', 'take'),
    'refuse',
    'videos where the ffmpeg found is older than 5.1, whose decoders have published holes. Standalone on loopback: take',
  ),
  mediaConcurrency: variable(
    'MEDIA_CONCURRENCY',
    integer(1, 64),
    4,
    'media files one process works on at once; the cores of the machine are shared out among all of them',
  ),
  mediaDownloads: variable(
    'MEDIA_DOWNLOADS',
    integer(1, 1_024),
    32,
    'imports one process brings from their addresses at once, beside MEDIA_CONCURRENCY',
  ),
  mediaDownloadsPerWorkspace: variable(
    'MEDIA_DOWNLOADS_PER_WORKSPACE',
    integer(1, 1_024),
    4,
    'of them for one workspace, its sandbox twin included',
  ),
  mediaQuota: variable(
    'MEDIA_QUOTA_BYTES',
    integer(1, 1_024 ** 5),
    standardMediaQuota,
    'bytes of media that a workspace may have, its sandbox twin and what is made of its files included; npm run admin -- media quota sets another for one workspace',
  ),
  mediaTempDir: variable(
    'MEDIA_TEMP_DIR',
    optional(text),
    null as string | null,
    'folder of files being worked on, needs room for some videos; none = media-work under DATA_DIR',
  ),
} as const;

type Variables = typeof variables;
export type Config = { readonly [K in keyof Variables]: Variables[K] extends Variable<infer T> ? T : never };

/** Values that may hold a password or a key: an error does not show them. */
const hidden = [
  'SECRET_KEY',
  'DATABASE_URL',
  'ESDB_URL',
  'EVENTSTORE_URL',
  'CLICKHOUSE_URL',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
];

/** @throws ConfigError that names the variable. */
export const readConfig = (env: Readonly<Record<string, string | undefined>>): Config => {
  const read = Object.entries(variables).map(
    ([key, { name: now, former, read: reader, fallback }]): [string, unknown] => {
      const name = former !== undefined && env[now] === undefined && env[former] !== undefined ? former : now;
      const value = env[name];
      if (value === undefined) return [key, fallback];
      try {
        return [key, reader(value)];
      } catch (error) {
        const why = error instanceof Error ? error.message : 'is not valid';
        const words = why.startsWith(`${name} `) ? why : `${name} ${why}`;
        throw new ConfigError(hidden.includes(name) ? words : `${words} (it is ${JSON.stringify(value)})`);
      }
    },
  );
  return Object.fromEntries(read) as Config;
};

/** What a process cannot do without. @throws ConfigError that names every variable missing, and what it is for. */
export const requireSet = (config: Config, keys: readonly (keyof Config)[]): void => {
  const missing = keys.filter(
    (key) => config[key] === null || (Array.isArray(config[key]) && config[key].length === 0),
  );
  if (missing.length === 0) return;
  throw new ConfigError(missing.map((key) => `${variables[key].name} is required: ${variables[key].help}`).join('\n'));
};

/** What `--help` of a process prints under its own words. */
export const configHelp = (): string =>
  Object.values(variables)
    .map(({ name, fallback, help }) => {
      const shown = fallback === null || fallback === noProxies || String(fallback) === '' ? 'none' : String(fallback);
      return `  ${name.padEnd(24)} ${help} [${shown}]`;
    })
    .join('\n');

/** Where a test has a process die or stop; see fault-point.ts. Never set in production. */
export const readFaults = (env: Readonly<Record<string, string | undefined>>) => ({
  at: env.POSTLINE_FAULT ?? null,
  onceFile: env.POSTLINE_FAULT_ONCE ?? null,
  signal: env.POSTLINE_FAULT_SIGNAL === 'SIGSTOP' ? ('SIGSTOP' as const) : ('SIGKILL' as const),
});

/** The environment of this process, read here and nowhere else. */
export const processEnv = (): Readonly<Record<string, string | undefined>> => process.env;

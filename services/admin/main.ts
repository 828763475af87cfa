import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { type InstalledSchema, openAdapters, openSchema } from '#infra/adapters.ts';
import { joinAnalytics } from '#infra/clickhouse/join.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { SandboxNetwork, sandboxCall } from '#infra/platforms/sandbox/index.ts';
import { formerClusters, removeFormerCluster } from '#infra/postgres/former-clusters.ts';
import { joinEmbedded } from '#infra/postgres/join.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { secretKeyFile, secretKeyOf } from '#runtime/identity/secret-key.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { type Config, ConfigError, type ConfigOf, processEnv, readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { CommandOutput } from './context.ts';
import type { DataFiles, Tables } from './installation.ts';
import { onTerminal, printed } from './print.ts';
import { type Asked, type adminReads, help, readCommand } from './usage.ts';

/** Longer than other mains: it works on a running installation, a stopped one or a database. */

const files: DataFiles = {
  former: () => formerClusters().map((one) => ({ ...one })),
  remove: (name) => {
    const removed = removeFormerCluster(name);
    return removed === null ? null : { ...removed };
  },
};

const tablesOf = ({ pool, pending, migrate }: InstalledSchema): Tables => ({
  pending,
  migrate: async () => {
    await migrate();
    await migrateReadModels(pool);
  },
});

const carryOut = async (
  { command, given, dataDir }: Asked,
  closers: (() => Promise<unknown>)[],
): Promise<CommandOutput> => {
  if ('onDisk' in command) return command.onDisk(files, given);
  const env = processEnv();
  const folder = path.resolve(dataDir ?? env.DATA_DIR ?? './data');
  const config: ConfigOf<(typeof adminReads)[number]> = readConfig({ LOG_LEVEL: 'silent', DATABASE_POOL: '4', ...env });
  const embedded = config.databaseUrl === null ? await joinEmbedded(folder) : null;
  if (embedded !== null) closers.push(embedded.stop);
  const databaseUrl = config.databaseUrl ?? embedded?.url ?? null;
  if ('onTables' in command) {
    const schema = await openSchema(databaseUrl, config);
    closers.push(schema.close);
    return command.onTables(tablesOf(schema), given);
  }
  if (embedded === null && config.secretKey === null && !existsSync(secretKeyFile(folder))) {
    throw new ConfigError('SECRET_KEY is required: the one of the processes that share this DATABASE_URL');
  }
  const secrets =
    config.secretKey === null ? new Secrets(secretKeyOf(folder), secretKeyFile(folder)) : new Secrets(config.secretKey);
  // Standalone keeps its engine in the data folder beside an external Postgres, too; without such a folder there is none.
  const engine = path.join(folder, 'analytics');
  const joined =
    config.clickhouseUrl === null && (embedded !== null || existsSync(engine)) ? await joinAnalytics(engine) : null;
  if (joined !== null) closers.push(joined.stop);
  const clickhouseUrl = config.clickhouseUrl ?? joined?.url ?? null;
  const adapters = await openAdapters({
    ...{ name: 'admin', secrets, decidesKeys: false },
    config: { ...config, databaseUrl, clickhouseUrl },
  });
  closers.push(adapters.close);
  const missing = await migrateReadModels(adapters.pool);
  if (missing.length > 0)
    process.stderr.write(
      `No process of this release has made its tables of ${missing.map(({ name }) => name).join(', ')} yet.\n`,
    );
  const codec = new EventCodec(adapters.dataKeys);
  const store = new DomainStore(adapters.store, codec, config.partitions, {
    aheadOf: new SandboxClocks(adapters.pool).known,
  });
  const stopping = new AbortController();
  process.once('SIGINT', () => stopping.abort(new Error('stopped by Ctrl-C')));
  const { pool, log, dataKeys, credentials, attempts, analytics, blobs } = adapters;
  const http = new GuardedNetworkHttp(guardOf(config));
  const live = liveNetworks({ stores: adapters, http, clock: Date.now, config });
  const actor = { type: 'admin', id: userInfo().username } as const;
  return command.run(
    {
      operator: { store, pool, actor, clock: Date.now, positions: new Map() },
      ...{ store, pool, log, codec, secrets, dataKeys, credentials, attempts, analytics, blobs },
      eventStore: adapters.store,
      eraser: adapters.eraser,
      adapterOf: (platform) => live.adapters[platform] ?? null,
      sandbox: new SandboxNetwork({ database: { pool } }),
      sandboxCall: (platform, said) => sandboxCall(platform, secrets.subKey('sandbox-calls').toString('hex'), said),
      publishing: new PublishingHold(pool, config.publishing),
      confirm: onTerminal(stopping.signal),
      consoleUrl: config.consoleUrl ?? consoleBeside(config),
      mediaQuota: config.mediaQuota,
      logger: createLogger('admin', config.logLevel, config.logFile),
      signal: stopping.signal,
      line: async (text) => {
        if (!process.stdout.write(`${text}\n`)) await once(process.stdout, 'drain');
      },
      note: (text) => void process.stderr.write(`${text}\n`),
    },
    given,
  );
};

/** As every machine knows standalone, where nobody named it. */
const consoleBeside = ({ baseUrl, port }: Pick<Config, 'baseUrl' | 'port'>): string =>
  baseUrl === null ? `http://localhost:${port}` : new URL(baseUrl).origin;

const wordsFor = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const isUnavailable = error instanceof SetupError && error.message.startsWith('DATABASE_URL: ');
  return isUnavailable ? `${error.message}\nOr leave DATABASE_URL out to work on the data folder.` : error.message;
};

const closers: (() => Promise<unknown>)[] = [];
try {
  const asked = readCommand(process.argv.slice(2));
  if (asked === null) process.stdout.write(help(process.argv.slice(2)));
  else process.stdout.write(`${printed(await carryOut(asked, closers), asked.json)}\n`);
} catch (error) {
  const misunderstood = error instanceof UsageError || error instanceof ConfigError;
  process.stderr.write(`${wordsFor(error)}\n`);
  if (misunderstood) process.stderr.write('See npm run admin -- --help.\n');
  process.exitCode = misunderstood || error instanceof SetupError ? 2 : 1;
} finally {
  for (const close of closers.reverse()) await close();
}

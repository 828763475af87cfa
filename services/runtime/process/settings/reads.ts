import type { SettingKey } from '../config.ts';
import { appSettingKeys } from './apps.ts';

/** What several processes read. A process names its settings, and gets no others: so `--help` shows what has effect. */

const keys = <K extends SettingKey>(...all: readonly K[]): readonly K[] => all;

/** Its log, and the port for operators. */
export const everyProcess = keys('host', 'opsPort', 'opsHost', 'logLevel', 'logFile', 'logFileBytes', 'logFiles');

/** The stores that `openAdapters` opens, and the addresses that it signs. */
export const stores = keys(
  ...keys('databaseUrl', 'poolSize', 'secretKey', 'eventStoreUrl', 'clickhouseUrl', 'partitions'),
  ...keys('kafkaBrokers', 'kafkaPrefix', 'kafkaReplicationFactor', 'kafkaMinInSyncReplicas'),
  ...keys('dataDir', 'blobDir', 's3Endpoint', 's3PublicEndpoint', 's3Bucket', 's3Region'),
  ...keys('s3AccessKeyId', 's3SecretAccessKey', 'baseUrl', 'host', 'port'),
);

/** The guard of calls to the networks and to addresses that callers name. */
export const callsOut = keys('privateTargets', 'baseUrl', 'consoleUrl', 'authUrl', 'mcpUrl', 'host', 'port');

/** The adapters of real networks. */
export const networks = keys(
  ...keys('blueskyResolver', 'blueskyDirectory', 'blueskyAppView', 'blueskyOauthKeys'),
  ...keys('telegramBotToken', 'telegramApi'),
  ...appSettingKeys,
);

/**
 * The one reader of the environment. The files of settings/ list its variables by concern, with defaults and meaning;
 * `--help` prints those that the process reads, infra/OPERATING.md explains all, and a wrong value is an error that
 * names the variable.
 */

import type { AppSettings } from '#domain/platforms/rules.ts';
import { noProxies } from '#runtime/identity/proxies.ts';
import type { SettingReader, Variable } from './config-values.ts';
import { type AppSettingKey, appSettings } from './settings/apps.ts';
import { mediaSettings } from './settings/media.ts';
import { networkSettings } from './settings/networks.ts';
import { callersSettings, peopleSettings, processSettings } from './settings/process.ts';
import { insightsSettings, publishingSettings, webhooksSettings } from './settings/publishing.ts';
import { storesSettings } from './settings/stores.ts';
import { readTimes, type Times, usualTimes } from './settings/times.ts';

export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}

const variables = {
  ...storesSettings,
  ...processSettings,
  ...callersSettings,
  ...peopleSettings,
  ...publishingSettings,
  ...networkSettings,
  ...insightsSettings,
  ...webhooksSettings,
  ...mediaSettings,
} as const;

type Variables = typeof variables;
export type SettingKey = keyof Variables | AppSettingKey;
export type Config = Times &
  AppSettings & { readonly [K in keyof Variables]: Variables[K] extends Variable<infer T> ? T : never };
/** The settings that a process has named, and the times of every process. */
export type ConfigOf<K extends SettingKey> = Pick<Config, K | keyof Times>;

const all: Readonly<Record<string, Variable<unknown>>> = { ...variables, ...appSettings };
const variableOf = (key: SettingKey): Variable<unknown> => {
  const found = all[key];
  if (found === undefined) throw new Error(`there is no setting ${key}`);
  return found;
};
const isKey = (key: string): key is SettingKey => Object.hasOwn(all, key);
export const settingKeys: readonly SettingKey[] = Object.keys(all).filter(isKey);

/** The settings below the headings of `--help` and of infra/OPERATING.md. */
export const settingGroups = Object.entries({
  'Stores, and the key that seals them': storesSettings,
  'Addresses, log and folders': processSettings,
  'Callers of the api': callersSettings,
  'Mails to people': peopleSettings,
  'Publishing and leases': publishingSettings,
  'Real networks': { ...networkSettings, ...appSettings },
  'Figures and reports': insightsSettings,
  Webhooks: webhooksSettings,
  Media: mediaSettings,
}).map(([title, settings]) => ({ title, keys: Object.keys(settings).filter(isKey) }));

/** Values that may hold a password or a key: an error does not show them. */
const hidden = [
  'SECRET_KEY',
  'DATABASE_URL',
  'ESDB_URL',
  'CLICKHOUSE_URL',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'SMTP_URL',
  ...Object.values(appSettings).flatMap(({ name }) => (name.endsWith('_CLIENT_SECRET') ? [name] : [])),
  'TELEGRAM_BOT_TOKEN',
  'BLUESKY_OAUTH_KEYS',
  'TOUR_BLUESKY',
];

const readOne = <T>(name: string, value: string, reader: SettingReader<T>): T => {
  try {
    return reader(value);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'is not valid';
    const words = why.startsWith(`${name} `) ? why : `${name} ${why}`;
    throw new ConfigError(hidden.includes(name) ? words : `${words} (it is ${JSON.stringify(value)})`);
  }
};

/** @throws ConfigError that names the variable. */
export const readConfig = (env: Readonly<Record<string, string | undefined>>): Config => {
  const read = Object.entries(all).map(([key, { name, read: reader, fallback }]): [string, unknown] => {
    const value = env[name];
    return [key, value === undefined ? fallback : readOne(name, value, reader)];
  });
  return { ...readTestTimes(env), ...Object.fromEntries(read) } as Config;
};

/** Checks the settings that a process needs. @throws ConfigError that names every missing variable and its purpose. */
export const requireSet = (config: Config, keys: readonly SettingKey[]): void => {
  const missing = keys.filter(
    (key) => config[key] === null || (Array.isArray(config[key]) && config[key].length === 0),
  );
  if (missing.length === 0) return;
  throw new ConfigError(
    missing.map((key) => `${variableOf(key).name} is required: ${variableOf(key).help}`).join('\n'),
  );
};

const lineOf = ({ name, fallback, help }: Variable<unknown>): string => {
  const shown = fallback === null || fallback === noProxies || String(fallback) === '' ? 'none' : String(fallback);
  return `  ${name.padEnd(24)} ${help} [${shown}]`;
};

/**
 * The settings that `--help` prints below the process's own text, in groups.
 * @param reads those that the process reads. Default: all
 */
export const configHelp = (reads: readonly SettingKey[] = settingKeys): string =>
  settingGroups
    .map(({ title, keys }) => ({ title, shown: keys.filter((key) => reads.includes(key)) }))
    .filter(({ shown }) => shown.length > 0)
    .map(({ title, shown }) => [`${title}:`, ...shown.map((key) => lineOf(variableOf(key)))].join('\n'))
    .join('\n\n');

/** The times that a test sets; see settings/times.ts. Never set in production. */
const readTestTimes = (env: Readonly<Record<string, string | undefined>>): Times =>
  env.POSTLINE_TIMES === undefined ? usualTimes : readOne('POSTLINE_TIMES', env.POSTLINE_TIMES, readTimes);

/** The fault points at which a test ends or stops the process; see fault-point.ts. Never set in production. */
export const readFaults = (env: Readonly<Record<string, string | undefined>>) => ({
  at: env.POSTLINE_FAULT?.split(',') ?? [],
  onceDir: env.POSTLINE_FAULT_ONCE ?? null,
  signal: env.POSTLINE_FAULT_SIGNAL === 'SIGSTOP' ? ('SIGSTOP' as const) : ('SIGKILL' as const),
});

/** The commit that the image was built from; `unknown` where nobody said it. */
export const readCommit = (env: Readonly<Record<string, string | undefined>>): string =>
  env.POSTLINE_COMMIT || 'unknown';

/** The environment of this process, read here and nowhere else. */
export const processEnv = (): Readonly<Record<string, string | undefined>> => process.env;

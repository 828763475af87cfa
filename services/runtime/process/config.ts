/**
 * The one reader of the environment. The files of settings/ list its variables by concern, with defaults and meaning;
 * `--help` prints them, and a wrong value is an error that names the variable.
 */

import { noProxies } from '#runtime/identity/proxies.ts';
import { callersSettings } from './settings/callers.ts';
import { insightsSettings } from './settings/insights.ts';
import { mediaSettings } from './settings/media.ts';
import { networkSettings } from './settings/networks.ts';
import { peopleSettings } from './settings/people.ts';
import { processSettings } from './settings/process.ts';
import { publishingSettings } from './settings/publishing.ts';
import { storesSettings } from './settings/stores.ts';
import type { Variable } from './settings/variable.ts';
import { webhooksSettings } from './settings/webhooks.ts';

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
export type Config = { readonly [K in keyof Variables]: Variables[K] extends Variable<infer T> ? T : never };

/** Values that may hold a password or a key: an error does not show them. */
const hidden = [
  'SECRET_KEY',
  'DATABASE_URL',
  'ESDB_URL',
  'CLICKHOUSE_URL',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'SMTP_URL',
  'X_CLIENT_SECRET',
  'TELEGRAM_BOT_TOKEN',
  'BLUESKY_OAUTH_KEYS',
  'TOUR_BLUESKY',
];

/** @throws ConfigError that names the variable. */
export const readConfig = (env: Readonly<Record<string, string | undefined>>): Config => {
  const read = Object.entries(variables).map(([key, { name, read: reader, fallback }]): [string, unknown] => {
    const value = env[name];
    if (value === undefined) return [key, fallback];
    try {
      return [key, reader(value)];
    } catch (error) {
      const why = error instanceof Error ? error.message : 'is not valid';
      const words = why.startsWith(`${name} `) ? why : `${name} ${why}`;
      throw new ConfigError(hidden.includes(name) ? words : `${words} (it is ${JSON.stringify(value)})`);
    }
  });
  return Object.fromEntries(read) as Config;
};

/** Checks the settings that a process needs. @throws ConfigError that names every missing variable and its purpose. */
export const requireSet = (config: Config, keys: readonly (keyof Config)[]): void => {
  const missing = keys.filter(
    (key) => config[key] === null || (Array.isArray(config[key]) && config[key].length === 0),
  );
  if (missing.length === 0) return;
  throw new ConfigError(missing.map((key) => `${variables[key].name} is required: ${variables[key].help}`).join('\n'));
};

/** The list of settings that `--help` prints below the process's own text. */
export const configHelp = (): string =>
  Object.values(variables)
    .map(({ name, fallback, help }) => {
      const shown = fallback === null || fallback === noProxies || String(fallback) === '' ? 'none' : String(fallback);
      return `  ${name.padEnd(24)} ${help} [${shown}]`;
    })
    .join('\n');

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

import { noProxies } from '#runtime/identity/proxies.ts';
import { integer, mailAddress, oneOf, optional, proxies, targets, text, url, variable } from '../config-values.ts';

/** Where a process listens, writes its log and keeps its own files. */
export const processSettings = {
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
    'host of the console and of the pages behind links; none = the host of BASE_URL',
  ),
  authUrl: variable(
    'AUTH_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'host of the OAuth endpoints, the issuer of tokens; none = the host of BASE_URL',
  ),
  mcpUrl: variable(
    'MCP_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'address of the MCP server, with its path; none = /mcp on the host of BASE_URL',
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
} as const;

/** Allowances of the api's callers, and the addresses that their urls may reach. */
export const callersSettings = {
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
  rateWorkspaceKeys: variable(
    'RATE_LIMIT_WORKSPACE_KEYS',
    integer(1, 10_000),
    5,
    "credentials' worth of requests that all keys and apps of a workspace may make together, and all its sessions",
  ),
  privateTargets: variable(
    'PRIVATE_TARGETS',
    targets,
    [] as readonly string[],
    'host:port list that urls of callers may reach though private or plain http; * = any (development); none = public https only',
  ),
} as const;

/** Mails to persons. */
export const peopleSettings = {
  smtpUrl: variable(
    'SMTP_URL',
    optional(url('smtp:', 'smtps:')),
    null as string | null,
    'server for mails to persons, like smtps://user:password@mail.example.com; none = an operator delivers the links',
  ),
  mailFrom: variable(
    'MAIL_FROM',
    mailAddress,
    'Postline <postline@localhost>',
    'the address that mails to persons come from',
  ),
} as const;

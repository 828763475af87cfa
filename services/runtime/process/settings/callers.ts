import { noProxies } from '#runtime/identity/proxies.ts';
import { integer, proxies, targets } from '../config-values.ts';
import { variable } from './variable.ts';

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

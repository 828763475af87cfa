import type { Config } from '#runtime/process/config.ts';
import { EgressGuard } from './guard.ts';

/** The one maker of guards: no part of the system forgets a host of this installation. */

export type GuardSettings = Pick<
  Config,
  'privateTargets' | 'baseUrl' | 'consoleUrl' | 'authUrl' | 'mcpUrl' | 'host' | 'port'
>;

/**
 * The guard of an installation's outgoing calls: it refuses the hosts of the API, the console, the authorization server
 * and MCP, and the port that this machine serves them on.
 * @param served their urls, where this process serves them itself and so knows those that are not configured
 */
export const guardOf = (settings: GuardSettings, served: () => readonly string[] = () => []): EgressGuard => {
  const { privateTargets, baseUrl, consoleUrl, authUrl, mcpUrl, host, port } = settings;
  const configured = [baseUrl, consoleUrl, authUrl, mcpUrl].flatMap((url) => (url === null ? [] : [hostIn(url)]));
  // Only a target that may be private reaches these, as in development.
  const local = [host, '127.0.0.1', '[::1]', 'localhost'].map((one) => `${bracketed(one)}:${port}`);
  const own = [...new Set([...configured, ...local])];
  return new EgressGuard({ privateTargets, ownHosts: () => [...own, ...served().map(hostIn)] });
};

const hostIn = (url: string): string => new URL(url).host;

/** An IPv6 address as a url has it. */
const bracketed = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host);

import { lookup } from 'node:dns/promises';
import type { Config } from '#runtime/process/config.ts';
import type { Door } from '#services/api/server.ts';

/** Where people and apps find a standalone on this machine: one port, and a name for each part. */

type Addresses = Pick<Config, 'authUrl' | 'consoleUrl' | 'mcpUrl'>;

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

/** Browsers know names below localhost by themselves (RFC 6761, 6.3); programs ask the machine, which may not. */
const isKnown = async (name: string): Promise<boolean> => {
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.length > 0 && found.every(({ address }) => isLoopback(address));
};

/**
 * What an operator named stays. Apps open the authorization server, and programs links of the console, by themselves as
 * well as in a browser: a name that the machine does not know would be of use to browsers alone.
 */
export const addressesOf = async (
  { authUrl, consoleUrl, mcpUrl, baseUrl, host }: Config,
  { port, origin }: Pick<Door, 'port' | 'origin'>,
): Promise<Addresses> => {
  if (baseUrl !== null || !isLoopback(host)) return { authUrl, consoleUrl, mcpUrl };
  const hostOf = async (name: string) => `http://${(await isKnown(name)) ? name : 'localhost'}:${port}`;
  return {
    authUrl: authUrl ?? (await hostOf('auth.localhost')),
    consoleUrl: consoleUrl ?? (await hostOf('console.localhost')),
    mcpUrl: mcpUrl ?? `${origin}/mcp`,
  };
};

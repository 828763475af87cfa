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
 * What an operator named stays. An app opens the authorization server both in a browser and by itself, so its name must
 * be one that the machine knows.
 */
export const addressesOf = async (
  { authUrl, consoleUrl, mcpUrl, baseUrl, host }: Config,
  { port, origin }: Pick<Door, 'port' | 'origin'>,
): Promise<Addresses> => {
  if (baseUrl !== null || !isLoopback(host)) return { authUrl, consoleUrl, mcpUrl };
  const auth = (await isKnown('auth.localhost')) ? 'auth.localhost' : 'localhost';
  return {
    authUrl: authUrl ?? `http://${auth}:${port}`,
    consoleUrl: consoleUrl ?? `http://console.localhost:${port}`,
    mcpUrl: mcpUrl ?? `${origin}/mcp`,
  };
};

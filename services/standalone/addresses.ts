import { lookup } from 'node:dns/promises';
import { statfs } from 'node:fs/promises';
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

/**
 * Postgres's write-ahead log grows by files of this size, and Postgres ends when there is no room for the next. Bytes.
 */
const minFreeBytes = 16 * 1024 ** 2;

/** A check of /readyz. @throws when so little is left that writes fail, or are about to */
export const diskRoom = async (folder: string): Promise<null> => {
  const { bavail, bsize } = await statfs(folder);
  const left = bavail * bsize;
  if (left >= minFreeBytes) return null;
  throw new Error(
    `The disk under ${folder} is full, ${Math.floor(left / 1024 ** 2)} MiB are left: delete files or enlarge it.`,
  );
};

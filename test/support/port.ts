/** Ports for servers that are killed and come back on the same one. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range that the system gives out by itself: a client that keeps trying a dead port of that range may be given
 * the same port for its own end, connects to itself, and the server that comes back finds its port taken.
 */
export const somePort = (): number => 10_000 + Math.floor(Math.random() * 20_000);

const maxTries = 20;

/** One of those that nobody listened at a moment ago; whoever starts a server there may still come second. */
export const freePort = async (): Promise<number> => {
  for (let tried = 1; ; tried += 1) {
    const port = somePort();
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if (tried === maxTries) throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
};

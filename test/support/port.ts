/** Ports for servers that tests kill and restart on the same port. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range that the system assigns: a client that retries a dead port of that range may get the same port for
 * its own end, connect to itself, and so take the port from the restarted server.
 */
export const somePort = (): number => 10_000 + Math.floor(Math.random() * 20_000);

const maxTries = 20;

/** A port without a listener a moment ago; another program may still take it first. */
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

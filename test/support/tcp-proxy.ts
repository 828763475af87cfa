/** A TCP proxy on loopback that can fail on purpose: one per client, so that a fault hits nobody else. */
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Closes every connection; new ones are refused until `heal`. */
  cut(): void;
  heal(): void;
  /**
   * Arms one fault: the first request for which `match` says yes is forwarded, and its connection is closed when the
   * server answers, before a byte of the answer went through. Resolves when that happened.
   */
  loseAnswer(match: (request: Buffer) => boolean): Promise<void>;
  close(): Promise<void>;
}

export const tcpProxy = async (target: { readonly host: string; readonly port: number }): Promise<TcpProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let refusing = false;
  let armed: { match: (request: Buffer) => boolean; lost: () => void } | null = null;

  const server = createServer((client) => {
    if (refusing) {
      client.destroy();
      return;
    }
    const upstream = dial(target.port, target.host);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.setNoDelay(true);
    upstream.setNoDelay(true);
    const end = (): void => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    let losing: (() => void) | null = null;
    client.on('data', (chunk) => {
      if (armed?.match(chunk)) {
        losing = armed.lost;
        armed = null;
      }
      if (!upstream.write(chunk)) client.pause();
    });
    upstream.on('drain', () => client.resume());
    upstream.on('data', (chunk) => {
      if (losing !== null) {
        end();
        losing();
        return;
      }
      if (!client.write(chunk)) upstream.pause();
    });
    client.on('drain', () => upstream.resume());
    for (const socket of pair) socket.on('error', end).on('close', end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  const drop = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    pairs.clear();
  };
  return {
    port: address.port,
    cut: () => {
      refusing = true;
      drop();
    },
    heal: () => {
      refusing = false;
    },
    loseAnswer: (match) =>
      new Promise((lost) => {
        armed = { match, lost };
      }),
    close: async () => {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
};

/** A TCP proxy on loopback that fails on request: one per client, so that a fault affects no other client. */
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Closes every connection; new ones are refused until `heal`. */
  cut(): void;
  heal(): void;
  /**
   * Arms one fault: forwards the first request that `match` accepts, and closes its connection when the server answers,
   * before a byte of the answer passes. Resolves when that has happened.
   */
  loseAnswer(match: (request: Buffer) => boolean): Promise<void>;
  /**
   * From now on a connection falls silent in the chunk for which `falls` returns a number, after that many bytes of it:
   * both ends stay open, and nothing passes either way, however long they wait. It stays silent after `speak`.
   */
  silence(falls: Falls): void;
  /** Connections that are not silent yet never will be. */
  speak(): void;
  close(): Promise<void>;
}

type Way = 'server' | 'client';

/** @param sent bytes that went each way before this chunk */
export type Falls = (to: Way, chunk: Buffer, sent: Readonly<Record<Way, number>>) => number | null;

/** Silent once `n` bytes went that way. */
export const afterBytes =
  (to: Way, n: number): Falls =>
  (way, chunk, sent) =>
    way === to && sent[to] + chunk.length > n ? n - sent[to] : null;

/** Silent at a request that holds these words: the server never sees it. */
export const atRequest =
  (words: string): Falls =>
  (to, chunk) =>
    to === 'server' && chunk.includes(words) ? 0 : null;

/** Silent: the connection with the next traffic, and no other. */
export const theNext = (): Falls => {
  let one: Readonly<Record<Way, number>> | null = null;
  return (_, __, sent) => {
    one ??= sent;
    return one === sent ? 0 : null;
  };
};

export const tcpProxy = async (target: { readonly host: string; readonly port: number }): Promise<TcpProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>();
  let refusing = false;
  let falls: Falls = () => null;
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
    const sent = { server: 0, client: 0 };
    let silent = false;
    /** The part of the chunk that still passes. */
    const through = (to: Way, chunk: Buffer): Buffer => {
      if (silent) return chunk.subarray(0, 0);
      const least = falls(to, chunk, sent);
      silent = least !== null;
      sent[to] += chunk.length;
      return chunk.subarray(0, least ?? chunk.length);
    };
    client.on('data', (chunk) => {
      if (armed?.match(chunk)) {
        losing = armed.lost;
        armed = null;
      }
      if (!upstream.write(through('server', chunk))) client.pause();
    });
    upstream.on('drain', () => client.resume());
    upstream.on('data', (chunk) => {
      if (losing !== null) {
        end();
        losing();
        return;
      }
      if (!client.write(through('client', chunk))) upstream.pause();
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
    silence: (chosen) => {
      falls = chosen;
    },
    speak: () => {
      falls = () => null;
    },
    close: async () => {
      drop();
      server.close();
      await once(server, 'close');
    },
  };
};

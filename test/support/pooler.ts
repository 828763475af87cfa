/**
 * A connection pooler in front of a Postgres, as a client sees one: each transaction, or each connection in session
 * mode, gets a free backend. It asks its clients for no password.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import pg from 'pg';

export interface PoolerOptions {
  /** Of the server behind it. */
  readonly url: string;
  readonly mode: 'transaction' | 'session';
  /** Which free backend is taken: the last or the first one that was released. Default: the last, as in PgBouncer. */
  readonly takes?: 'last' | 'first';
  /** Backends that are open from the start. */
  readonly open?: number;
}

export interface Pooler {
  readonly url: string;
  close(): Promise<void>;
}

/** A session of the server without the client that opened it. */
const backendOf = async (url: string): Promise<Socket> => {
  const client = new pg.Client({ connectionString: url, application_name: 'pooler' });
  client.on('error', () => undefined);
  await client.connect();
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection;
  stream.removeAllListeners('data');
  return stream;
};

const message = (type: string, ...ints: readonly (number | string)[]): Buffer => {
  const parts = ints.map((one) => {
    if (typeof one === 'string') return Buffer.from(one);
    const int = Buffer.alloc(4);
    int.writeInt32BE(one);
    return int;
  });
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
};

/**
 * A server's messages at the start of a session: authentication ok, its cancel key (not the backend's), ready for
 * query.
 */
const welcome = Buffer.concat([message('R', 0), message('K', 1, 2), message('Z', 'I')]);

/** Calls back with each whole message: its type, '' for the untyped first one of a client. */
const framed = (begins: boolean, each: (type: string, whole: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0);
  let untyped = begins;
  return (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const at = untyped ? 0 : 1;
      if (rest.length < at + 4) return;
      const length = at + rest.readInt32BE(at);
      if (rest.length < length) return;
      const whole = rest.subarray(0, length);
      const type = untyped ? '' : String.fromCharCode(whole[0] ?? 0);
      rest = rest.subarray(length);
      untyped = false;
      each(type, whole);
    }
  };
};

export const startPooler = async ({ url, mode, takes = 'last', open = 0 }: PoolerOptions): Promise<Pooler> => {
  const free = await Promise.all(Array.from({ length: open }, () => backendOf(url)));
  const sockets = new Set<Socket>(free);

  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    let backend: Promise<Socket> | null = null;
    let questions = 0;
    const giveBack = (socket: Socket): void => {
      backend = null;
      socket.removeAllListeners('data');
      free.push(socket);
    };
    const take = async (): Promise<Socket> => {
      const socket = (takes === 'last' ? free.pop() : free.shift()) ?? (await backendOf(url));
      sockets.add(socket);
      const answers = framed(false, (type, whole) => {
        client.write(whole);
        if (type !== 'Z') return;
        questions -= 1;
        if (mode === 'transaction' && questions === 0 && whole[5] === 'I'.charCodeAt(0)) giveBack(socket);
      });
      return socket.on('data', answers);
    };
    client.on(
      'data',
      framed(true, (type, whole) => {
        if (type === '') client.write(welcome);
        else if (type === 'X') client.end();
        else {
          if (type === 'Q' || type === 'S') questions += 1;
          backend ??= take();
          void backend.then((socket) => socket.write(whole));
        }
      }),
    );
    client.on('close', () => {
      void backend?.then(giveBack);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = new URL(url);
  address.hostname = '127.0.0.1';
  address.port = String((server.address() as { readonly port: number }).port);
  return {
    url: address.href,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};

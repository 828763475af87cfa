/**
 * Hostile receivers, each under its own path, in their own process, so that their cost does not count as ours.
 * `startReceivers` starts it; run as a program this file is that process.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

export interface Receivers {
  readonly port: number;
  url(path: ReceiverPath): string;
  /** Requests and actions of this path so far, over all its connections. */
  seen(path: ReceiverPath): Promise<Seen>;
  /** Connections that are open now, over all paths. */
  open(): Promise<number>;
  /** Stops the process: it accepts no connection, and the kernel only as many as fit a queue of 1. */
  freeze(): void;
  close(): Promise<void>;
}

export interface Seen {
  readonly requests: number;
  readonly connections: number;
  /** Connections that ended with this path. */
  readonly closed: number;
  readonly bytesSent: number;
  /** The last request, unchanged. */
  readonly lastRequest: string;
}

const CRLF = '\r\n';
const head = (status: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...headers, '', ''].join(CRLF);
const MEGABYTE = Buffer.alloc(1 << 20, 'x');

/** Writes `piece` as fast as the other side reads, `times` over; then `end`. */
const pour = (socket: Socket, piece: Buffer, times: number, end: () => void = () => {}): void => {
  let left = times;
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= 1;
      if (!socket.write(piece)) {
        socket.once('drain', more);
        return;
      }
    }
    if (!socket.destroyed) end();
  };
  more();
};

const bombs = new Map<number, Buffer>();
/** Made once: making it would slow down all other answers of this process. */
const bombOf = (megabytes: number): Buffer => {
  const bomb = bombs.get(megabytes) ?? gzipSync(Buffer.alloc(megabytes << 20));
  bombs.set(megabytes, bomb);
  return bomb;
};

const drip = (socket: Socket, piece: string): void => {
  const timer = setInterval(() => socket.write(piece), 20);
  socket.once('close', () => clearInterval(timer));
};

/** The behaviour of each after a whole request. */
const behaviours = {
  '/ok': (socket: Socket) => socket.write(`${head('200 OK', 'content-length: 2')}ok`),
  '/exact': (socket: Socket) => socket.write(head('200 OK', 'content-length: 16384') + 'x'.repeat(16_384)),
  '/one-more': (socket: Socket) => socket.write(head('200 OK', 'content-length: 16385') + 'x'.repeat(16_385)),
  '/until-close': (socket: Socket) => socket.end(`${head('200 OK')}all of it`),
  '/headers': (socket: Socket) =>
    socket.write(
      head(
        '429 Slow Down',
        'Retry-After: 7',
        'retry-after: 9',
        'Webhook-Delivery: disable',
        'x-other: no',
        'content-length: 0',
      ),
    ),
  '/early-hints': (socket: Socket) => socket.write(`${head('103 Early Hints', 'link: </a>')}${head('204 No Content')}`),
  '/300mb': (socket: Socket) => {
    socket.write(head('200 OK', `content-length: ${300 << 20}`));
    pour(socket, MEGABYTE, 300);
  },
  '/300mb-error': (socket: Socket) => {
    socket.write(head('500 Internal Server Error', 'connection: close'));
    pour(socket, MEGABYTE, 300, () => socket.end());
  },
  '/gzip-bomb': (socket: Socket) => {
    const bomb = bombOf(100);
    socket.write(head('200 OK', 'content-encoding: gzip', `content-length: ${bomb.length}`));
    socket.write(bomb);
  },
  '/small-gzip-bomb': (socket: Socket) => {
    const bomb = bombOf(10);
    socket.write(head('200 OK', 'content-encoding: gzip', `content-length: ${bomb.length}`));
    socket.write(bomb);
  },
  '/large-headers': (socket: Socket) =>
    socket.write(head('200 OK', 'content-length: 0', ...Array<string>(17).fill(`x-more: ${'y'.repeat(1_000)}`))),
  '/endless-headers': (socket: Socket) => {
    socket.write(`HTTP/1.1 200 OK${CRLF}`);
    pour(socket, Buffer.from(`x-more: ${'y'.repeat(1_000)}${CRLF}`.repeat(64)), 5_000);
  },
  '/endless-header': (socket: Socket) => {
    socket.write(`HTTP/1.1 200 OK${CRLF}x-more: `);
    pour(socket, MEGABYTE, 300);
  },
  '/endless-reason': (socket: Socket) => {
    socket.write('HTTP/1.1 200 ');
    pour(socket, MEGABYTE, 300);
  },
  '/endless-hints': (socket: Socket) => pour(socket, Buffer.from(head('103 Early Hints').repeat(1_000)), 10_000),
  '/endless-chunk-extension': (socket: Socket) => {
    socket.write(`${head('200 OK', 'transfer-encoding: chunked')}1;`);
    pour(socket, MEGABYTE, 300);
  },
  '/endless-trailers': (socket: Socket) => {
    socket.write(`${head('200 OK', 'transfer-encoding: chunked')}2${CRLF}ok${CRLF}0${CRLF}`);
    pour(socket, Buffer.from(`x-more: ${'y'.repeat(1_000)}${CRLF}`.repeat(64)), 5_000);
  },
  '/drip-body': (socket: Socket) => {
    socket.write(`${head('202 Accepted', 'content-length: 100000')}begin`);
    drip(socket, '.');
  },
  '/drip-headers': (socket: Socket) => {
    socket.write(`HTTP/1.1 200 OK${CRLF}x-slow: `);
    drip(socket, 'y');
  },
  '/silence': () => {},
  '/reset': (socket: Socket) => socket.resetAndDestroy(),
  '/close': (socket: Socket) => socket.end(),
  '/status-then-reset': (socket: Socket) => {
    // The reset drops bytes that the other side has not read: it is sent once they are read.
    socket.write(`${head('200 OK', 'content-length: 100')}part`, () => setTimeout(() => socket.resetAndDestroy(), 50));
  },
  '/status-then-close': (socket: Socket) => socket.end(`${head('200 OK', 'content-length: 100')}part`),
  '/half-status': (socket: Socket) => socket.end('HTTP/1.1 20'),
  '/broken-chunks': (socket: Socket) =>
    socket.write(`${head('201 Created', 'transfer-encoding: chunked')}4${CRLF}part${CRLF}zz${CRLF}`),
  '/two-lengths': (socket: Socket) => socket.write(`${head('200 OK', 'content-length: 2', 'content-length: 5')}ok`),
  '/garbage': (socket: Socket) => socket.write(`SSH-2.0-OpenSSH_9.9${CRLF}`),
  '/no-such-status': (socket: Socket) => socket.write(head('999999 Many')),
  '/broken-header': (socket: Socket) => socket.write(head('200 OK', 'no colon')),
  '/http2': (socket: Socket) => socket.write(Buffer.from('000012040000000000000300000080000400010000', 'hex')),
  '/upgrade': (socket: Socket) =>
    socket.write(head('101 Switching Protocols', 'connection: upgrade', 'upgrade: websocket')),
  '/answer-twice': (socket: Socket) => {
    const answer = (status: string) => head(status, 'content-length: 0');
    socket.write(answer('200 OK') + answer('200 Smuggled'));
  },
  '/lie-about-keep-alive': (socket: Socket) => {
    socket.end(`${head('200 OK', 'content-length: 2', 'connection: keep-alive', 'keep-alive: timeout=60')}ok`);
  },
  '/redirect': (socket: Socket) =>
    socket.write(head('302 Found', 'location: http://127.0.0.1:1/private', 'content-length: 0')),
} as const;
export type ReceiverPath = keyof typeof behaviours;

const isPath = (path: string): path is ReceiverPath => path in behaviours;

export const startReceivers = async ({ shortQueue = false } = {}): Promise<Receivers> => {
  const child = fork(import.meta.filename, ['--receive', ...(shortQueue ? ['--short-queue'] : [])], { execArgv: [] });
  const ask = async (message: string): Promise<unknown> => {
    child.send(message);
    return (await once(child, 'message'))[0];
  };
  const port = Number(await ask('port'));
  // One question at a time: only their order tells answers apart.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = (message: string): Promise<unknown> => {
    turn = turn.then(() => ask(message));
    return turn;
  };
  return {
    port,
    url: (path) => `http://127.0.0.1:${port}${path}`,
    seen: async (path) => (await inTurn(path)) as Seen,
    open: async () => Number(await inTurn('open')),
    freeze: () => {
      child.kill('SIGSTOP');
    },
    close: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
};

const receive = async (): Promise<void> => {
  const seen = new Map<string, { -readonly [K in keyof Seen]: Seen[K] }>();
  const of = (path: string) => {
    const known = seen.get(path) ?? { requests: 0, connections: 0, closed: 0, bytesSent: 0, lastRequest: '' };
    seen.set(path, known);
    return known;
  };
  let open = 0;
  const server = createServer((socket) => {
    open += 1;
    let buffered = '';
    let path = '';
    socket.on('error', () => {});
    socket.on('close', () => {
      open -= 1;
      of(path).closed += 1;
      of(path).bytesSent += socket.bytesWritten - socket.writableLength;
    });
    socket.on('data', (chunk) => {
      buffered += chunk.toString('latin1');
      const end = buffered.indexOf(CRLF + CRLF) + 4;
      const length = Number(/content-length: (\d+)/i.exec(buffered)?.[1] ?? 0);
      if (end < 4 || buffered.length < end + length) return;
      const first = path === '';
      path = buffered.split(' ')[1] ?? '';
      const mine = of(path);
      mine.requests += 1;
      mine.connections += first ? 1 : 0;
      mine.lastRequest = buffered.slice(0, end + length);
      buffered = buffered.slice(end + length);
      if (isPath(path)) behaviours[path](socket);
    });
  });
  server.listen({ port: 0, host: '127.0.0.1', ...(process.argv.includes('--short-queue') ? { backlog: 1 } : {}) });
  await once(server, 'listening');
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const answers: Readonly<Record<string, () => number>> = { port: () => port, open: () => open };
  process.on('message', (message: string) => process.send?.(answers[message]?.() ?? of(message)));
  process.on('disconnect', () => process.exit());
};

if (process.argv[2] === '--receive') await receive();

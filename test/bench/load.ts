/**
 * The load generator: HTTP/1.1 over keep-alive connections, one request at a time on each, with as little overhead as
 * possible on the shared machine. For servers that answer with Content-Length.
 */
import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
}

const headEnd = Buffer.from('\r\n\r\n');

/** One connection. @throws when it is broken or breaks, or when a request is sent before the last one was answered. */
export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { resolve(answer: Answer): void; reject(error: Error): void } | null = null;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#look();
    });
    const broken = (error?: Error) => {
      this.#closed = true;
      this.#waiting?.reject(error ?? new Error('the server closed the connection'));
      this.#waiting = null;
    };
    socket.on('error', broken);
    socket.on('close', () => broken());
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Connection(socket));
      });
    });
  }

  send(request: string): Promise<Answer> {
    if (this.#waiting !== null) throw new Error('the last request was not answered yet');
    if (this.#closed) return Promise.reject(new Error('the server has closed the connection'));
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = null;
    this.#socket.destroy();
  }

  #look(): void {
    const end = this.#received.indexOf(headEnd);
    if (end < 0) return;
    const head = this.#received.toString('latin1', 0, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const total = end + headEnd.length + length;
    if (this.#received.length < total) return;
    const body = this.#received.subarray(end + headEnd.length, total);
    this.#received = this.#received.subarray(total);
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve({ status: Number(head.slice(9, 12)), head, body });
  }
}

export interface Wire {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly key: string;
  /** JSON text. */
  readonly body?: string;
  readonly idempotencyKey?: string;
}

/** The bytes of a request. */
export const wire = ({ method, path, key, body, idempotencyKey }: Wire): string => {
  const idempotency = idempotencyKey === undefined ? '' : `Idempotency-Key: ${idempotencyKey}\r\n`;
  const content =
    body === undefined
      ? ''
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${idempotency}`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${content}\r\n${body ?? ''}`;
};

export interface Measured {
  /** Answers per second. */
  readonly rate: number;
  /** Milliseconds; in an open loop from the intended start. */
  readonly latencies: readonly number[];
}

const open = (port: number, count: number): Promise<Connection[]> =>
  Promise.all(Array.from({ length: count }, () => Connection.open(port)));

const must = ({ status, body }: Answer): void => {
  if (status !== 200) throw new Error(`answered with ${status}: ${body.toString('utf8').slice(0, 500)}`);
};

/** So many callers, each sending when its last request was answered. @throws at the first answer that is not 200 */
export const closedLoop = async (
  port: number,
  { callers, ms, next, seen }: { callers: number; ms: number; next: () => string; seen?: (answer: Answer) => void },
): Promise<Measured> => {
  const connections = await open(port, callers);
  const latencies: number[] = [];
  const start = performance.now();
  const caller = async (connection: Connection): Promise<void> => {
    for (let now = performance.now(); now < start + ms; ) {
      const answer = await connection.send(next());
      const after = performance.now();
      must(answer);
      seen?.(answer);
      latencies.push(after - now);
      now = after;
    }
  };
  try {
    await Promise.all(connections.map(caller));
    return { rate: (latencies.length / (performance.now() - start)) * 1_000, latencies };
  } finally {
    for (const connection of connections) connection.close();
  }
};

/** Connections of an open loop: a request that is due while all are busy waits for one, and its wait counts. */
const openWidth = 256;

/** Requests that start on the clock, whether or not others were answered. */
export const openLoop = async (
  port: number,
  { rate, ms, next }: { rate: number; ms: number; next: () => string },
): Promise<Measured> => {
  const connections = await open(port, openWidth);
  const idle = [...connections];
  const latencies: number[] = [];
  const total = Math.floor((rate * ms) / 1_000);
  const start = performance.now();
  let begun = 0;
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const done = Promise.withResolvers<void>();
  const begin = (): void => {
    for (;;) {
      if (begun === total || start + (begun * 1_000) / rate > performance.now()) return;
      // The longest idle one: a server closes connections that never send anything.
      const connection = idle.shift();
      if (connection === undefined) return;
      const intended = start + (begun * 1_000) / rate;
      begun += 1;
      connection.send(next()).then((answer) => {
        latencies.push(performance.now() - intended);
        try {
          must(answer);
        } catch (error) {
          failed.reject(error);
        }
        idle.push(connection);
        if (latencies.length === total) done.resolve();
        else begin();
      }, failed.reject);
    }
  };
  const clock = setInterval(begin, 1);
  try {
    await Promise.race([done.promise, failed.promise]);
    return { rate: (total / (performance.now() - start)) * 1_000, latencies };
  } finally {
    clearInterval(clock);
    for (const connection of connections) connection.close();
  }
};

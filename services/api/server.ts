import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Registry } from 'prom-client';
import { callerAddress, isProxy, noProxies, type TrustedProxies } from '#runtime/identity/proxies.ts';
import { type ListenAt, listen, originOf } from '#runtime/process/listen.ts';
import { Counter, Gauge } from '#runtime/process/metrics.ts';
import { createApp } from './app.ts';
import type { Deps } from './call/deps.ts';
import { categoryOf, errors } from './call/errors.ts';
import type { Part, ServerDeps } from './parts.ts';

/**
 * Limits the connections that the api accepts, so that one address cannot take all of them and all together cannot
 * exhaust the process.
 */

interface ConnectionLimits {
  readonly maxConnections: number;
  /** Connections of one IPv4 address, or of the /64 of an IPv6 address. */
  readonly maxConnectionsPerAddress: number;
  /** Connections of all callers come from these addresses, so they have no limit of their own. */
  readonly trustedProxies: TrustedProxies;
}

const limitConnections = (server: Server, limits: ConnectionLimits, registry: Registry | null): void => {
  const { maxConnections, maxConnectionsPerAddress, trustedProxies } = limits;
  const registers = registry === null ? [] : [registry];
  const held = new Gauge({ name: 'api_connections', help: 'Connections that callers hold.', registers });
  const refused = new Counter({
    name: 'api_connections_refused_total',
    help: 'Connections that were closed at once: their address, or all addresses together, held as many as allowed.',
    labelNames: ['limit'] as const,
    registers,
  });
  const open = new Map<string, number>();
  server.maxConnections = maxConnections;
  server.on('drop', () => refused.inc({ limit: 'all' }));
  server.on('connection', (socket) => {
    held.inc();
    socket.once('close', () => held.dec());
    if (isProxy(socket.remoteAddress, trustedProxies)) return;
    const address = callerAddress(socket.remoteAddress, undefined, noProxies);
    const before = open.get(address) ?? 0;
    if (before >= maxConnectionsPerAddress) {
      refused.inc({ limit: 'address' });
      socket.destroy();
      return;
    }
    open.set(address, before + 1);
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
};

export interface ApiServer {
  /** Port it listens on. */
  readonly port: number;
  /**
   * Accepts no more requests. Resolves when the requests in flight are answered, at the latest after the given time.
   */
  stop(graceMs?: number): Promise<void>;
}

const seconds = 1_000;

/** As Node itself names a request whose headers are late. */
const timedOut = 'ERR_HTTP_REQUEST_TIMEOUT';

/**
 * A request that the parser refuses, or that is late, never reaches the app. The server answers it with a problem of
 * the same form and closes the connection. Browsers open connections ahead: one that has asked for nothing is closed
 * without a word, because the browser would take the words for the answer to its next request.
 */
const refuse = (deps: Deps, error: NodeJS.ErrnoException, socket: Socket): void => {
  if (!socket.writable || socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
  const code = error.code === timedOut ? 'request_timeout' : 'malformed_request';
  const { status, title } = errors[code];
  const type = `${deps.baseUrl()}/errors/${code}`;
  const correlationId = randomUUID();
  const body = JSON.stringify({ type, title, status, code, category: categoryOf(status), correlationId });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-Id: ${correlationId}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
};

/** Milliseconds that a caller may take, so that no caller holds a connection without using it. */
interface Patience {
  /** For all headers, counted from the connection, or from the first byte of a later request. */
  readonly headersMs: number;
  /** For a whole request. A request with a file may take longer, as long as bytes flow in either direction. */
  readonly requestMs: number;
  /** Between two bytes of a file. */
  readonly fileMs: number;
  /** Between two bytes in either direction while a request is open, also while the caller does not read the answer. */
  readonly silentMs: number;
  /** Between two requests: longer than load balancers keep a connection, or they would send into one that closes. */
  readonly betweenMs: number;
  /**
   * For the rest of a body once the answer is sent, because a caller may read the answer only when it has sent the
   * whole body.
   */
  readonly lingerMs: number;
}

const patience: Patience = {
  headersMs: 15 * seconds,
  requestMs: 60 * seconds,
  fileMs: 60 * seconds,
  silentMs: 120 * seconds,
  betweenMs: 65 * seconds,
  lingerMs: 5 * seconds,
};

/** All headers of a request together. */
const maxHeaderBytes = 16 * 1024;

/** Replaces Node's own limit for whole requests, which has no exceptions. */
const limit = (
  server: Server,
  deps: Deps,
  { requestMs, fileMs, lingerMs }: Patience,
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  const { socket } = request;
  if (request.url?.startsWith(deps.blobs.served.prefix)) {
    socket.setTimeout(fileMs);
    // The server has the whole request and is working: the disk may be slow.
    if (request.method === 'PUT') request.once('end', () => socket.setTimeout(0));
    const cut = () => (request.complete ? undefined : socket.destroy());
    response.once('finish', () => {
      if (!request.complete) setTimeout(cut, lingerMs).unref();
    });
    return;
  }
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (length === '0' && encoding === undefined) return;
  const late = setTimeout(() => {
    if (request.complete) return;
    server.emit('clientError', Object.assign(new Error('the request took too long'), { code: timedOut }), socket);
  }, requestMs);
  late.unref();
  request.once('close', () => clearTimeout(late));
};

/** A server that listens before the api is open: callers can connect and wait until the api answers them. */
export interface Door {
  readonly port: number;
  /** `http://host:port` */
  readonly origin: string;
  /** @param parts what it serves beside the api */
  open(deps: ServerDeps, parts?: readonly Part[]): ApiServer;
  /** Without having been opened. */
  close(): Promise<void>;
}

export interface DoorOptions extends ListenAt, Partial<ConnectionLimits> {
  readonly patience?: Partial<Patience>;
  /** Where it counts connections. */
  readonly registry?: Registry;
}

const noLimits: ConnectionLimits = {
  maxConnections: Number.POSITIVE_INFINITY,
  maxConnectionsPerAddress: Number.POSITIVE_INFINITY,
  trustedProxies: noProxies,
};

export const openDoor = async (at: DoorOptions): Promise<Door> => {
  const waits = { ...patience, ...at.patience };
  const server = createServer({
    headersTimeout: waits.headersMs,
    requestTimeout: 0,
    keepAliveTimeout: waits.betweenMs,
    maxHeaderSize: maxHeaderBytes,
    connectionsCheckingInterval: Math.min(5 * seconds, waits.headersMs / 3),
  });
  server.timeout = waits.silentMs;
  limitConnections(server, { ...noLimits, ...at }, at.registry ?? null);
  const waiting: Parameters<RequestListener>[] = [];
  const wait: RequestListener = (...exchange) => void waiting.push(exchange);
  server.on('request', wait);
  const port = await listen(server, at);
  const stop = (graceMs: number): Promise<void> =>
    new Promise((resolve) => {
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      server.closeIdleConnections();
    });
  return {
    port,
    origin: originOf(at.host, port),
    open: (deps, parts = []) => {
      const answer = createApp(deps, parts).callback();
      const serve: RequestListener = (request, response) => {
        limit(server, deps, waits, request, response);
        void answer(request, response);
      };
      server.off('request', wait);
      server.on('request', serve);
      server.on('clientError', (error, socket) => refuse(deps, error, socket as Socket));
      for (const exchange of waiting.splice(0)) serve(...exchange);
      return { port, stop: (graceMs = 10 * seconds) => stop(graceMs) };
    },
    close: () => stop(0),
  };
};

/** @param at port 0 = any free one. */
export const startServer = async (
  deps: ServerDeps,
  at: { readonly host: string; readonly port: number },
  parts: readonly Part[] = [],
): Promise<ApiServer> => (await openDoor({ ...at, setting: 'PORT' })).open(deps, parts);

import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createApp } from './app.ts';
import type { Deps } from './deps.ts';
import { categoryOf, errors } from './errors.ts';

export interface ApiServer {
  /** Port it listens on. */
  readonly port: number;
  /** Takes no more requests; resolves when those in flight are answered, at the latest after the time given. */
  stop(graceMs?: number): Promise<void>;
}

const seconds = 1_000;

const listen = (server: Server, port: number, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });

/** What the parser refuses never reaches the app: it is told in the same form, and the connection ends. */
const refuse = (deps: Deps, socket: Socket): void => {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { status, title } = errors.malformed_request;
  const code = 'malformed_request';
  const type = `${deps.baseUrl()}/errors/${code}`;
  const correlationId = randomUUID();
  const body = JSON.stringify({ type, title, status, code, category: categoryOf(status), correlationId });
  const head = [
    `HTTP/1.1 ${status} Bad Request`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-Id: ${correlationId}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
};

/** @param at port 0 = any free one. */
export const startServer = async (
  deps: Deps,
  at: { readonly host: string; readonly port: number },
): Promise<ApiServer> => {
  // Slow senders: headers within 15 s, the whole request within a minute.
  const limits = { headersTimeout: 15 * seconds, requestTimeout: 60 * seconds, keepAliveTimeout: 65 * seconds };
  const server = createServer({ ...limits, connectionsCheckingInterval: 5 * seconds }, createApp(deps).callback());
  server.on('clientError', (_error, socket) => refuse(deps, socket as Socket));
  const port = await listen(server, at.port, at.host);
  return {
    port,
    stop: (graceMs = 10 * seconds) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
};

/** A server before a real one that loses and spoils calls on request: a text asks for its fault by `[[fault:name ms]]`. */
import { request as ask, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ScriptedFault } from '#contracts/ports/platform.suite.ts';

export interface Front {
  readonly origin: string;
  close(): void;
}

/** What the server itself would say. */
export interface Refusals {
  readonly [fault: string]: {
    readonly status: number;
    readonly body: unknown;
    readonly headers?: (ms: number) => Record<string, string>;
  };
}

export const scriptedText = (fault: ScriptedFault, ms = 0): string => `Hi [[fault:${fault} ${ms}]]`;

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

/**
 * @param behind origin of the real server
 * @param idOf names the post that a body would make, in a body that makes one; null: the body makes none. A fault strikes
 * once for each.
 */
export const scriptedFront = async (
  behind: string,
  idOf: (path: string, body: string) => string | null,
  refusals: Refusals,
): Promise<Front> => {
  const struck = new Set<string>();
  const { hostname, port } = new URL(behind);
  const pass = (
    message: IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; headers: IncomingMessage['headers']; body: Buffer }> =>
    new Promise((resolve, reject) => {
      const { method, url, headers } = message;
      const sent = ask({ hostname, port, method, path: url, headers }, async (answer) => {
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: await bodyOf(answer) });
      });
      sent.once('error', reject);
      sent.end(body);
    });
  const serve = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(message);
    const id = idOf(message.url ?? '', body.toString('utf8'));
    const [, fault = '', ms = '0'] = id === null ? [] : (/\[\[fault:(\w+) (\d+)\]\]/.exec(body.toString('utf8')) ?? []);
    const isFirst = id !== null && fault !== '' && !struck.has(id);
    if (isFirst) struck.add(id);
    const forward = async (): Promise<void> => {
      const answer = await pass(message, body);
      response.writeHead(answer.status, answer.headers).end(answer.body);
    };
    if (!isFirst) return forward();
    const refusal = refusals[fault];
    if (refusal !== undefined) {
      response.writeHead(refusal.status, { 'content-type': 'application/json', ...refusal.headers?.(Number(ms)) });
      response.end(JSON.stringify(refusal.body));
      return;
    }
    if (fault === 'timeout_before') return;
    if (fault === 'late') {
      setTimeout(() => void pass(message, body), Number(ms));
      response.writeHead(504).end('{}');
      return;
    }
    await pass(message, body);
    if (fault === 'error_after') response.writeHead(500).end('{"error":"InternalServerError","message":"oops"}');
  };
  const server = createServer((message, response) => {
    serve(message, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

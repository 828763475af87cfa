import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import type { World } from './http.ts';

export interface RawAnswer {
  readonly status: number;
  /** Of the head and the body. */
  readonly bytes: number;
}

/**
 * One call of the tester over a socket of its own. Nothing in this process parses the answer, and the body is made
 * before, so that of the turns of the event loop only the server's are long.
 * @param mayBreak a connection that breaks once the answer has begun is none: the server refused before the body's end
 */
export const rawCall = (
  world: World,
  { method, path, body, mayBreak }: { method: string; path: string; body: string | Buffer; mayBreak: boolean },
): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(world.origin());
    const sent = typeof body === 'string' ? Buffer.from(body) : body;
    const head = [
      `${method} /v1${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${world.testKey.secret}`,
      'Connection: close',
      'Content-Type: application/json',
      `Idempotency-Key: ${randomUUID()}`,
      `Content-Length: ${sent.length}`,
    ];
    const socket = connect(Number(port), hostname, () => {
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      socket.write(sent);
    });
    let begun = '';
    let bytes = 0;
    socket.on('data', (chunk) => {
      if (begun.length < 12) begun += String(chunk.subarray(0, 12));
      bytes += chunk.length;
    });
    socket.on('error', (error) => (mayBreak && bytes > 0 ? undefined : reject(error)));
    socket.on('close', () => resolve({ status: Number(begun.slice(9, 12)), bytes }));
  });

import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The receiver of a webhook, written as a reader of the guide to webhooks would write it: it trusts only signed requests. */

export interface Received {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly attempt: number;
  /** Whether each of the two signatures matches its secret. */
  readonly standard: boolean;
  readonly service: boolean;
}

export interface Receiver {
  /** `host:port`; only this machine reaches it. */
  readonly host: string;
  /** Requests since the secret was set, in order of arrival. */
  readonly received: readonly Received[];
  /** Answers a GET of this path with the file, as a stranger's server does. */
  serve(path: string, file: Uint8Array, contentType: string): void;
  /** Sets the secret; from now on requests must be signed with it. */
  expect(secret: string): void;
  close(): Promise<void>;
}

/** Seconds by which a signature may be old or early. */
const toleranceSeconds = 300;

const equal = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
const fresh = (seconds: string): boolean => Math.abs(Date.now() / 1_000 - Number(seconds)) <= toleranceSeconds;
const header = ({ headers }: IncomingMessage, name: string): string => String(headers[name] ?? '');

/** Standard Webhooks 1.0.0: one valid entry of a known version suffices. */
export const standardHolds = (request: IncomingMessage, body: string, secret: string): boolean => {
  const [id, time, entries] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    header(request, name),
  );
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const expected = `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`;
  return fresh(time ?? '') && (entries ?? '').split(' ').some((entry) => equal(entry, expected));
};

/** X-Service-Signature: t=<unix seconds>,v1=<hex>; one valid v1 suffices. */
export const serviceHolds = (request: IncomingMessage, body: string, secret: string): boolean => {
  const [time = '', ...entries] = header(request, 'x-service-signature').split(',');
  const seconds = time.replace('t=', '');
  const expected = `v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
  return fresh(seconds) && entries.some((entry) => equal(entry, expected));
};

export const startReceiver = async (): Promise<Receiver> => {
  const received: Received[] = [];
  const files = new Map<string, { readonly file: Uint8Array; readonly contentType: string }>();
  let secret: string | null = null;
  const server = createServer(async (request, response) => {
    const served = request.method === 'GET' ? files.get(request.url ?? '') : undefined;
    if (served !== undefined) {
      const headers = { 'content-type': served.contentType, 'content-length': served.file.length };
      return void response.writeHead(200, headers).end(served.file);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    if (secret === null) return void response.writeHead(404).end();
    const standard = standardHolds(request, body, secret);
    const service = serviceHolds(request, body, secret);
    if (!standard && !service) return void response.writeHead(401).end();
    received.push({ ...JSON.parse(body), attempt: Number(header(request, 'x-service-attempt')), standard, service });
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    received,
    serve: (path, file, contentType) => void files.set(path, { file, contentType }),
    expect: (given) => {
      secret = given;
      received.length = 0;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

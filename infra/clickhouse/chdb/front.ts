import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { proofOf, proofPath } from '../proof.ts';
import type { Engine } from './engine.ts';

/** The part of ClickHouse's HTTP interface that its client uses, over the engine in this process. */

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** Parameters of a request that are not settings of the engine. */
const transport = new Set([
  'query',
  'database',
  'default_format',
  'query_id',
  'session_id',
  'role',
  'wait_end_of_query',
  'send_progress_in_http_headers',
  'http_headers_progress_interval_ms',
  'enable_http_compression',
  'buffer_size',
]);

const insertion = /^\s*insert\s+into\s+(\w+)\s*(?:\(([^()]*)\))?\s*format\s+(\w+)\s*;?\s*$/i;
/** Callers split larger inserts: the engine takes an insert as a whole. */
const maxBytes = 256 * 1024 ** 2;

const isAllowed = ({ headers }: IncomingMessage, { user, password }: Credentials): boolean => {
  const wanted = Buffer.from(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`);
  const given = Buffer.from(headers.authorization ?? '');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
};

const fail = (response: ServerResponse, message: string): void => {
  const [, code = '1002'] = /Code: (\d+)/.exec(message) ?? [];
  const status = code === '516' ? 401 : code === '241' ? 500 : ['60', '81'].includes(code) ? 404 : 400;
  response.writeHead(status, { 'content-type': 'text/plain; charset=UTF-8', 'x-clickhouse-exception-code': code });
  response.end(`${message}\n`);
};

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes)
    throw new Error(`the insert exceeds ${maxBytes} bytes: split it`);
  const raw = await buffer(request);
  return request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw, { maxOutputLength: maxBytes }) : raw;
};

const answer = async (engine: Engine, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { searchParams } = new URL(request.url ?? '/', 'http://front');
  const entries = [...searchParams];
  const params = new Map(
    entries.flatMap(([key, value]) => (key.startsWith('param_') ? [[key.slice('param_'.length), value]] : [])),
  );
  const settings = new Map(entries.filter(([key]) => !key.startsWith('param_') && !transport.has(key)));
  const database = searchParams.get('database') ?? 'default';
  const body = await bodyOf(request);
  const asked = searchParams.get('query');
  const [, table, columns, format] = insertion.exec(asked ?? '') ?? [];
  const isWanted = (): boolean => !response.destroyed;
  const began = performance.now();
  let written = 0;
  let result: Uint8Array = new Uint8Array();
  if (table !== undefined && format !== undefined) {
    const named = columns?.split(',').map((one) => one.replaceAll('`', '').trim()) ?? null;
    if (body.length > 0)
      written = await engine.insert({ database, settings, table, columns: named, format, rows: body, isWanted });
  } else {
    const sql = asked === null ? body.toString() : body.length === 0 ? asked : `${asked}\n${body}`;
    const named = searchParams.get('default_format') ?? 'TabSeparated';
    result = await engine.query({ database, settings, params, format: named, sql, isWanted });
  }
  const summary = { written_rows: String(written), elapsed_ns: String(Math.round((performance.now() - began) * 1e6)) };
  response.writeHead(200, {
    'content-type': 'text/plain; charset=UTF-8',
    'x-clickhouse-query-id': searchParams.get('query_id') ?? '',
    'x-clickhouse-summary': JSON.stringify(summary),
  });
  response.end(result);
};

/** @param onAllowed called for each connection whose request had the credentials */
export const front =
  (engine: Engine, credentials: Credentials, onAllowed: (socket: Socket) => void): RequestListener =>
  (request, response) => {
    const [path, nonce = ''] = request.url?.split('?') ?? [];
    if (request.url === '/ping') {
      response.end('Ok.\n');
    } else if (path === proofPath) {
      request.resume();
      response.end(proofOf(credentials.password, nonce));
    } else if (!isAllowed(request, credentials)) {
      request.resume();
      fail(response, 'Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)');
    } else {
      onAllowed(request.socket);
      answer(engine, request, response).catch((error: unknown) => {
        fail(response, error instanceof Error ? error.message : String(error));
      });
    }
  };

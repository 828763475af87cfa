import type { IncomingMessage } from 'node:http';
import { invalidRequest, refuse } from './answer.ts';
import type { Access, State } from './state.ts';

/** One call as the routes see it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const maxBytes = 128 * 1024 * 1024;

export const bytesOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    length += (chunk as Buffer).length;
    if (length <= maxBytes) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
};

export const tokenOf = ({ headers }: Request): string => /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';

/** @throws Refusal the token is missing, has ended, or lacks a scope */
export const accessOf = (state: State, request: Request, ...scopes: readonly string[]): Access => {
  const access = state.access.get(tokenOf(request));
  if (access === undefined || access.until <= state.now()) throw refuse('unauthorized');
  if (scopes.some((scope) => !access.scopes.includes(scope))) throw refuse('scope_missing');
  return access;
};

export const jsonOf = ({ headers, body }: Request): unknown => {
  if (headers['content-type'] !== 'application/json') throw invalidRequest('the content type is not JSON');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw invalidRequest('the body is not JSON');
  }
};

export const emptyOf = ({ body }: Request): void => {
  if (body.length > 0) throw invalidRequest('this call has no body');
};

/** Members of a form. @throws Refusal one comes twice */
export const formOf = ({ headers, body }: Request): Record<string, string> => {
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') throw invalidRequest('this is no form');
  return single(new URLSearchParams(body.toString('utf8')));
};

export const single = (query: URLSearchParams): Record<string, string> => {
  const members: Record<string, string> = {};
  for (const [name, value] of query) {
    if (Object.hasOwn(members, name)) throw invalidRequest(`'${name}' comes twice`);
    members[name] = value;
  }
  return members;
};

export interface Part {
  readonly name: string;
  readonly type: string | null;
  readonly data: Buffer;
}

/** RFC 7578, as a storage reads it: in the order in which the parts come. Null: the body is no such form. */
export const partsOf = ({ headers, body }: Request): readonly Part[] | null => {
  const mark = /^multipart\/form-data; boundary=([\w'()+,./:=?-]{1,70})$/.exec(headers['content-type'] ?? '')?.[1];
  if (mark === undefined) return null;
  const edge = Buffer.from(`\r\n--${mark}`);
  // The first edge has no line before it.
  const whole = Buffer.concat([Buffer.from('\r\n'), body]);
  const parts: Part[] = [];
  let at = whole.indexOf(edge);
  if (at !== 0) return null;
  for (;;) {
    at += edge.length;
    if (whole.subarray(at, at + 4).equals(Buffer.from('--\r\n'))) return parts;
    const from = whole.indexOf('\r\n\r\n', at);
    const next = whole.indexOf(edge, at);
    if (from < 0 || next < from) return null;
    const head = whole.subarray(at + 2, from).toString('utf8');
    const name = /^content-disposition: form-data; name="([^"]+)"/im.exec(head)?.[1];
    if (name === undefined) return null;
    parts.push({ name, type: /^content-type: (\S+)$/im.exec(head)?.[1] ?? null, data: whole.subarray(from + 4, next) });
    at = next;
  }
};

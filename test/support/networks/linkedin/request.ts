import type { IncomingMessage } from 'node:http';
import { invalid, refuse } from './answer.ts';
import type { Access, State } from './state.ts';

/** One call as the routes see it. */
export interface Request {
  readonly method: string;
  /** As it came, still encoded. */
  readonly path: string;
  /** As it came. */
  readonly query: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Where the server is reached. */
  readonly origin: string;
}

const maxBytes = 6_000_000;

export const bytesOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    length += (chunk as Buffer).length;
    if (length <= maxBytes) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
};

/** Those that every client of HTTP sends, and the mark of the tests. */
const usual = [
  ...['host', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'accept', 'accept-encoding'],
  ...['user-agent', 'x-test-tag'],
];

/** @throws Refusal a header is none of the documented ones */
export const onlyHeaders = ({ headers }: Request, ...known: readonly string[]): void => {
  for (const name of Object.keys(headers)) {
    if (!usual.includes(name) && !known.includes(name)) throw invalid(`the header ${name} is none of this call`);
  }
};

/**
 * Of every call below /rest.
 * @param restMethod that of Rest.li, which a call may name; with `!` where the documents want it named
 */
export const versioned = (state: State, request: Request, restMethod: string | null): void => {
  const { headers } = request;
  onlyHeaders(request, 'authorization', 'linkedin-version', 'x-restli-protocol-version', 'x-restli-method');
  const version = headers['linkedin-version'];
  if (version === undefined) throw refuse('version_missing');
  if (!state.versions.includes(String(version))) throw refuse('version_ended');
  if (headers['x-restli-protocol-version'] !== '2.0.0') throw invalid('X-Restli-Protocol-Version must be 2.0.0');
  const [wanted, named] = [restMethod?.replace('!', ''), headers['x-restli-method']];
  const isLeftOut = named === undefined && restMethod?.endsWith('!') !== true;
  if (named !== wanted && !isLeftOut) throw invalid(`X-RestLi-Method must be ${wanted}, not ${named}`);
};

export const tokenOf = ({ headers }: Request): string => /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';

/** @throws Refusal the token is missing, has ended, or has none of the scopes */
export const accessOf = (state: State, request: Request, ...anyOf: readonly string[]): Access => {
  const token = tokenOf(request);
  if (token === '') throw refuse('token_empty');
  const access = state.access.get(token);
  if (access === undefined) throw refuse(state.ended.has(token) ? 'token_revoked' : 'token_invalid');
  if (access.until <= state.now()) throw refuse('token_expired');
  if (anyOf.length > 0 && !anyOf.some((scope) => access.scopes.includes(scope))) throw refuse('access_denied');
  return access;
};

export const jsonOf = ({ headers, body }: Request): unknown => {
  if (headers['content-type'] !== 'application/json') throw invalid('the content type is not JSON');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw invalid('the body is not JSON');
  }
};

export const emptyOf = ({ body }: Request): void => {
  if (body.length > 0) throw invalid('this call has no body');
};

/** Members of a form. @throws Refusal one comes twice */
export const formOf = ({ headers, body }: Request): Record<string, string> => {
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') throw invalid('this is no form');
  const members: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(body.toString('utf8'))) {
    if (Object.hasOwn(members, name)) throw invalid(`[${name}] comes twice`);
    members[name] = value;
  }
  return members;
};

type Shape = 'text' | 'list' | 'record';

/** Rest.li 2.0: the signs `( ) , : '` of a value are encoded, those around values are not. */
const simple = (name: string, value: string): string => {
  if (/[(),:']/.test(value)) throw invalid(`${name}: the reserved signs of a value are encoded`);
  return decodeURIComponent(value.replaceAll('+', ' '));
};

/**
 * The query: exactly these parameters, an optional one with a question mark behind its name. `list`: `List(a,b)`, without
 * its name and brackets. `record`: `(name:value)`, as it came.
 */
export const queryOf = (
  { query }: Request,
  shapes: Readonly<Record<string, Shape>>,
): Readonly<Record<string, string>> => {
  const found: Record<string, string> = {};
  for (const pair of query === '' ? [] : query.split('&')) {
    const at = pair.indexOf('=');
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const shape = shapes[name] ?? shapes[`${name}?`];
    if (at < 1 || shape === undefined)
      throw invalid(`the parameter ${name} is none of this call`, 'QUERY_PARAM_NOT_ALLOWED');
    if (name in found) throw invalid(`${name} comes twice`);
    if (shape === 'text') found[name] = simple(name, value);
    else if (shape === 'record') found[name] = value;
    else {
      const inside = /^List\((.*)\)$/.exec(value)?.[1];
      if (inside === undefined) throw invalid(`${name} must be List(…)`);
      found[name] = inside
        .split(',')
        .map((one) => simple(name, one))
        .join(',');
    }
  }
  for (const name of Object.keys(shapes)) {
    if (!name.endsWith('?') && !(name in found)) throw invalid(`${name} is required`);
  }
  return found;
};

/** The name behind the route, which must be encoded. */
export const keyIn = (encoded: string): string => {
  if (encoded.includes(':')) throw invalid('an URN in a path is encoded');
  return decodeURIComponent(encoded);
};

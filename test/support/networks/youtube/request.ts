import type { IncomingMessage } from 'node:http';
import { invalid, refuse } from './answer.ts';
import type { Access, Resource, State } from './state.ts';

/** One call as the routes see it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingMessage['headers'];
  /** Of a large body only its beginning. */
  readonly body: Buffer;
  readonly bytes: number;
  readonly sha256: string;
  /** Where the server is reached. */
  readonly origin: string;
}

const usual = [
  ...['host', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'accept', 'accept-encoding'],
  ...['user-agent', 'x-test-tag', 'authorization', 'accept-language', 'sec-fetch-mode'],
];

/** @throws Refusal a header is none of the documented ones */
export const onlyHeaders = ({ headers }: Request, ...known: readonly string[]): void => {
  for (const name of Object.keys(headers)) {
    if (!usual.includes(name) && !known.includes(name)) throw invalid(`the header ${name} is none of this call`);
  }
};

export const tagOf = ({ headers }: Request): string | null => {
  const tag = headers['x-test-tag'];
  return typeof tag === 'string' ? tag : null;
};

export const tokenOf = ({ headers }: Request): string => /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';

const prefix = 'https://www.googleapis.com/auth/';
export const manage = `${prefix}youtube.force-ssl`;
export const reads = [`${prefix}youtube.readonly`, manage, `${prefix}youtube`];
export const uploads = [`${prefix}youtube.upload`, manage, `${prefix}youtube`];
export const changes = [manage, `${prefix}youtube`];
export const analytics = [`${prefix}yt-analytics.readonly`];
export const allScopes = [
  ...['openid', `${prefix}youtube.upload`, `${prefix}youtube.readonly`, manage, `${prefix}yt-analytics.readonly`],
];

/** @throws Refusal the token is missing, has ended, or has none of the scopes */
export const accessOf = (state: State, request: Request, anyOf: readonly string[]): Access => {
  const access = state.access.get(tokenOf(request));
  if (access === undefined || (access.until ?? 0) <= state.now()) throw refuse('auth_error');
  if (!anyOf.some((scope) => access.scopes.includes(scope))) throw refuse('no_scope');
  return access;
};

export const jsonOf = ({ headers, body }: Request): Record<string, unknown> => {
  if (!(headers['content-type'] ?? '').startsWith('application/json')) throw invalid('the content type is not JSON');
  const value: unknown = JSON.parse(body.toString('utf8'));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('the body is no object');
  return value as Record<string, unknown>;
};

export const formOf = ({ headers, body }: Request): Record<string, string> => {
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') throw invalid('this is no form');
  return Object.fromEntries(new URLSearchParams(body.toString('utf8')));
};

/** Exactly these parameters; an optional one has a question mark behind its name. */
export const queryOf = ({ query }: Request, ...names: readonly string[]): Readonly<Record<string, string>> => {
  const found: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!names.includes(name) && !names.includes(`${name}?`)) throw invalid(`${name} is no parameter of this call`);
    if (name in found) throw invalid(`${name} comes twice`);
    found[name] = value;
  }
  for (const name of names) if (!name.endsWith('?') && !(name in found)) throw invalid(`${name} is required`);
  return found;
};

export const partsOf = (part: string | undefined, ...known: readonly string[]): readonly string[] => {
  const parts = (part ?? '').split(',');
  for (const one of parts) if (!known.includes(one)) throw invalid(`part: ${one} is none of this resource`);
  return parts;
};

/** Only members of the parts that the call names are read, and others are refused. */
export const resourceIn = (body: Record<string, unknown>, parts: readonly string[]): Resource => {
  for (const name of Object.keys(body)) {
    if (name !== 'id' && !parts.includes(name)) throw invalid(`${name} is not among the parts`);
  }
  return body as Resource;
};

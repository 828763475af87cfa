import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { badToken, invalid, refuse } from './answer.ts';
import type { Access, State } from './state.ts';

/** One call as the routes see it: Graph takes parameters in the address, in a form, and in one with a file alike. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** By name, without the token and its proof. */
  readonly params: Readonly<Record<string, string>>;
  readonly file: { readonly name: string; readonly bytes: number; readonly sha256: string } | null;
  /** Bytes of a body that is no form. */
  readonly bytes: number;
  readonly token: string | null;
  readonly proof: string | null;
  readonly tag: string | null;
}

export interface Body {
  /** Its beginning, with the whole of every form but a large file. */
  readonly head: Buffer;
  readonly bytes: number;
}

const keptBytes = 12_000_000;

export const bodyOf = async (message: IncomingMessage): Promise<Body> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    if (bytes < keptBytes) chunks.push(chunk);
    bytes += chunk.length;
  }
  return { head: Buffer.concat(chunks), bytes };
};

/** RFC 7578. */
const partsOf = (type: string, body: Buffer) => {
  const mark = /^multipart\/form-data; boundary=([\w'()+,./:=?-]{1,70})$/.exec(type)?.[1];
  if (mark === undefined) throw invalid('The body is no form');
  const edge = Buffer.from(`\r\n--${mark}`);
  const whole = Buffer.concat([Buffer.from('\r\n'), body]);
  const parts: { readonly name: string; readonly isFile: boolean; readonly data: Buffer }[] = [];
  let at = whole.indexOf(edge);
  if (at !== 0) throw invalid('The form does not begin with its boundary');
  for (;;) {
    at += edge.length;
    if (whole.subarray(at, at + 4).equals(Buffer.from('--\r\n'))) return parts;
    const from = whole.indexOf('\r\n\r\n', at);
    const next = whole.indexOf(edge, at);
    if (from < 0 || next < from) throw invalid('The form does not end');
    const head = whole.subarray(at + 2, from).toString('utf8');
    const name = /^content-disposition: form-data; name="([^"]+)"/im.exec(head)?.[1];
    if (name === undefined) throw invalid('A part has no name');
    parts.push({ name, isFile: /filename="/.test(head), data: whole.subarray(from + 4, next) });
    at = next;
  }
};

/** @throws Refusal a parameter comes twice, or the body is no form */
export const requestOf = (message: IncomingMessage, { head, bytes }: Body): Request => {
  const { pathname: path, searchParams } = new URL(message.url ?? '/', 'http://facebook');
  const { method = 'GET', headers } = message;
  const type = headers['content-type'] ?? '';
  const params: Record<string, string> = {};
  const keep = (name: string, value: string): void => {
    if (Object.hasOwn(params, name)) throw invalid(`Param ${name} comes twice`);
    params[name] = value;
  };
  for (const [name, value] of searchParams) keep(name, value);
  let file: Request['file'] = null;
  if (/^application\/x-www-form-urlencoded(?:;|$)/.test(type)) {
    for (const [name, value] of new URLSearchParams(head.toString('utf8'))) keep(name, value);
  } else if (type.startsWith('multipart/')) {
    for (const { name, isFile, data } of partsOf(type, head)) {
      if (!isFile) keep(name, data.toString('utf8'));
      else if (file !== null) throw invalid('There are two files');
      else file = { name, bytes: data.length, sha256: createHash('sha256').update(data).digest('hex') };
    }
  } else if (bytes > 0 && !path.startsWith('/rupload/')) throw invalid('The body is no form');
  const { access_token, appsecret_proof: proof = null, ...others } = params;
  const bearer = /^(?:Bearer|OAuth) (\S+)$/.exec(headers.authorization ?? '')?.[1];
  const tag = headers['x-test-tag'];
  return {
    ...{ method, path, headers, params: others, file, bytes, proof },
    ...{ token: bearer ?? access_token ?? null, tag: typeof tag === 'string' ? tag : null },
  };
};

/** @throws Refusal the token is missing, has ended, comes without a proof, or lacks a permission */
export const accessOf = (state: State, { token, proof, path }: Request, ...scopes: readonly string[]): Access => {
  const access = token === null ? undefined : state.access.get(token);
  if (token === null || access === undefined) throw refuse('token_invalid');
  if (access.until !== null && access.until <= state.now()) throw refuse('token_ended');
  // "Require App Secret" is on. The server of files asks for none.
  if (!path.startsWith('/rupload/') && proof !== state.proofOf(token)) throw refuse('no_proof');
  const missing = scopes.find((scope) => !access.scopes.includes(scope));
  if (missing !== undefined) throw badToken(200, `(#200) Requires ${missing} permission to manage the object`);
  return access;
};

/** The call with the page's own token. */
export const pageOf = (state: State, request: Request, id: string, ...scopes: readonly string[]): Access => {
  const access = accessOf(state, request, ...scopes);
  if (access.pageId !== id) throw refuse('object_missing');
  return access;
};

/** What no app made since 2026-11-04 may use, whatever it is for. */
const closed = ['ids', 'date_format', 'method', 'callback', 'batch', 'asyncbatch'];

/** @throws Refusal a parameter is not one of these, or one is missing */
export const paramsAre = (
  params: Request['params'],
  names: readonly string[],
  required: readonly string[] = [],
): void => {
  for (const name of Object.keys(params)) {
    if (closed.includes(name)) throw invalid(`${name} is not available to this app`);
    if (!names.includes(name) && !required.includes(name)) throw invalid(`Unknown param ${name}`);
  }
  for (const name of required) if (params[name] === undefined) throw invalid(`The parameter ${name} is required`);
};

/** Names that `fields` has, without what stands in braces and behind dots. @throws Refusal it cannot be read */
export const namesIn = (fields: string): readonly string[] => {
  const names: string[] = [];
  let [depth, name] = [0, ''];
  for (const sign of `${fields},`) {
    if (sign === '{' || sign === '(') depth += 1;
    if (sign === '}' || sign === ')') depth -= 1;
    if (depth < 0) throw invalid('Syntax error in fields');
    if (sign === ',' && depth === 0) {
      if (/\.as\(/.test(name)) throw invalid('Aliases are not available to this app');
      const own = /^\w+/.exec(name)?.[0];
      if (own === undefined) throw invalid('Syntax error in fields');
      names.push(own);
      name = '';
    } else name += sign;
  }
  if (depth !== 0) throw invalid('Syntax error in fields');
  return names;
};

/** Those that `fields` names, and the id. @throws Refusal one is not known */
export const chosen = (fields: string | undefined, all: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const names = namesIn(fields ?? 'id');
  for (const name of names) {
    if (!Object.hasOwn(all, name)) throw invalid(`Tried accessing nonexisting field (${name})`);
  }
  return Object.fromEntries(names.concat('id').flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
};

export const whole = (text: string | undefined, name: string, min: number, max: number): number | null => {
  if (text === undefined) return null;
  if (!/^\d+$/.test(text) || Number(text) < min || Number(text) > max) throw invalid(`Param ${name} is out of range`);
  return Number(text);
};

/** A list with the cursors of its page; what is filtered out of a page is not made up for. */
export const pageOfList = (
  state: State,
  { params, path }: Request,
  all: readonly object[],
  origin: string,
): { readonly data: readonly object[]; readonly paging?: object } => {
  const limit = whole(params.limit, 'limit', 1, 100) ?? 25;
  const begin = params.after === undefined ? 0 : Number(Buffer.from(params.after, 'base64url').toString('utf8'));
  const data = all.slice(begin, begin + Math.min(limit, state.maxPage));
  const cursor = (place: number): string => Buffer.from(String(place)).toString('base64url');
  const end = begin + data.length;
  if (data.length === 0) return { data };
  const next = end < all.length ? { next: `${origin}${path}?after=${cursor(end)}` } : {};
  return { data, paging: { cursors: { before: cursor(begin), after: cursor(end) }, ...next } };
};

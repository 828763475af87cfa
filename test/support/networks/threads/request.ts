import type { IncomingMessage } from 'node:http';
import { invalid, Refusal, refuse } from './answer.ts';
import type { Access, State } from './state.ts';

/** One call as the routes see it: Threads takes parameters in the address and in a form alike. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Parameters by name, without the token. */
  readonly params: Readonly<Record<string, string>>;
  readonly token: string | null;
}

const maxBytes = 1_000_000;

export const bytesOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    length += (chunk as Buffer).length;
    if (length <= maxBytes) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
};

/** @throws Refusal a parameter comes twice, or the body is no form */
export const requestOf = (message: IncomingMessage, body: Buffer): Request => {
  const { pathname: path, searchParams } = new URL(message.url ?? '/', 'http://threads');
  const { method = 'GET', headers } = message;
  const params: Record<string, string> = {};
  const isForm = /^application\/x-www-form-urlencoded(?:;|$)/.test(headers['content-type'] ?? '');
  if (body.length > 0 && !isForm) throw invalid('The body is no form');
  for (const [name, value] of [...searchParams, ...new URLSearchParams(isForm ? body.toString('utf8') : '')]) {
    if (Object.hasOwn(params, name)) throw invalid(`Param ${name} comes twice`);
    params[name] = value;
  }
  const { access_token, ...others } = params;
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
  const isOfTokens = !path.startsWith('/v1.0/');
  return { method, path, headers, params: isOfTokens ? params : others, token: bearer ?? access_token ?? null };
};

/** @throws Refusal the token is missing, has ended, or lacks a permission */
export const accessOf = (state: State, { token }: Request, ...scopes: readonly string[]): Access => {
  const access = token === null ? undefined : state.access.get(token);
  if (access === undefined) throw refuse('token_invalid');
  if (access.until <= state.now()) throw refuse('token_expired');
  if (!['threads_basic', ...scopes].every((scope) => access.scopes.includes(scope))) throw refuse('no_permission');
  return access;
};

/** @throws Refusal a parameter is not one of these, or one is missing */
export const paramsAre = (
  params: Request['params'],
  names: readonly string[],
  required: readonly string[] = [],
): void => {
  for (const name of Object.keys(params)) {
    if (!names.includes(name) && !required.includes(name)) throw invalid(`Unknown param ${name}`);
  }
  for (const name of required) if (params[name] === undefined) throw invalid(`Param ${name} is required`);
};

/** Those that `fields` names. @throws Refusal one is not known */
export const chosen = (fields: string | undefined, all: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const names = (fields ?? 'id').split(',');
  for (const name of names) {
    if (!Object.hasOwn(all, name)) throw invalid(`Tried accessing nonexisting field (${name})`);
  }
  return Object.fromEntries(names.concat('id').flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));
};

export { Refusal };

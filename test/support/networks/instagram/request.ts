import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { badExchange, invalid, Refusal, refuse } from './answer.ts';
import type { Access, Host, State } from './state.ts';

/** One call as the routes see it: parameters come in the address and in a form alike. */
export interface Request {
  /** Null: a page, or the server that gives tokens of Instagram. */
  readonly host: Host | null;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Parameters by name, without the token and its proof. */
  readonly params: Readonly<Record<string, string>>;
  readonly token: string | null;
  readonly proof: string | null;
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

/** "Introducing Graph API v27.0": closed to apps made since 2026-11-04. */
const closed = ['ids', 'date_format', 'method', 'callback', 'asyncbatch', 'batch'];

/** @throws Refusal a parameter comes twice, the body is no form, or the call uses what is closed to new apps */
export const requestOf = (message: IncomingMessage, body: Buffer): Request => {
  const { pathname: path, searchParams } = new URL(message.url ?? '/', 'http://instagram');
  const { method = 'GET', headers } = message;
  const params: Record<string, string> = {};
  const isForm = /^application\/x-www-form-urlencoded(?:;|$)/.test(headers['content-type'] ?? '');
  if (body.length > 0 && !isForm) throw invalid('The body is no form');
  for (const [name, value] of [...searchParams, ...new URLSearchParams(isForm ? body.toString('utf8') : '')]) {
    if (Object.hasOwn(params, name)) throw invalid(`Param ${name} comes twice`);
    params[name] = value;
  }
  const host = path.startsWith('/ig/') ? 'ig' : path.startsWith('/fb/') ? 'fb' : null;
  for (const name of Object.keys(params)) {
    if (host !== null && closed.includes(name)) throw invalid(`${name} is not available to this app`);
  }
  if (/\.as\(/.test(params.fields ?? '')) throw invalid('aliases of fields are not available to this app');
  const { access_token, appsecret_proof, ...others } = params;
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
  const isOfTokens = host === null || /access_token$/.test(path);
  return {
    ...{ host, method, path, headers, params: isOfTokens ? params : others },
    ...{ token: bearer ?? access_token ?? null, proof: appsecret_proof ?? null },
  };
};

/** "Require App Secret": with a wrong proof nothing works, and the app of Facebook is set to want one. */
const checkProof = (state: State, { host, proof, token }: Request): void => {
  if (host !== 'fb') {
    if (proof !== null) throw invalid('Unknown param appsecret_proof');
    return;
  }
  const right = createHmac('sha256', state.metaApp.clientSecret)
    .update(token ?? '')
    .digest('hex');
  if (proof !== right) throw badExchange('Invalid appsecret_proof provided in the API argument');
};

/** Whether the owner gave a permission, by the name that the login has for it. */
const names: Readonly<Record<Host, Readonly<Record<string, string>>>> = {
  ig: {
    ...{ basic: 'instagram_business_basic', publish: 'instagram_business_content_publish' },
    ...{ comments: 'instagram_business_manage_comments', insights: 'instagram_business_manage_insights' },
  },
  fb: {
    ...{ basic: 'instagram_basic', publish: 'instagram_content_publish' },
    ...{ comments: 'instagram_manage_comments', insights: 'instagram_manage_insights' },
  },
};
export type Right = 'basic' | 'publish' | 'comments' | 'insights';

/** @throws Refusal the token is missing, has ended, is of the other host, or lacks a permission */
export const accessOf = (state: State, request: Request, ...rights: readonly Right[]): Access => {
  const { token, host } = request;
  const access = token === null ? undefined : state.access.get(token);
  if (access === undefined || access.host !== host) throw refuse('token_invalid');
  if (access.until !== null && access.until <= state.now()) throw refuse('token_expired');
  checkProof(state, request);
  for (const right of ['basic', ...rights] as const) {
    if (access.scopes.includes(names[host][right] ?? '')) continue;
    throw refuse(right === 'publish' ? 'no_publish' : 'no_permission');
  }
  return access;
};

/** @throws Refusal a parameter is not one of these, or one is missing */
export const paramsAre = (
  params: Request['params'],
  known: readonly string[],
  required: readonly string[] = [],
): void => {
  for (const name of Object.keys(params)) {
    if (!known.includes(name) && !required.includes(name)) throw invalid(`Unknown param ${name}`);
  }
  for (const name of required) if (params[name] === undefined) throw invalid(`Param ${name} is required`);
};

/** Names of `fields`, without the members that braces ask for. */
const fieldsOf = (fields: string | undefined): readonly string[] =>
  (fields ?? 'id').replaceAll(/\{[^{}]*\}/g, '').split(',');

/** Those that `fields` names. @throws Refusal one is not known */
export const chosen = (fields: string | undefined, all: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const wanted = fieldsOf(fields);
  for (const name of wanted) {
    if (!Object.hasOwn(all, name)) throw invalid(`Tried accessing nonexisting field (${name})`);
  }
  return Object.fromEntries(
    wanted.concat('id').flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])),
  );
};

export { Refusal };

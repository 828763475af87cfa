import type { IncomingMessage } from 'node:http';
import { invalid, refuse } from './answer.ts';
import type { Access, Person, State } from './state.ts';

/** One call as the routes see it. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const maxBytes = 128_000_000;

export const bytesOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    length += (chunk as Buffer).length;
    if (length <= maxBytes) chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
};

export const tokenOf = ({ headers }: Pick<Request, 'headers'>): string =>
  /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';

/** @throws Refusal the token is missing, has ended, or lacks a scope */
export const accessOf = (state: State, request: Request, ...scopes: readonly string[]): Access => {
  const access = state.access.get(tokenOf(request));
  if (access === undefined || access.until <= state.now()) throw refuse('access_token_invalid');
  if (scopes.some((scope) => !access.scopes.includes(scope))) throw refuse('scope_not_authorized');
  return access;
};

export const personOf = (state: State, request: Request, ...scopes: readonly string[]): Person => {
  const person = state.people.get(accessOf(state, request, ...scopes).personId);
  if (person === undefined) throw refuse('access_token_invalid');
  return person;
};

/** "Content-Type: application/json; charset=UTF-8" */
export const jsonOf = ({ headers, body }: Request): unknown => {
  if (!/^application\/json; charset=utf-8$/i.test(headers['content-type'] ?? '')) {
    throw invalid('Only Content-Type: application/json; charset=UTF-8 is supported');
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw invalid('The body is no JSON');
  }
};

export const single = (query: URLSearchParams): Record<string, string> => {
  const members: Record<string, string> = {};
  for (const [name, value] of query) {
    if (Object.hasOwn(members, name)) throw invalid(`'${name}' comes twice`);
    members[name] = value;
  }
  return members;
};

/** `fields` of the address. @throws Refusal one is not known, or there is another parameter */
export const fieldsOf = ({ query }: Request, known: readonly string[]): readonly string[] => {
  const { fields, ...others } = single(query);
  const names = (fields ?? '').split(',');
  if (Object.keys(others).length > 0 || names.some((one) => !known.includes(one))) {
    throw invalid('One or more fields in request is invalid.');
  }
  return names;
};

/**
 * X, API v2, over real HTTP on this machine: written from its published contract (OpenAPI 2.167) and guides, not from our
 * adapter. What the contract does not have fails the call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, problems, Refusal } from './answer.ts';
import { counted } from './buckets.ts';
import { authorizePage, revokeEndpoint, tokenEndpoint } from './consent.ts';
import { append, describe, finalize, initialize, status, uploadOnce } from './media.ts';
import { lookUp, me, timeline } from './reads.ts';
import { bytesOf, type Request } from './request.ts';
import { type Fault, type Person, State, type XNetworkOptions } from './state.ts';
import { createTweet, deleteTweet } from './tweets.ts';

export { type ProblemName, problems } from './answer.ts';
export type { Fault, Person, Processing } from './state.ts';

type Route = (state: State, request: Request, id: string) => Answer;

const routes: Readonly<Record<string, Route>> = {
  'GET /i/oauth2/authorize': authorizePage,
  'POST /2/oauth2/token': tokenEndpoint,
  'POST /2/oauth2/revoke': revokeEndpoint,
  'POST /2/tweets': createTweet,
  'GET /2/tweets': lookUp,
  'DELETE /2/tweets/:id': deleteTweet,
  'GET /2/users/me': me,
  'GET /2/users/:id/tweets': timeline,
  'POST /2/media/upload': uploadOnce,
  'GET /2/media/upload': status,
  'POST /2/media/upload/initialize': initialize,
  'POST /2/media/upload/:id/append': append,
  'POST /2/media/upload/:id/finalize': finalize,
  'POST /2/media/metadata': describe,
};

const allScopes = ['tweet.read', 'tweet.write', 'users.read', 'media.write', 'offline.access'];

export interface XNetwork {
  readonly origin: string;
  readonly state: State;
  /** Somebody with an account. */
  person(over?: Partial<Omit<Person, 'id'>>): Person;
  /** Tokens as a consent of that person gives them. */
  grant(person: Person, scopes?: readonly string[]): { readonly accessToken: string; readonly refreshToken: string };
  script(fault: Fault): void;
  close(): void;
}

export const startX = async (options: XNetworkOptions = {}): Promise<XNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((message, response) => {
    serve(state, message, response, late).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    person: (over = {}) => {
      const id = state.id();
      const made: Person = {
        ...{ id, username: `user_${id.slice(-6)}`, tier: 'self_serve', subscription: 'None' },
        ...over,
      };
      state.people.set(id, made);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => {
      const { accessToken, refreshToken } = state.grant(id, scopes);
      return { accessToken, refreshToken: refreshToken ?? '' };
    },
    script: (fault) => {
      state.faults.push({ ...fault, left: fault.times ?? 1 });
    },
    close: () => {
      for (const timer of late) clearTimeout(timer);
      server.closeAllConnections();
      server.close();
    },
  };
};

const serve = async (
  state: State,
  message: IncomingMessage,
  response: ServerResponse,
  late: Set<NodeJS.Timeout>,
): Promise<void> => {
  const body = await bytesOf(message);
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://x');
  const { method = 'GET', headers } = message;
  const request: Request = { method, path: pathname, query: searchParams, headers, body };
  const id = /^\/2\/[a-z/]+\/(\d{1,20})(?=\/|$)/.exec(pathname)?.[1] ?? '';
  const route = `${method} ${id === '' ? pathname : pathname.replace(id, ':id')}`;
  const act = (): Answer => acted(state, route, request, id);
  const send = ({ status: code, body: said, headers: more = {} }: Answer): void => {
    const isText = typeof said === 'string';
    const type = isText ? 'text/html' : code >= 400 ? 'application/problem+json' : 'application/json';
    const date = new Date(state.now()).toUTCString();
    response.sendDate = false;
    response.writeHead(code, { 'content-type': type, date, ...more });
    response.end(isText ? said : JSON.stringify(said));
  };
  const said = `${message.url ?? ''}\n${body.length < 100_000 ? body.toString('utf8') : ''}`;
  const then = state.met(route, said);
  if (then === null) return send(act());
  if (typeof then === 'object' && 'answerAfter' in then) {
    act();
    return send(then.answerAfter);
  }
  if (typeof then === 'object' && 'run' in then) {
    if (then.then === 'silent_after') act();
    then.run();
    return then.then === 'act' ? send(act()) : undefined;
  }
  if (typeof then === 'object') {
    if ('lateMs' in then) late.add(setTimeout(act, then.lateMs));
    else note(state, route, request, then.answer);
    return send(then.answer);
  }
  if (then.endsWith('_after')) act();
  if (then.startsWith('drop')) response.destroy();
};

const personOf = (state: State, { headers }: Request): string | null =>
  state.access.get((headers.authorization ?? '').replace('Bearer ', ''))?.personId ?? null;

/** The network's own answer, written down. */
const acted = (state: State, route: string, request: Request, id: string): Answer => {
  const answer = answered(state, route, request, id);
  note(state, route, request, answer);
  return answer;
};

const note = (state: State, route: string, request: Request, { status: code, body }: Answer): void => {
  const { method, path, query, headers } = request;
  const personId = personOf(state, request);
  state.calls.push({ method, path, query: query.toString(), personId, status: code });
  if (route !== 'POST /2/tweets') return;
  const { data } = body as { data?: { id?: string } };
  const tag = headers['x-test-tag'];
  state.creates.push({
    ...{ personId, tag: typeof tag === 'string' ? tag : null, status: code, postId: data?.id ?? null },
    body: parsedOr(request.body),
  });
};

const parsedOr = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return body.toString('utf8');
  }
};

const answered = (state: State, route: string, request: Request, id: string): Answer => {
  let headers: Readonly<Record<string, string>> = {};
  try {
    const act = routes[route];
    if (act === undefined) throw new Refusal({ ...problems.not_found, status: 404 });
    if (route.includes('oauth2')) return act(state, request, id);
    const personId = personOf(state, request);
    if (personId !== null && state.isUnpaid) throw new Refusal(problems.credits_depleted);
    if (personId !== null) headers = counted(state, route, personId);
    const answer = act(state, request, id);
    return { ...answer, headers: { ...headers, ...answer.headers } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { ...error.answer, headers: { ...headers, ...error.answer.headers } };
  }
};

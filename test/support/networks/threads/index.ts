/**
 * Threads, API v1.0, over real HTTP on this machine: written from its documents, its collection of calls and reports of
 * production, not from our adapter. What the documents do not have fails the call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, problems, Refusal } from './answer.ts';
import { authorizePage, longToken, refreshToken, shortToken } from './consent.ts';
import { createContainer, publishContainer, showContainer } from './containers.ts';
import {
  deletePost,
  listPosts,
  listReplies,
  postInsights,
  showPerson,
  showPost,
  showQuota,
  userInsights,
} from './reads.ts';
import { bytesOf, type Request, requestOf } from './request.ts';
import { type Fault, type Person, State, type ThreadsNetworkOptions } from './state.ts';

export { type ProblemName, problems } from './answer.ts';
export type { Fault, Person } from './state.ts';

type Route = (state: State, request: Request, id: string) => Answer | Promise<Answer>;

/** A container, a post or a person has the same address. */
const showNode: Route = (state, request, id) => {
  const container = state.containers.get(id);
  if (container !== undefined) return showContainer(state, request, container);
  return id === 'me' || state.people.has(id) ? showPerson(state, request, id) : showPost(state, request, id);
};

const routes: Readonly<Record<string, Route>> = {
  'GET /oauth/authorize': authorizePage,
  'POST /oauth/access_token': shortToken,
  'GET /access_token': longToken,
  'GET /refresh_access_token': refreshToken,
  'GET /:id': showNode,
  'DELETE /:id': deletePost,
  'POST /:id/threads': createContainer,
  'GET /:id/threads': listPosts,
  'GET /:id/replies': listReplies,
  'POST /:id/threads_publish': publishContainer,
  'GET /:id/threads_publishing_limit': showQuota,
  'GET /:id/insights': postInsights,
  'GET /:id/threads_insights': userInsights,
};

export const allScopes = [
  ...['threads_basic', 'threads_content_publish', 'threads_manage_replies', 'threads_read_replies'],
  ...['threads_manage_insights', 'threads_delete'],
];

export interface ThreadsNetwork {
  readonly origin: string;
  readonly state: State;
  /** Somebody with an account. */
  person(over?: Partial<Omit<Person, 'id'>>): Person;
  /** The long-lived token that a consent of that person ends with. */
  grant(person: Person, scopes?: readonly string[]): string;
  script(fault: Fault): void;
  close(): void;
}

export const startThreads = async (options: ThreadsNetworkOptions = {}): Promise<ThreadsNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((message, response) => {
    serve(state, message, response, late).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    ...{ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, state },
    person: (over = {}) => {
      const id = state.id();
      const made: Person = { id, username: `user_${id.slice(-6)}`, isLinked: true, followers: 1_234, ...over };
      state.people.set(id, made);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => state.grant(id, scopes, true),
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

const serve = async (state: State, message: IncomingMessage, response: ServerResponse, late: Set<NodeJS.Timeout>) => {
  const body = await bytesOf(message);
  const { pathname } = new URL(message.url ?? '/', 'http://threads');
  const [, version, id = '', edge] = pathname.split('/');
  const isNode = version === 'v1.0' && /^(?:me|\d+)$/.test(id);
  const path = isNode ? `/:id${edge === undefined ? '' : `/${edge}`}` : pathname;
  const route = `${message.method} ${path}`;
  const act = (): Promise<Answer> => acted(state, route, message, body, id);
  const send = ({ status, body: said, headers = {} }: Answer): void => {
    const isText = typeof said === 'string';
    response.sendDate = false;
    const type = isText ? 'text/html' : 'application/json';
    response.writeHead(status, { 'content-type': type, date: new Date(state.now()).toUTCString(), ...headers });
    response.end(isText ? said : JSON.stringify(said));
  };
  const form = body.toString('utf8');
  const named = state.containers.get(new URLSearchParams(form).get('creation_id') ?? '')?.params.text ?? '';
  const said = `${decodeURIComponent(message.url ?? '')}\n${[...new URLSearchParams(form).values()].join('\n')}\n${named}`;
  const then = state.met(route, said);
  if (then === null) return send(await act());
  if (typeof then === 'object') {
    if ('answerAfter' in then) {
      await act();
      return send(then.answerAfter);
    }
    if ('run' in then) {
      if (then.then === 'silent_after') await act();
      then.run();
      return then.then === 'act' ? send(await act()) : undefined;
    }
    if ('lateMs' in then) late.add(setTimeout(() => void act(), then.lateMs));
    else note(state, route, message, body, then.answer);
    return send(then.answer);
  }
  if (then.endsWith('_after')) await act();
  if (then.startsWith('drop')) response.destroy();
};

/** The network's own answer, written down. */
const acted = async (
  state: State,
  route: string,
  message: IncomingMessage,
  body: Buffer,
  id: string,
): Promise<Answer> => {
  const answer = await answered(state, route, message, body, id);
  note(state, route, message, body, answer);
  return answer;
};

const note = (
  state: State,
  route: string,
  message: IncomingMessage,
  body: Buffer,
  { status, body: said }: Answer,
): void => {
  const { pathname: path, searchParams } = new URL(message.url ?? '/', 'http://threads');
  const params = Object.fromEntries([...searchParams, ...new URLSearchParams(body.toString('utf8'))]);
  state.calls.push({ method: message.method ?? '', path, params, status });
  if (route !== 'POST /:id/threads_publish') return;
  const tag = message.headers['x-test-tag'];
  const container = state.containers.get(params.creation_id ?? '');
  state.publishes.push({
    ...{ personId: container?.personId ?? null, tag: typeof tag === 'string' ? tag : null, status },
    ...{ containerId: params.creation_id ?? '', postId: (said as { id?: string }).id ?? null },
  });
};

const answered = async (
  state: State,
  route: string,
  message: IncomingMessage,
  body: Buffer,
  id: string,
): Promise<Answer> => {
  try {
    const act = routes[route];
    if (act === undefined) throw new Refusal({ ...problems.object_missing, status: 404 });
    return await act(state, requestOf(message, body), id);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.answer;
  }
};

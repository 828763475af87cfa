/**
 * Pinterest, API v5, over real HTTP on this machine: written from its reference (OpenAPI 5.23.0), its guides and reports of
 * its users, not from our adapter. What the reference does not have fails the call. Where its OpenAPI description is at
 * hand, each call and each answer is held against it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, Refusal } from './answer.ts';
import { authorizePage, revokeEndpoint, tokenEndpoint } from './consent.ts';
import { contractHeld } from './contract.ts';
import { accountAnalytics, me, pinAnalytics } from './figures.ts';
import { counted } from './limits.ts';
import { look, register, store } from './media.ts';
import { createPin, deletePin, listBoards, listPins, showPin } from './pins.ts';
import { bytesOf, type Request, tokenOf } from './request.ts';
import { type Board, type Category, type Fault, type Person, type PinterestOptions, State } from './state.ts';

export { type ProblemName, problems } from './answer.ts';
export type { Board, Fault, Person } from './state.ts';

type Act = (state: State, request: Request, id: string, origin: string) => Answer;

/** `x-ratelimit-category` of the reference; null: none is counted. */
const routes: Readonly<Record<string, readonly [Act, Category | null]>> = {
  'GET /oauth/': [authorizePage, null],
  'POST /storage/': [store, null],
  'POST /v5/oauth/token': [tokenEndpoint, null],
  'POST /v5/oauth/token/revoke': [revokeEndpoint, null],
  'GET /v5/user_account': [me, 'org_read'],
  'GET /v5/user_account/analytics': [accountAnalytics, 'org_analytics'],
  'GET /v5/boards': [listBoards, 'org_read'],
  'GET /v5/boards/:id/pins': [listPins, 'org_read'],
  'POST /v5/pins': [createPin, 'org_write'],
  'GET /v5/pins/:id': [showPin, 'org_read'],
  'DELETE /v5/pins/:id': [deletePin, 'org_write'],
  'GET /v5/pins/:id/analytics': [pinAnalytics, 'org_analytics'],
  'POST /v5/media': [register, 'org_write'],
  'GET /v5/media/:id': [look, 'org_read'],
};

export const allScopes = ['user_accounts:read', 'boards:read', 'boards:write', 'pins:read', 'pins:write'];

export interface PinterestNetwork {
  readonly origin: string;
  /** As `PINTEREST_API` has it. */
  readonly api: string;
  /** As `PINTEREST_AUTHORIZE` has it. */
  readonly authorize: string;
  readonly state: State;
  /** Somebody with an account. */
  person(over?: Partial<Omit<Person, 'id'>>): Person;
  board(owner: Person, over?: Partial<Omit<Board, 'id' | 'ownerId'>>): Board;
  /** Tokens as a consent of that person gives them. */
  grant(person: Person, scopes?: readonly string[]): { readonly accessToken: string; readonly refreshToken: string };
  script(fault: Fault): void;
  /** @throws Error that says what the published contract refuses of the calls and answers */
  close(): void;
}

export const startPinterest = async (options: PinterestOptions = {}): Promise<PinterestNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((message, response) => {
    serve({ state, late, origin: () => origin }, message, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, state, api: `${origin}/v5`, authorize: `${origin}/oauth/` },
    person: (over = {}) => {
      const id = state.id();
      const made: Person = {
        ...{ id, username: `user_${id.slice(-6)}`, businessName: null, accountType: 'BUSINESS' },
        ...over,
      };
      state.people.set(id, made);
      return made;
    },
    board: (owner, over = {}) => {
      const id = state.id();
      const usual = { name: `Board ${id.slice(-6)}`, privacy: 'PUBLIC', collaborators: [], at: state.now() } as const;
      const made: Board = { ...{ id, ownerId: owner.id }, ...usual, ...over };
      state.boards.set(id, made);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => state.grant(id, scopes),
    script: (fault) => {
      state.faults.push({ ...fault, left: fault.times ?? 1 });
    },
    close: () => {
      for (const timer of late) clearTimeout(timer);
      server.closeAllConnections();
      server.close();
      if (state.violations.length > 0) throw new Error(`against the contract:\n${state.violations.join('\n')}`);
    },
  };
};

interface Serving {
  readonly state: State;
  readonly late: Set<NodeJS.Timeout>;
  readonly origin: () => string;
}

const serve = async (serving: Serving, message: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { state, late } = serving;
  const body = await bytesOf(message);
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://pinterest');
  const { method = 'GET', headers } = message;
  const request: Request = { method, path: pathname, query: searchParams, headers, body };
  const id = /^\/v5\/[a-z_]+\/(\d{1,30})(?=\/|$)/.exec(pathname)?.[1] ?? '';
  const route = `${method} ${id === '' ? pathname : pathname.replace(id, ':id')}`;
  const act = (): Answer => acted(serving, route, request, id);
  const send = ({ status: code, body: said, headers: more = {} }: Answer): void => {
    const isText = typeof said === 'string';
    const date = new Date(state.now()).toUTCString();
    response.sendDate = false;
    response.writeHead(code, { 'content-type': isText ? 'text/html' : 'application/json', date, ...more });
    response.end(code === 204 ? undefined : isText ? said : JSON.stringify(said));
  };
  const said = `${message.url ?? ''}\n${body.length < 1_000_000 ? body.toString('utf8') : ''}`;
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
    else {
      note(state, route, request, then.answer);
      state.violations.push(...contractHeld(request, [], null));
    }
    return send(then.answer);
  }
  if (then.endsWith('_after')) act();
  if (then.startsWith('drop')) response.destroy();
};

const personOf = (state: State, request: Request): string | null =>
  state.access.get(tokenOf(request))?.personId ?? null;

/** The network's own answer, written down and held against the contract. */
const acted = (serving: Serving, route: string, request: Request, id: string): Answer => {
  const { state } = serving;
  const access = state.access.get(tokenOf(request));
  const answer = answered(serving, route, request, id);
  note(state, route, request, answer);
  state.violations.push(...contractHeld(request, access?.scopes ?? [], answer));
  return answer;
};

const note = (state: State, route: string, request: Request, { status: code, body }: Answer): void => {
  const { method, path, query, headers } = request;
  const personId = personOf(state, request);
  state.calls.push({ method, path, query: query.toString(), personId, status: code });
  if (route !== 'POST /v5/pins') return;
  const tag = headers['x-test-tag'];
  state.creates.push({
    ...{ personId, tag: typeof tag === 'string' ? tag : null, status: code },
    ...{ pinId: (body as { id?: string }).id ?? null, body: parsedOr(request.body) },
  });
};

const parsedOr = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return body.toString('utf8');
  }
};

const answered = ({ state, origin }: Serving, route: string, request: Request, id: string): Answer => {
  let headers: Readonly<Record<string, string>> = {};
  try {
    const [act, category] = routes[route] ?? [];
    if (act === undefined) throw new Refusal({ status: 404, body: { code: 404, message: 'No such path.' } });
    const personId = personOf(state, request);
    if (category !== undefined && category !== null && personId !== null) headers = counted(state, category, personId);
    const answer = act(state, request, id, origin());
    return { ...answer, headers: { ...headers, ...answer.headers } };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { ...error.answer, headers: { ...headers, ...error.answer.headers } };
  }
};

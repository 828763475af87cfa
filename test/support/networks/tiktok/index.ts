/**
 * TikTok, API v2, over real HTTP on this machine: written from its documents (there is no contract to read by machine) and
 * reports of its users, not from our adapter. What the documents do not name fails the call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, invalid, Refusal, textOf } from './answer.ts';
import { allScopes, authorizePage, revokeEndpoint, tokenEndpoint } from './consent.ts';
import { contentInit, creatorInfo, postOfUpload, putPart, statusFetch, videoInit } from './posts.ts';
import { listVideos, queryVideos, userInfo } from './reads.ts';
import { bytesOf, type Request, tokenOf } from './request.ts';
import { type Fault, type Person, State, type TikTokOptions } from './state.ts';

export { type ProblemName, problems, withStatus } from './answer.ts';
export { allScopes } from './consent.ts';
export type { Fault, Person, Post } from './state.ts';

type Act = (state: State, request: Request, origin: string) => Answer | Promise<Answer>;

const routes: Readonly<Record<string, Act>> = {
  'GET /v2/auth/authorize/': authorizePage,
  'POST /v2/oauth/token/': tokenEndpoint,
  'POST /v2/oauth/revoke/': revokeEndpoint,
  'GET /v2/user/info/': userInfo,
  'POST /v2/post/publish/creator_info/query/': creatorInfo,
  'POST /v2/post/publish/video/init/': videoInit,
  'POST /v2/post/publish/content/init/': contentInit,
  'POST /v2/post/publish/status/fetch/': statusFetch,
  'POST /v2/video/list/': listVideos,
  'POST /v2/video/query/': queryVideos,
  'PUT /video/': putPart,
};

export interface TikTokNetwork {
  readonly origin: string;
  /** As `TIKTOK_API` has it. */
  readonly api: string;
  /** As `TIKTOK_AUTHORIZE` has it. */
  readonly authorize: string;
  readonly state: State;
  /** Somebody with an account. */
  person(over?: Partial<Omit<Person, 'id'>>): Person;
  /** Tokens as a consent of that person gives them. */
  grant(person: Person, scopes?: readonly string[]): { readonly accessToken: string; readonly refreshToken: string };
  script(fault: Fault): void;
  /** Looks for the proof of an address, as the page of the app does. @throws Error: it is not there */
  prove(prefix: string, token: string): Promise<void>;
  close(): void;
}

export const startTikTok = async (options: TikTokOptions = {}): Promise<TikTokNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((message, response) => {
    serve({ state, late, origin: () => origin }, message, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, state, api: `${origin}/v2`, authorize: `${origin}/v2/auth/authorize/` },
    person: (over = {}) => {
      const number = state.id();
      const made: Person = {
        ...{ id: `-000${number}`, username: `user_${number.slice(-6)}`, nickname: `User ${number.slice(-6)}` },
        ...{ isPrivate: false, noComment: false, noDuet: false, noStitch: false, maxSeconds: 600 },
        ...{ followers: 12_045, postsADay: null, isBanned: false, ...over },
      };
      state.people.set(made.id, made);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => state.grant(id, scopes),
    script: (fault) => {
      state.faults.push({ ...fault, left: fault.times ?? 1 });
    },
    prove: async (prefix, token) => {
      const answer = await fetch(`${prefix}tiktok${token}.txt`, { redirect: 'manual' });
      const said = (await answer.text()).trim();
      if (answer.status !== 200 || said !== `tiktok-developers-site-verification=${token}`) {
        throw new Error(`no proof below ${prefix}: ${answer.status} ${said.slice(0, 100)}`);
      }
      state.proven.push(prefix);
    },
    close: () => {
      for (const timer of late) clearTimeout(timer);
      server.closeAllConnections();
      server.close();
    },
  };
};

interface Serving {
  readonly state: State;
  readonly late: Set<NodeJS.Timeout>;
  readonly origin: () => string;
}

/** What a fault may look for: the call, and the text of the post that it is about. */
const saidOf = (state: State, { query, body, path }: Request): string => {
  const text = body.length < 100_000 ? body.toString('utf8') : '';
  const id = /"publish_id":"([^"]+)"/.exec(text)?.[1];
  const post = state.posts.find(({ publishId }) => publishId === id) ?? postOfUpload(state, query);
  return [path, query.toString(), text, post?.info.title ?? '', post?.info.description ?? ''].join('\n');
};

const serve = async (serving: Serving, message: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { state, late } = serving;
  const body = await bytesOf(message);
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://tiktok');
  const { method = 'GET', headers } = message;
  const request: Request = { method, path: pathname, query: searchParams, headers, body };
  const route = `${method} ${pathname}`;
  const act = (): Promise<Answer> => acted(serving, route, request);
  const send = ({ status, body: said, headers: more = {} }: Answer): void => {
    const isText = typeof said === 'string';
    response.sendDate = false;
    const date = new Date(state.now()).toUTCString();
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', date, ...more });
    response.end(isText ? said : textOf(said));
  };
  const then = state.met(route, saidOf(state, request));
  if (then === null) return send(await act());
  if (typeof then === 'object' && 'answerAfter' in then) {
    await act();
    return send(then.answerAfter);
  }
  if (typeof then === 'object' && 'run' in then) {
    if (then.then === 'silent_after') await act();
    then.run();
    return (then.then ?? 'act') === 'act' ? send(await act()) : undefined;
  }
  if (typeof then === 'object') {
    if ('lateMs' in then) late.add(setTimeout(() => void act(), then.lateMs));
    else note(state, request, then.answer);
    return send(then.answer);
  }
  if (then.endsWith('_after')) await act();
  if (then.startsWith('drop')) response.destroy();
};

const note = (state: State, request: Request, { status }: Answer): void => {
  const { method, path } = request;
  state.calls.push({ method, path, personId: state.access.get(tokenOf(request))?.personId ?? null, status });
};

/** The network's own answer, written down. */
const acted = async ({ state, origin }: Serving, route: string, request: Request): Promise<Answer> => {
  const answer = await answered(state, route, request, origin());
  note(state, request, answer);
  return answer;
};

const answered = async (state: State, route: string, request: Request, origin: string): Promise<Answer> => {
  try {
    const act = routes[route];
    if (act === undefined) throw invalid(`There is no ${route}`);
    return await act(state, request, origin);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.answer;
  }
};

/**
 * Instagram by both of its logins, Graph API v27, over real HTTP on this machine: written from its documents, the names of
 * Meta's own SDK and reports of production, not from our adapter. What the documents do not have fails the call. The hosts are
 * folders of one: `/ig` is graph.instagram.com, `/fb` graph.facebook.com, `/tokens` api.instagram.com, `/www` the pages.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, problems, Refusal } from './answer.ts';
import {
  authorizePage,
  businesses,
  clientPages,
  dialogPage,
  exchange,
  longToken,
  myPages,
  ownedPages,
  permissions,
  refreshToken,
  revoke,
  shortToken,
  showLogin,
  showPage,
} from './consent.ts';
import { createContainer, publishContainer, showContainer } from './containers.ts';
import {
  deleteMedia,
  listMedia,
  listStories,
  mediaInsights,
  showMedia,
  showPerson,
  showQuota,
  userInsights,
  writeComment,
} from './reads.ts';
import { bytesOf, type Request, requestOf } from './request.ts';
import {
  type Fault,
  type Holder,
  type Host,
  type InstagramNetworkOptions,
  type Page,
  type Person,
  State,
} from './state.ts';

export { type ProblemName, problems } from './answer.ts';
export type { Fault, Holder, Page, Person } from './state.ts';

type Route = (state: State, request: Request, id: string) => Answer | Promise<Answer>;

/** Everything with an id has the same address. */
const showNode: Route = (state, request, id) => {
  const container = state.containers.get(id);
  if (container !== undefined) return showContainer(state, request, container);
  if (id === 'me') return request.host === 'ig' ? showPerson(state, request, id) : showLogin(state, request);
  const page = request.host === 'fb' ? state.pageOf(id) : null;
  if (page !== null) return showPage(state, request, page);
  return state.people.has(id) ? showPerson(state, request, id) : showMedia(state, request, id);
};

const insights: Route = (state, request, id) =>
  state.people.has(id) ? userInsights(state, request, id) : mediaInsights(state, request, id);

const routes: Readonly<Record<string, Route>> = {
  'GET /www/instagram/oauth/authorize': authorizePage,
  'GET /www/facebook/v27.0/dialog/oauth': dialogPage,
  'POST /tokens/oauth/access_token': shortToken,
  'GET /ig/access_token': longToken,
  'GET /ig/refresh_access_token': refreshToken,
  'GET /fb/v27.0/oauth/access_token': exchange,
  'GET /:id': showNode,
  'DELETE /:id': deleteMedia,
  'POST /:id/media': createContainer,
  'GET /:id/media': listMedia,
  'GET /:id/stories': listStories,
  'POST /:id/media_publish': publishContainer,
  'GET /:id/content_publishing_limit': showQuota,
  'POST /:id/comments': writeComment,
  'GET /:id/insights': insights,
  'GET /:id/accounts': myPages,
  'GET /:id/permissions': permissions,
  'DELETE /:id/permissions': revoke,
  'GET /:id/businesses': businesses,
  'GET /:id/owned_pages': ownedPages,
  'GET /:id/client_pages': clientPages,
};

export const scopesOf: Readonly<Record<Host, readonly string[]>> = {
  ig: [
    ...['instagram_business_basic', 'instagram_business_content_publish', 'instagram_business_manage_comments'],
    'instagram_business_manage_insights',
  ],
  fb: [
    ...['instagram_basic', 'instagram_content_publish', 'instagram_manage_comments', 'instagram_manage_insights'],
    ...['pages_show_list', 'pages_read_engagement', 'business_management'],
  ],
};

export interface InstagramNetwork {
  readonly origin: string;
  readonly state: State;
  /** The settings with which an installation finds it: of the app of Instagram, and of the Meta app. */
  readonly env: Readonly<Record<Host, Readonly<Record<string, string>>>>;
  /** Somebody with a professional account. */
  person(over?: Partial<Omit<Person, 'id'>>): Person;
  /** A page, and the account that is linked to it. */
  page(account: Person | null, name?: string): Page;
  /** Somebody with a login of Facebook. */
  holder(over?: Partial<Omit<Holder, 'id'>>): Holder;
  script(fault: Fault): void;
  close(): void;
}

export const startInstagram = async (options: InstagramNetworkOptions = {}): Promise<InstagramNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  const server = createServer((message, response) => {
    serve(state, message, response, late).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, state },
    env: {
      ig: {
        ...{ INSTAGRAM_API: `${origin}/ig`, INSTAGRAM_TOKENS: `${origin}/tokens` },
        INSTAGRAM_AUTHORIZE: `${origin}/www/instagram/oauth/authorize`,
        ...{ INSTAGRAM_CLIENT_ID: state.app.clientId, INSTAGRAM_CLIENT_SECRET: state.app.clientSecret },
      },
      fb: {
        ...{ FACEBOOK_API: `${origin}/fb`, FACEBOOK_AUTHORIZE: `${origin}/www/facebook` },
        ...{ FACEBOOK_CLIENT_ID: state.metaApp.clientId, FACEBOOK_CLIENT_SECRET: state.metaApp.clientSecret },
        FACEBOOK_SCOPES: [...scopesOf.fb, 'pages_manage_posts'].join(' '),
      },
    },
    person: (over = {}) => {
      const id = state.id();
      const names = { scopedId: state.id(), username: `user_${id.slice(-6)}` };
      const made: Person = { id, ...names, accountType: 'BUSINESS', followers: 1_234, ...over };
      state.people.set(id, made);
      return made;
    },
    page: (account, name = 'The Café') => ({ id: state.id(), name, account }),
    holder: (over = {}) => {
      const made: Holder = { id: state.id(), pages: [], businesses: [], ...over };
      state.holders.set(made.id, made);
      return made;
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

const serve = async (state: State, message: IncomingMessage, response: ServerResponse, late: Set<NodeJS.Timeout>) => {
  const body = await bytesOf(message);
  const { pathname } = new URL(message.url ?? '/', 'http://instagram');
  const [, host, version, id = '', edge] = pathname.split('/');
  const isNode = (host === 'ig' || host === 'fb') && version === 'v27.0' && /^(?:me|\d+)$/.test(id);
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
  const form = new URLSearchParams(body.toString('utf8'));
  const named = state.containers.get(form.get('creation_id') ?? '')?.params.caption ?? '';
  const said = `${decodeURIComponent(message.url ?? '')}\n${[...form.values()].join('\n')}\n${named}`;
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
  const { pathname: path, searchParams } = new URL(message.url ?? '/', 'http://instagram');
  const params = Object.fromEntries([...searchParams, ...new URLSearchParams(body.toString('utf8'))]);
  const host = path.startsWith('/ig/') ? 'ig' : path.startsWith('/fb/') ? 'fb' : null;
  state.calls.push({ host, method: message.method ?? '', path, params, status });
  if (route !== 'POST /:id/media_publish') return;
  const tag = message.headers['x-test-tag'];
  state.publishes.push({
    ...{ tag: typeof tag === 'string' ? tag : null, status },
    ...{ containerId: params.creation_id ?? '', mediaId: (said as { id?: string }).id ?? null },
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

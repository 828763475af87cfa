/**
 * Facebook, Graph API v27.0, over real HTTP on this machine: written from its documents and reports of production, not from our
 * adapter. What the documents do not have fails the call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, problems, Refusal } from './answer.ts';
import {
  businesses,
  dialog,
  giveToken,
  instagramScopes,
  ownPages,
  pageScopes,
  pagesOfBusiness,
  permissions,
  showMe,
  takeBack,
} from './consent.ts';
import {
  changePost,
  deletePost,
  postComment,
  postFeed,
  postPhoto,
  postPhotoStory,
  postReel,
  postThumbnail,
  postVideo,
  postVideoStory,
  publishedPosts,
  scheduledPosts,
  stories,
  takeBytes,
} from './posts.ts';
import { pageInsights, postInsights, showNode, videoInsights } from './reads.ts';
import { type Body, bodyOf, type Request, requestOf } from './request.ts';
import { type FacebookOptions, type Fate, type Fault, type Page, type Person, State } from './state.ts';

export { type ProblemName, problems } from './answer.ts';

type Route = (state: State, request: Request, id: string, origin: string) => Answer;

const insights: Route = (state, request, id) =>
  state.pages.has(id) ? pageInsights(state, request, id) : postInsights(state, request, id);

const routes: Readonly<Record<string, Route>> = {
  'GET /dialog/oauth': dialog,
  'GET /oauth/access_token': giveToken,
  'GET /me': showMe,
  'GET /me/permissions': permissions,
  'DELETE /me/permissions': takeBack,
  'GET /me/accounts': ownPages,
  'GET /me/businesses': businesses,
  'GET /:id/owned_pages': pagesOfBusiness(false),
  'GET /:id/client_pages': pagesOfBusiness(true),
  'GET /:id': showNode,
  'POST /:id': changePost,
  'DELETE /:id': deletePost,
  'POST /:id/feed': postFeed,
  'POST /:id/photos': postPhoto,
  'POST /:id/videos': postVideo,
  'POST /:id/video_reels': postReel,
  'POST /:id/video_stories': postVideoStory,
  'POST /:id/photo_stories': postPhotoStory,
  'POST /:id/comments': postComment,
  'POST /:id/thumbnails': postThumbnail,
  'GET /:id/published_posts': publishedPosts,
  'GET /:id/scheduled_posts': scheduledPosts,
  'GET /:id/stories': stories,
  'GET /:id/insights': insights,
  'GET /:id/video_insights': videoInsights,
  'POST /video-upload/:id': takeBytes,
};

export const allScopes = [...pageScopes, ...instagramScopes];

export interface FacebookNetwork {
  readonly origin: string;
  readonly state: State;
  /** Settings with which an app finds it. */
  readonly env: Readonly<Record<string, string>>;
  person(): Person;
  page(over?: Partial<Page>): Page;
  /** A page in which somebody has every task. */
  pageOf(person: Person, over?: Partial<Page>, tasks?: readonly string[]): Page;
  /** Tokens as a consent of that person ends with: of the login, and of the page. */
  grant(person: Person, page: Page, scopes?: readonly string[]): { readonly login: string; readonly page: string };
  script(fault: Fault): void;
  fate(fate: Fate): void;
  close(): void;
}

const allTasks = ['ADVERTISE', 'ANALYZE', 'CREATE_CONTENT', 'MESSAGING', 'MODERATE', 'MANAGE'];

export const startFacebook = async (options: FacebookOptions = {}): Promise<FacebookNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  let origin = '';
  const server = createServer((message, response) => {
    serve(state, origin, message, response, late).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const page: FacebookNetwork['page'] = (over = {}) => {
    const id = `1${state.id().slice(-14)}`;
    const made: Page = {
      ...{ id, name: 'Café Ada', username: `cafe.ada.${id.slice(-6)}`, followers: 1_234, instagram: null },
      ...{ business: null, ...over },
    };
    state.pages.set(made.id, made);
    return made;
  };
  return {
    ...{ origin, state, page },
    env: {
      ...{ FACEBOOK_API: origin, FACEBOOK_AUTHORIZE: origin, FACEBOOK_UPLOADS: origin + uploadsAt },
      ...{ FACEBOOK_CLIENT_ID: state.app.clientId, FACEBOOK_CLIENT_SECRET: state.app.clientSecret },
    },
    person: () => {
      const made: Person = { id: state.id(), tasks: new Map(), unlisted: new Set() };
      state.people.set(made.id, made);
      return made;
    },
    pageOf: (person, over = {}, tasks = allTasks) => {
      const made = page(over);
      person.tasks.set(made.id, tasks);
      return made;
    },
    grant: ({ id }, { id: pageId }, scopes = allScopes) => {
      const login = state.grant(id, scopes, true);
      const access = state.access.get(login);
      if (access === undefined) throw new Error('there is no login');
      return { login, page: state.grantPage(access, pageId) };
    },
    script: (fault) => {
      state.faults.push({ ...fault, left: fault.times ?? 1 });
    },
    fate: (fate) => {
      state.fates.push(fate);
    },
    close: () => {
      for (const timer of late) clearTimeout(timer);
      server.closeAllConnections();
      server.close();
    },
  };
};

/** On the real network another host. */
const uploadsAt = '/rupload';

const serve = async (
  state: State,
  origin: string,
  message: IncomingMessage,
  response: ServerResponse,
  late: Set<NodeJS.Timeout>,
): Promise<void> => {
  const body = await bodyOf(message);
  const { route, id } = routeOf(state, message);
  const act = (): Answer => acted(state, route, message, body, id, origin);
  const send = ({ status, body: said, headers = {} }: Answer): void => {
    const isText = typeof said === 'string';
    response.sendDate = false;
    const type = isText ? 'text/html' : 'application/json';
    response.writeHead(status, {
      ...{ 'content-type': type, date: new Date(state.now()).toUTCString(), 'facebook-api-version': state.version },
      ...headers,
    });
    response.end(isText ? said : JSON.stringify(said));
  };
  const then = state.met(faultRouteOf(route, message), saidBy(state, message, body, id));
  if (then === null) return send(act());
  if (typeof then === 'object') {
    if ('run' in then) {
      if (then.then === 'silent_after') act();
      then.run();
      return then.then === 'act' ? send(act()) : undefined;
    }
    if ('answerAfter' in then) {
      act();
      return send(then.answerAfter);
    }
    if ('lateMs' in then) late.add(setTimeout(act, then.lateMs));
    else note(state, message, body, then.answer);
    return send(then.answer);
  }
  if (then.endsWith('_after')) act();
  if (then.startsWith('drop')) response.destroy();
};

const routeOf = (
  state: State,
  { method, url = '/' }: IncomingMessage,
): { readonly route: string; readonly id: string } => {
  const { pathname } = new URL(url, 'http://facebook');
  const isUpload = pathname.startsWith(`${uploadsAt}/video-upload/${state.version}/`);
  if (isUpload) return { route: `${method} /video-upload/:id`, id: pathname.split('/').at(-1) ?? '' };
  const [, first = '', second = '', third] = pathname.split('/');
  // An app of v27.0 asks for that.
  if (first !== state.version) return { route: `${method} of another version`, id: '' };
  const isNode = /^\d+(?:_\d+)?$/.test(second);
  const name = isNode ? ':id' : second;
  return { route: `${method} /${name}${third === undefined ? '' : `/${third}`}`, id: isNode ? second : '' };
};

const faultRouteOf = (route: string, { url = '/' }: IncomingMessage): string => {
  const phase = new URL(url, 'http://facebook').searchParams.get('upload_phase');
  return phase === null ? route : `${route} ${phase}`;
};

/** The call's own words, and those of the post or the video that it is about. */
const saidBy = (state: State, { url = '', headers }: IncomingMessage, { head, bytes }: Body, id: string): string => {
  const isForm = (headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded');
  const said = isForm
    ? [...new URLSearchParams(head.toString('utf8')).values()].join('\n')
    : bytes < 1_000_000
      ? head.toString('utf8')
      : '';
  const about = state.find(id)?.text ?? state.videos.get(id)?.made?.text ?? '';
  return `${decodeURIComponent(url)}\n${said}\n${about}`;
};

const acted = (
  state: State,
  route: string,
  message: IncomingMessage,
  body: Body,
  id: string,
  origin: string,
): Answer => {
  let answer: Answer;
  try {
    const act = routes[route];
    if (act === undefined) throw new Refusal({ ...problems.object_missing, status: 404 });
    answer = act(state, requestOf(message, body), id, origin);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    answer = error.answer;
  }
  note(state, message, body, answer);
  return answer;
};

const note = (state: State, message: IncomingMessage, body: Body, { status }: Answer): void => {
  const { pathname: path } = new URL(message.url ?? '/', 'http://facebook');
  let params: Readonly<Record<string, string>> = {};
  try {
    ({ params } = requestOf(message, body));
  } catch {}
  state.calls.push({ method: message.method ?? '', path, params, status });
};

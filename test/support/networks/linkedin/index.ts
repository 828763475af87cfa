/**
 * LinkedIn over real HTTP on this machine: written from its documents (learn.microsoft.com/linkedin), not from our adapter.
 * What the documents do not have fails the call.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, Refusal, refuse } from './answer.ts';
import { authorizePage, profile, tokenEndpoint, userInfo } from './consent.ts';
import * as figures from './figures.ts';
import { fileStatus, mediaAction, putBytes } from './media.ts';
import { createComment, createPost, deletePost, getPost, readPosts } from './posts.ts';
import { bytesOf, keyIn, type Request, tokenOf } from './request.ts';
import { type Fault, type LinkedInOptions, type Organization, type Person, State } from './state.ts';

export { type ProblemName, problems } from './answer.ts';

type Route = (state: State, request: Request, id: string) => Answer;

const routes: Readonly<Record<string, Route>> = {
  'GET /oauth/v2/authorization': authorizePage,
  'POST /oauth/v2/accessToken': tokenEndpoint,
  'GET /v2/userinfo': userInfo,
  'GET /v2/me': profile,
  'POST /rest/posts': createPost,
  'GET /rest/posts': readPosts,
  'GET /rest/posts/:id': getPost,
  'DELETE /rest/posts/:id': deletePost,
  'POST /rest/socialActions/:id/comments': createComment,
  'POST /rest/images': mediaAction('image'),
  'POST /rest/videos': mediaAction('video'),
  'POST /rest/documents': mediaAction('document'),
  'GET /rest/images/:id': fileStatus('image'),
  'GET /rest/videos/:id': fileStatus('video'),
  'GET /rest/documents/:id': fileStatus('document'),
  'PUT /dms-uploads/image': putBytes,
  'PUT /dms-uploads/video': putBytes,
  'PUT /dms-uploads/document': putBytes,
  'GET /rest/organizationAcls': figures.organizationAcls,
  'GET /rest/organizations': figures.organizations,
  'GET /rest/organizationalEntityShareStatistics': figures.shareStatistics,
  'GET /rest/socialMetadata': figures.socialMetadata,
  'GET /rest/videoAnalytics': figures.videoAnalytics,
  'GET /rest/networkSizes/:id': figures.networkSize,
  'GET /rest/organizationPageStatistics': figures.pageStatistics,
  'GET /rest/organizationalEntityFollowerStatistics': figures.followerStatistics,
  'GET /rest/memberCreatorPostAnalytics': figures.memberPostAnalytics,
  'GET /rest/memberCreatorVideoAnalytics': figures.memberVideoAnalytics,
  'GET /rest/memberFollowersCount': figures.memberFollowers,
};

/** Those of the Community Management API, and of Sign In with LinkedIn. */
const allScopes = [
  ...['openid', 'profile', 'w_member_social', 'w_organization_social', 'r_organization_social'],
  ...['rw_organization_admin', 'r_member_postAnalytics', 'r_member_profileAnalytics'],
];

export interface LinkedInNetwork {
  readonly origin: string;
  readonly state: State;
  /** The settings of an installation that talks to it. */
  readonly env: Readonly<Record<string, string>>;
  person(name?: string): Person;
  /** @param by has this role in it */
  organization(by: Person, role?: string, over?: Partial<Organization>): Organization;
  /** Tokens as a consent of that member gives them. */
  grant(person: Person, scopes?: readonly string[]): { readonly accessToken: string; readonly refreshToken?: string };
  script(fault: Fault): void;
  close(): void;
}

export const startLinkedIn = async (options: LinkedInOptions = {}): Promise<LinkedInNetwork> => {
  const state = new State(options);
  const late = new Set<NodeJS.Timeout>();
  let origin = '';
  const server = createServer((message, response) => {
    serve(state, origin, message, response, late).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ origin, state },
    env: {
      ...{ LINKEDIN_API: `${origin}/rest`, LINKEDIN_AUTHORIZE: `${origin}/oauth/v2/authorization` },
      ...{ LINKEDIN_TOKENS: `${origin}/oauth/v2`, LINKEDIN_LOGIN: `${origin}/v2` },
      ...{ LINKEDIN_UPLOADS: `${origin}/dms-uploads`, LINKEDIN_CLIENT_ID: state.app.clientId },
      LINKEDIN_CLIENT_SECRET: state.app.clientSecret,
    },
    person: (name = 'Ada Lovelace') => {
      const made: Person = { id: `AbC${state.id().slice(-8)}`, name, roles: new Map(), followers: 1_532 };
      state.people.set(made.id, made);
      return made;
    },
    organization: (by, role = 'ADMINISTRATOR', over = {}) => {
      const id = state.id().slice(-8);
      const made = { id, name: `Acme ${id}`, vanityName: `acme-${id}`, followers: 310, ...over };
      state.organizations.set(made.id, made);
      by.roles.set(made.id, [...(by.roles.get(made.id) ?? []), role]);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => {
      const { accessToken, refreshToken } = state.grant(id, scopes);
      return { accessToken, ...(refreshToken === null ? {} : { refreshToken }) };
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
  origin: string,
  message: IncomingMessage,
  response: ServerResponse,
  late: Set<NodeJS.Timeout>,
): Promise<void> => {
  const body = await bytesOf(message);
  const { method = 'GET', headers, url = '/' } = message;
  const [path = '', query = ''] = url.split('?');
  const request: Request = { method, path, query, headers, body, origin };
  const act = (): Answer => acted(state, request);
  const send = ({ status, body: shown, headers: more = {} }: Answer): void => {
    const isText = typeof shown === 'string';
    response.sendDate = false;
    const type = shown === undefined ? {} : { 'content-type': isText ? 'text/html' : 'application/json' };
    response.writeHead(status, { ...type, date: new Date(state.now()).toUTCString(), ...more });
    response.end(shown === undefined || isText ? shown : JSON.stringify(shown));
  };
  const said = `${url}\n${body.length < 100_000 ? body.toString('utf8') : ''}`;
  const then = state.met(routeOf(request), said, personOf(state, request));
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
    else note(state, request, then.answer);
    return send(then.answer);
  }
  if (then.endsWith('_after')) act();
  if (then.startsWith('drop')) response.destroy();
};

const personOf = (state: State, request: Request): string | null =>
  state.access.get(tokenOf(request))?.personId ?? null;

/** `/rest/posts/urn%3Ali%3Ashare%3A1` is `/rest/posts/:id`; of an upload the key is left out. */
const routeOf = ({ method, path }: Request): string => {
  const known = path.startsWith('/dms-uploads/') ? path.split('/').slice(0, 3).join('/') : path;
  return `${method} ${known.replace(/\/urn(?::|%3A)[^/]+/i, '/:id')}`;
};

const acted = (state: State, request: Request): Answer => {
  const answer = answered(state, request);
  note(state, request, answer);
  return answer;
};

const note = (state: State, request: Request, { status, headers: more = {} }: Answer): void => {
  const { method, path, query, headers } = request;
  const personId = personOf(state, request);
  const version = headers['linkedin-version'];
  state.calls.push({ method, path, query, personId, version: version === undefined ? null : String(version), status });
  if (routeOf(request) !== 'POST /rest/posts') return;
  const tag = headers['x-test-tag'];
  const postId = status === 201 ? (more['x-restli-id'] ?? null) : null;
  state.creates.push({
    personId,
    tag: typeof tag === 'string' ? tag : null,
    status,
    postId,
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

const answered = (state: State, request: Request): Answer => {
  try {
    const act = routes[routeOf(request)];
    if (act === undefined) throw refuse('not_found');
    const [encoded = ''] = /urn(?::|%3A)[^/]+/i.exec(request.path) ?? [];
    return act(state, request, encoded === '' || request.path.startsWith('/dms') ? '' : keyIn(encoded));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.answer;
  }
};

/**
 * YouTube over real HTTP on this machine: written from its documents (developers.google.com/youtube, developers.google.com/
 * identity), not from our adapter. What the documents do not have fails the call.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, problems, Refusal } from './answer.ts';
import { authorizePage, revokeEndpoint, tokenEndpoint } from './consent.ts';
import { contractHeld } from './contract.ts';
import { report } from './figures.ts';
import { allScopes, type Request, tokenOf } from './request.ts';
import { type Channel, type Fate, type Fault, State, type YouTubeOptions } from './state.ts';
import { kindOfPut, putUpload, sessionOf, setThumbnail, startUpload } from './uploads.ts';
import * as videos from './videos.ts';

export { type ProblemName, problems } from './answer.ts';
export { allScopes } from './request.ts';

type Route = (state: State, request: Request) => Answer;

const routes: Readonly<Record<string, Route>> = {
  'GET /o/oauth2/v2/auth': authorizePage,
  'POST /token': tokenEndpoint,
  'POST /revoke': revokeEndpoint,
  'POST /upload/youtube/v3/videos': startUpload,
  'PUT last': putUpload,
  'PUT part': putUpload,
  'PUT probe': putUpload,
  'POST /upload/youtube/v3/thumbnails/set': setThumbnail,
  'GET /youtube/v3/videos': videos.listVideos,
  'PUT /youtube/v3/videos': videos.updateVideo,
  'DELETE /youtube/v3/videos': videos.deleteVideo,
  'GET /youtube/v3/channels': videos.listChannels,
  'GET /youtube/v3/playlistItems': videos.listPlaylist,
  'GET /youtube/v3/videoCategories': videos.listCategories,
  'POST /youtube/v3/commentThreads': videos.createComment,
  'GET /v2/reports': report,
};

export interface YouTubeNetwork {
  readonly origin: string;
  readonly state: State;
  /** The settings of an installation that talks to it. */
  readonly env: Readonly<Record<string, string>>;
  channel(over?: Partial<Channel>): Channel;
  /** Tokens as a consent for that channel gives them. */
  grant(channel: Channel, scopes?: readonly string[]): { readonly accessToken: string; readonly refreshToken: string };
  script(fault: Fault): void;
  fate(fate: Fate): void;
  close(): void;
}

export const startYouTube = async (options: YouTubeOptions = {}): Promise<YouTubeNetwork> => {
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
      ...{
        YOUTUBE_API: `${origin}/youtube/v3`,
        YOUTUBE_AUTHORIZE: `${origin}/o/oauth2/v2/auth`,
        YOUTUBE_TOKENS: origin,
      },
      ...{ YOUTUBE_UPLOADS: `${origin}/upload/youtube/v3`, YOUTUBE_FIGURES: `${origin}/v2` },
      ...{ YOUTUBE_CLIENT_ID: state.app.clientId, YOUTUBE_CLIENT_SECRET: state.app.clientSecret },
    },
    channel: (over = {}) => {
      const id = `UC${state.id(22).padStart(22, 'a')}`;
      const made: Channel = {
        ...{ id, person: `1${state.id(8)}`, title: 'Café Ada', handle: `cafe${state.id(6)}`, country: 'DE' },
        ...{ subscribers: 15_321, isVerified: true, ...over },
      };
      state.channels.set(made.id, made);
      return made;
    },
    grant: ({ id }, scopes = allScopes) => state.grant(id, scopes),
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

/** Of a file only its beginning is kept. */
const keptBytes = 1_000_000;

const readBody = async (message: IncomingMessage) => {
  const chunks: Buffer[] = [];
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    if (bytes < keptBytes) chunks.push(chunk);
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { body: Buffer.concat(chunks), bytes, sha256: hash.digest('hex') };
};

const serve = async (
  state: State,
  origin: string,
  message: IncomingMessage,
  response: ServerResponse,
  late: Set<NodeJS.Timeout>,
): Promise<void> => {
  const read = await readBody(message);
  const { method = 'GET', headers, url = '/' } = message;
  const [path = '', query = ''] = url.split('?');
  const request: Request = { ...{ method, path, query, headers, origin }, ...read };
  const act = (): Answer => acted(state, request);
  const send = ({ status, body: shown, headers: more = {} }: Answer): void => {
    const isText = typeof shown === 'string';
    response.sendDate = false;
    const type = shown === undefined ? {} : { 'content-type': isText ? 'text/html' : 'application/json' };
    response.writeHead(status, { ...type, date: new Date(state.now()).toUTCString(), ...more });
    response.end(shown === undefined || isText ? shown : JSON.stringify(shown));
  };
  const then = state.met(routeOf(request), saidBy(state, request), channelOf(state, request));
  if (then === null) return send(act());
  if (typeof then === 'object') {
    if ('run' in then) {
      if (then.then === 'silent_after') act();
      then.run();
      return (then.then ?? 'act') === 'act' ? send(act()) : undefined;
    }
    if ('answerAfter' in then) {
      act();
      return send(then.answerAfter);
    }
    if ('lateMs' in then) late.add(setTimeout(act, then.lateMs));
    else note(state, request, then.answer, null);
    return send(then.answer);
  }
  if (then.endsWith('_after')) act();
  if (then.startsWith('drop')) response.destroy();
};

const channelOf = (state: State, request: Request): string | null =>
  state.access.get(tokenOf(request))?.channelId ?? null;

const routeOf = (request: Request): string => {
  const { method, path } = request;
  return method === 'PUT' && path.startsWith('/upload/') ? `PUT ${kindOfPut(request)}` : `${method} ${path}`;
};

/** The call's own words, and those of the video or the session that it is about. */
const saidBy = (state: State, request: Request): string => {
  const { path, query, body, bytes, method } = request;
  const isFile = path.startsWith('/upload/') && method === 'PUT';
  const members = new URLSearchParams(query);
  const named = (
    members.get('id') ??
    members.get('videoId') ??
    /"id":"([\w-]{11})"/.exec(body.toString('utf8'))?.[1] ??
    ''
  ).split(',');
  const about = state.videos.filter(({ id }) => named.includes(id)).map(({ snippet }) => JSON.stringify(snippet));
  const session = isFile ? JSON.stringify(sessionOf(state, request)?.resource ?? {}) : '';
  return [path, query, isFile || bytes > keptBytes ? '' : body.toString('utf8'), session, ...about].join('\n');
};

const acted = (state: State, request: Request): Answer => {
  const answer = answered(state, request);
  note(state, request, answer, answer);
  return answer;
};

const note = (state: State, request: Request, { status }: Answer, own: Answer | null): void => {
  const { method, path, query, bytes: sent, headers } = request;
  state.calls.push({ method, path, query, sent, range: headers['content-range'] ?? null, status });
  const scopes = state.access.get(tokenOf(request))?.scopes ?? [];
  state.unheld.push(...contractHeld(request, scopes, own));
};

const answered = (state: State, request: Request): Answer => {
  try {
    return routes[routeOf(request)]?.(state, request) ?? problems.not_found;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.answer;
  }
};

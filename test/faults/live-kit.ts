/** Pinterest, Threads, LinkedIn, YouTube, TikTok, Facebook and Instagram of a fault world, as its load and its checks need them. */
import { createServer, request as requestOf } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { startFacebook } from '#test/support/networks/facebook/index.ts';
import { scopesOf, startInstagram } from '#test/support/networks/instagram/index.ts';
import { startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import { startPinterest } from '#test/support/networks/pinterest/index.ts';
import { startThreads } from '#test/support/networks/threads/index.ts';
import { startTikTok } from '#test/support/networks/tiktok/index.ts';
import type { Fault } from '#test/support/networks/x/index.ts';
import { startYouTube } from '#test/support/networks/youtube/index.ts';

/** One post that a network has; an album is one. */
export interface MadePost {
  /** The account, by its id on the network. */
  readonly of: string;
  readonly externalId: string;
  /** As it was sent. */
  readonly text: string;
  /** External id; null: it replies to nothing. */
  readonly replyTo: string | null;
  readonly files: number;
}

/** A network with a front of its own in this process, which is the network itself where it is simulated. */
export interface LiveNetwork {
  readonly origin: string;
  /** Further addresses that our processes reach. */
  readonly others?: readonly string[];
  /** What our processes know of it. */
  readonly env: Readonly<Record<string, string>>;
  /** Makes another account. @returns its id on the network */
  account(): string | Promise<string>;
  /** What a consent of its owner gives. */
  credential(externalId: string): NewCredential | Promise<NewCredential>;
  /** What each post of the account needs. */
  overrides?(externalId: string): Readonly<Record<string, string>>;
  /** The access tokens of the account's owner end now; a refresh gives new ones, unless `forGood`. */
  lapse(externalId: string, forGood: boolean): void;
  script(fault: Fault): void;
  /** No fault that waits for its call strikes any more. */
  calm(): void;
  /** Asks a network outside of this process what it has; absent: it is in it. */
  read?(): Promise<void>;
  /** As of the last `read`. */
  posts(): readonly MadePost[];
  close(): void;
}

const dayMs = 86_400_000;
const untilOf = (days: number): string => new Date(Date.now() + days * dayMs).toISOString();
/** More than a run asks for: budgets of calls have tests of their own. */
const muchOf = '100000000';

const known = <T>(of: ReadonlyMap<string, T>, id: string): T => {
  const found = of.get(id);
  if (found === undefined) throw new Error(`nobody is ${id}`);
  return found;
};

type Tokens = ReadonlyMap<string, { readonly personId: string }>;
const end = (personId: string, all: readonly Tokens[]): void => {
  for (const tokens of all)
    for (const [token, one] of tokens) if (one.personId === personId) (tokens as Map<string, unknown>).delete(token);
};

export const livePinterest = async (): Promise<LiveNetwork> => {
  const network = await startPinterest({ limits: { org_read: 100_000, org_write: 100_000, org_analytics: 100_000 } });
  const { state } = network;
  state.processingLooks = 1;
  const boards = new Map<string, string>();
  return {
    origin: network.origin,
    env: {
      ...{ PINTEREST_API: network.api, PINTEREST_AUTHORIZE: network.authorize, PINTEREST_APP_BUDGET: muchOf },
      ...{ PINTEREST_CLIENT_ID: state.app.clientId, PINTEREST_CLIENT_SECRET: state.app.clientSecret },
    },
    account: () => {
      const person = network.person();
      boards.set(person.id, network.board(person).id);
      return person.id;
    },
    credential: (id) => {
      const secret = { ...network.grant(known(state.people, id)), accessUntil: untilOf(30) };
      return { secret, expiresAt: null };
    },
    overrides: (id) => ({ boardId: known(boards, id) }),
    lapse: (id, forGood) => end(id, forGood ? [state.access, state.refresh] : [state.access]),
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () =>
      state.pins.map(({ id, personId, body, pictures, kind }) => ({
        ...{ of: personId, externalId: id, text: String(body.description ?? ''), replyTo: null },
        files: kind === 'video' ? 1 : pictures.length,
      })),
    close: () => network.close(),
  };
};

export const liveThreads = async (): Promise<LiveNetwork> => {
  const network = await startThreads({ quota: { posts: 100_000, replies: 100_000 } });
  const { state } = network;
  return {
    origin: network.origin,
    env: {
      ...{ THREADS_API: network.origin, THREADS_AUTHORIZE: `${network.origin}/oauth/authorize` },
      ...{ THREADS_CLIENT_ID: state.app.clientId, THREADS_CLIENT_SECRET: state.app.clientSecret },
    },
    account: () => network.person().id,
    credential: (id) => {
      const [accessFrom, accessUntil] = [untilOf(0), untilOf(60)];
      const secret = { accessToken: network.grant(known(state.people, id)), accessFrom, accessUntil };
      return { secret, expiresAt: accessUntil };
    },
    // Nothing renews a token that Threads does not know.
    lapse: (id) => end(id, [state.access]),
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () =>
      state.posts.map(({ id, personId, text, parent, files }) => ({
        ...{ of: personId, externalId: id, text, replyTo: parent, files: files.length },
      })),
    close: () => network.close(),
  };
};

export interface LiveLinkedIn extends LiveNetwork {
  /** Ends every version but this. */
  onlyVersion(version: string): void;
  /** Whether a call was refused since another version is the only one. */
  refusedVersion(): boolean;
}

const filesIn = (content: Readonly<Record<string, unknown>> | null): number => {
  const { media, multiImage } = (content ?? {}) as {
    readonly media?: unknown;
    readonly multiImage?: { readonly images: readonly unknown[] };
  };
  return multiImage?.images.length ?? (media === undefined ? 0 : 1);
};

/** Organizations, whose posts LinkedIn lists, and each third account a member, whose posts it does not. */
export const liveLinkedIn = async (): Promise<LiveLinkedIn> => {
  const network = await startLinkedIn({ processing: { video: ['AVAILABLE'] } });
  const { state } = network;
  /** Whose token each account has. */
  const owners = new Map<string, string>();
  let from = 0;
  const tokensOf = (id: string) => network.grant(known(state.people, known(owners, id)));
  return {
    origin: network.origin,
    env: { ...network.env, LINKEDIN_APP_BUDGET: muchOf },
    account: () => {
      const person = network.person();
      const isMember = owners.size % 3 === 2;
      const id = isMember ? `urn:li:person:${person.id}` : `urn:li:organization:${network.organization(person).id}`;
      owners.set(id, person.id);
      return id;
    },
    credential: (id) => ({
      ...{ secret: { ...tokensOf(id), accessUntil: untilOf(60) }, expiresAt: null },
      grant: known(owners, id),
    }),
    lapse: (id, forGood) => end(known(owners, id), forGood ? [state.access, state.refresh] : [state.access]),
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () => [
      ...state.posts.map(({ id, author, text, content }) => ({
        ...{ of: author, externalId: id, text: text.shown, replyTo: null, files: filesIn(content) },
      })),
      ...state.comments.map(({ id, actor, text, post }) => ({
        ...{ of: actor, externalId: id, text, replyTo: post, files: 0 },
      })),
    ],
    onlyVersion: (version) => {
      [state.versions, from] = [[version], state.calls.length];
    },
    refusedVersion: () => state.calls.slice(from).some(({ status }) => status === 426),
    close: () => network.close(),
  };
};

const textIn = (of: Readonly<Record<string, unknown>>, name: string): string =>
  typeof of[name] === 'string' ? of[name] : '';

/** Milliseconds that a network looks at a video before it shows it. */
const looksMs = 500;

export const liveYouTube = async (): Promise<LiveNetwork> => {
  const network = await startYouTube({ processingMs: looksMs, quota: { inserts: 1_000_000, units: 100_000_000 } });
  const { state } = network;
  return {
    origin: network.origin,
    env: { ...network.env, YOUTUBE_APP_BUDGET: muchOf, YOUTUBE_APP_UNITS: muchOf },
    account: () => network.channel().id,
    credential: (id) => {
      const channel = known(state.channels, id);
      const secret = { ...network.grant(channel), accessUntil: untilOf(1 / 24) };
      return { secret, expiresAt: null, grant: channel.person };
    },
    lapse: (id, forGood) => {
      for (const tokens of forGood ? [state.access, state.refresh] : [state.access])
        for (const [token, { channelId }] of tokens) if (channelId === id) tokens.delete(token);
    },
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () =>
      state.videos.map(({ id, channelId, snippet }) => ({
        ...{ of: channelId, externalId: id, text: textIn(snippet, 'description'), replyTo: null, files: 1 },
      })),
    close: () => network.close(),
  };
};

/** Videos: pictures are fetched from addresses that are proven to be the operator's. */
export const liveTikTok = async (): Promise<LiveNetwork> => {
  const network = await startTikTok();
  const { state } = network;
  state.lookMs = looksMs;
  return {
    origin: network.origin,
    env: {
      ...{ TIKTOK_API: network.api, TIKTOK_AUTHORIZE: network.authorize, TIKTOK_APP_BUDGET: muchOf },
      ...{ TIKTOK_CLIENT_ID: state.app.clientKey, TIKTOK_CLIENT_SECRET: state.app.clientSecret },
    },
    account: () => network.person().id,
    credential: (id) => {
      const secret = { ...network.grant(known(state.people, id)), accessUntil: untilOf(1 / 12) };
      return { secret, expiresAt: null };
    },
    overrides: () => ({ privacyLevel: 'PUBLIC_TO_EVERYONE' }),
    lapse: (id, forGood) => end(id, forGood ? [state.access, state.refresh] : [state.access]),
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    // One whose file has not arrived is no post.
    posts: () =>
      state.posts.flatMap(({ personId, info, postId, takenAt }) =>
        takenAt === null
          ? []
          : [{ of: personId, externalId: postId, text: textIn(info, 'title'), replyTo: null, files: 1 }],
      ),
    close: () => network.close(),
  };
};

/** Pages. A token of one that ended is minted anew by that of its login, while there is one. */
export const liveFacebook = async (): Promise<LiveNetwork> => {
  const network = await startFacebook();
  const { state } = network;
  const people = new Map<string, ReturnType<typeof network.person>>();
  return {
    origin: network.origin,
    env: network.env,
    account: () => {
      const person = network.person();
      const { id } = network.pageOf(person);
      people.set(id, person);
      return id;
    },
    credential: (id) => {
      const person = known(people, id);
      const { login, page } = network.grant(person, known(state.pages, id));
      const secret = { accessToken: page, accessUntil: null, account: id, loginToken: login, loginUntil: untilOf(60) };
      return { secret, expiresAt: null, grant: person.id };
    },
    lapse: (id, forGood) => {
      const { id: personId } = known(people, id);
      for (const [token, one] of state.access)
        if (one.personId === personId && (forGood || one.pageId !== null)) state.access.delete(token);
    },
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () =>
      state.made.map((one) => ({
        ...{ of: one.pageId, externalId: state.idOf(one), text: one.text, replyTo: null, files: one.files.length },
      })),
    close: () => network.close(),
  };
};

/** Professional accounts, by Instagram's own login, whose token nothing renews once it has ended. */
export const liveInstagram = async (): Promise<LiveNetwork> => {
  const network = await startInstagram({ quota: 100_000 });
  const { state } = network;
  state.processing.REELS = 1;
  return {
    origin: network.origin,
    env: network.env.ig,
    account: () => network.person().id,
    credential: (id) => {
      const [accessFrom, accessUntil] = [untilOf(0), untilOf(60)];
      const who = { host: 'ig', personId: known(state.people, id).id, holderId: null } as const;
      const accessToken = state.grant({ ...who, scopes: scopesOf.ig, isLong: true }, 60 * 86_400);
      return { secret: { accessToken, accessFrom, accessUntil }, expiresAt: accessUntil };
    },
    lapse: (id) => {
      for (const [token, { personId }] of state.access) if (personId === id) state.access.delete(token);
    },
    script: (fault) => network.script(fault),
    calm: () => void state.faults.splice(0),
    posts: () =>
      state.media.map(({ id, personId, caption, files }) => ({
        ...{ of: personId, externalId: id, text: caption, replyTo: null, files: files.length },
      })),
    close: () => network.close(),
  };
};

export interface Front {
  readonly origin: string;
  close(): void;
}

/** An address that stays while the api behind it starts again and again: networks fetch files there. */
export const startFront = async (behind: () => string): Promise<Front> => {
  const server = createServer((message, response) => {
    const fail = () => void response.writeHead(502).end();
    const passed = requestOf(`${behind()}${message.url ?? '/'}`, { method: message.method ?? 'GET' }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy()).pipe(response);
    });
    passed.on('error', fail).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** A network of the kit before a server that answers what a test says: for what no real network of ours needs of the kit. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CredentialStore, NewCredential } from '#contracts/ports/credentials.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { NetworkClient } from '#infra/platforms/kit/client.ts';
import type { Bound } from '#infra/platforms/kit/network.ts';
import type { OAuthTable, TokenStep } from '#infra/platforms/kit/oauth.ts';
import type { NetworkTables } from '#infra/platforms/kit/tables.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text as it is, else JSON. */
  readonly body?: unknown;
}

export interface Server {
  readonly origin: string;
  readonly received: Received[];
  /** What the server answers to the next calls, by method and path; of each the last stays. */
  on(call: string, ...replies: readonly Reply[]): void;
  close(): void;
}

export const startServer = async (): Promise<Server> => {
  const received: Received[] = [];
  const replies = new Map<string, Reply[]>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://server');
    const { method = '', headers } = request;
    received.push({ method, path, query, headers, body: Buffer.concat(chunks).toString('utf8') });
    const list = replies.get(`${method} ${path}`) ?? [];
    const {
      status = 200,
      headers: own = {},
      body = {},
    } = (list.length > 1 ? list.shift() : list[0]) ?? { status: 404 };
    response.writeHead(status, own).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    ...{ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received },
    on: (call, ...all) => replies.set(call, [...all]),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

export const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));

const token: TokenStep = { method: 'POST', url: '{tokens}/token', as: 'form', params: { code: '{code}' } };

export const oauthOf = (over: Partial<OAuthTable> = {}): OAuthTable => ({
  ...{ authorizeParams: {}, scopes: { post: { why: 'to publish', needed: 'posting for you' } }, separator: ',' },
  ...{ client: { id: 'client_key', secret: 'client_secret' }, pkce: 'none', exchange: [token], refresh: null },
  ...{ seconds: { access: 3_600, most: 10_000_000, refresh: null }, revoke: [], grant: 'account' },
  ends: [{ status: 400, says: /^invalid_grant:/ }],
  refreshWindowMs: 1,
  ...over,
});

export const tablesOf = (over: Partial<NetworkTables> = {}): NetworkTables => ({
  ...{ platform: 'threads', headers: { 'api-version': '{version}' }, oauth: oauthOf(), errors: [], buckets: [] },
  version: (set) => ({ version: set ?? '', endsAt: null, source: 'a test' }),
  words: ['error.message', 'message'],
  code: () => null,
  makes: [],
  insights: { insightsVersion: 'test/1', minIntervalMs: 0, maxAheadMs: null },
  doctor: {
    ...{ makeApp: 'Make an app', console: 'its page', refusesCode: /code/, refusesClient: /client/ },
    clientRemedy: { confidential: 'Copy it.', public: 'Set it.' },
    ...{ redirectName: 'Redirects', scopesRemedy: 'Allow them', redirectRefused: 'An error' },
  },
  ...over,
});

export const appAt = (origin: string, over: Partial<NetworkApp> = {}): NetworkApp => ({
  ...{ id: 'app-id', secret: 'app:secret', version: 'v1', monthlyReads: null },
  addresses: { api: `${origin}/api`, authorize: `${origin}/authorize`, tokens: `${origin}/tokens` },
  ...over,
});

export interface KitWorld extends Server {
  readonly bound: Bound;
  readonly client: NetworkClient;
  readonly credentials: CredentialStore;
  readonly appLimits: MemoryAppLimits;
  /** Milliseconds of each wait; time goes on by as much. */
  readonly pauses: number[];
  pass(ms: number): void;
  account(credential?: Partial<NewCredential>): Promise<{ readonly accountId: string; readonly targetId: null }>;
}

export const kitWorld = async (
  over: Partial<NetworkTables> = {},
  credentials: CredentialStore = new MemoryCredentials(),
): Promise<KitWorld> => {
  const server = await startServer();
  const appLimits = new MemoryAppLimits();
  const pauses: number[] = [];
  let now = Date.parse('2026-11-01T12:00:00.000Z');
  const kit = { http, credentials, appLimits, clock: () => now, tables: tablesOf(over), app: appAt(server.origin) };
  const client = new NetworkClient(kit);
  const pause = async (ms: number) => {
    pauses.push(ms);
    now += ms;
  };
  return {
    ...{ ...server, client, credentials, appLimits, pauses },
    bound: { ...kit, client, pause, boundaryDeadlineMs: 1_000 },
    pass: (ms) => {
      now += ms;
    },
    account: async (credential = {}) => {
      const accountId = randomUUID();
      const owner = { accountId, workspaceId: randomUUID(), clientId: randomUUID(), platform: 'threads' as const };
      const accessUntil = new Date(now + 3_600_000).toISOString();
      await credentials.keep(owner, { secret: { accessToken: 'first', accessUntil }, expiresAt: null, ...credential });
      return { accountId, targetId: null };
    },
  };
};

export const within = () => AbortSignal.timeout(5_000);

export const requestOf = (
  { accountId }: { readonly accountId: string },
  over: Partial<PublishRequest> = {},
): PublishRequest => ({
  ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'threads', content: 'Good morning' },
  account: { id: accountId, externalId: '1', username: null },
  ...{ overrides: {}, aiDisclosure: false, media: [], cover: null, coverFrameMs: null, thread: null, checkpoints: [] },
  ...over,
});

export const videoOf = (bytes: number, file = '/dev/null'): PublishMedia => ({
  ...{ mediaId: randomUUID(), kind: 'video', use: 'feed', contentType: 'video/mp4', bytes, sha256: '0'.repeat(64) },
  ...{ width: 640, height: 480, durationMs: 1_000, altText: null, file: async () => file, url: async () => '' },
});

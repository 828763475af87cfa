/** Adapters of Threads on a simulated Threads, as the tests use them. */
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount, InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import type { Tools } from '#infra/platforms/kit/tables.ts';
import { threadsNetwork } from '#infra/platforms/threads/index.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { type FileServer, startFiles, TaggedHttp } from '#test/support/networks/world-parts.ts';
import { allScopes, type Person, startThreads, type ThreadsNetwork } from './index.ts';
import type { ThreadsNetworkOptions } from './state.ts';

export type ThreadsAdapter = PlatformAdapter &
  Required<Pick<PlatformAdapter, 'findPosts' | 'removePost'>> &
  InsightsSource;

export interface ThreadsWorld {
  readonly network: ThreadsNetwork;
  readonly files: FileServer;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly app: NetworkApp;
  readonly tools: Tools;
  readonly kit: KitNetwork;
  readonly adapter: ThreadsAdapter;
  /** Milliseconds of each wait that the adapter asked for; none is waited. */
  readonly pauses: number[];
  /** Another adapter on the same network. */
  open(over?: Partial<Tools>): ThreadsAdapter;
  account(person?: Person, scopes?: readonly string[]): Promise<CommentRequest['account'] & InsightsAccount>;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  media(over?: Partial<PublishMedia>): PublishMedia;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
  close(): void;
}

export const appOf = ({ origin, state }: ThreadsNetwork): NetworkApp => ({
  ...{ id: state.app.clientId, secret: state.app.clientSecret, version: 'v1.0', monthlyReads: null },
  addresses: { api: origin, authorize: `${origin}/oauth/authorize` },
});

const dayMs = 86_400_000;

export const threadsWorld = async (
  networkOptions: ThreadsNetworkOptions = {},
  over: Partial<Tools> = {},
): Promise<ThreadsWorld> => {
  const [network, files] = [await startThreads(networkOptions), await startFiles()];
  const http = new TaggedHttp();
  const credentials = new MemoryCredentials();
  const pauses: number[] = [];
  const tools: Tools = {
    ...{
      http,
      credentials,
      appLimits: new MemoryAppLimits(),
      clock: () => network.state.now(),
      boundaryDeadlineMs: 1_500,
    },
    pause: async (ms) => {
      pauses.push(ms);
    },
    ...over,
  };
  const app = appOf(network);
  const kitOf = (more: Partial<Tools> = {}): KitNetwork => networkOf(threadsNetwork(), { ...tools, ...more }, app);
  const adapterOf = ({ adapter, source }: KitNetwork): ThreadsAdapter => {
    const { findPosts, removePost } = adapter;
    if (findPosts === undefined || removePost === undefined) throw new Error('the adapter lacks methods');
    return { ...adapter, ...source, findPosts, removePost };
  };
  const kit = kitOf();
  const adapter = adapterOf(kit);
  return {
    ...{ network, files, http, credentials, app, tools, kit, adapter, pauses },
    open: (more) => adapterOf(kitOf(more)),
    account: async (person = network.person(), scopes = allScopes) => {
      const now = network.state.now();
      const [accessFrom, accessUntil] = [now, now + 60 * dayMs].map((at) => new Date(at).toISOString());
      const secret = {
        accessToken: network.grant(person, scopes),
        accessFrom: accessFrom ?? '',
        accessUntil: accessUntil ?? '',
      };
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'threads' as const };
      const { id: externalId, username } = person;
      const account = { id: randomUUID(), workspaceId: owner.workspaceId, externalId, username, scopes };
      await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: accessUntil ?? null });
      return account;
    },
    request: (account, more = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'threads', account },
      ...{ content: 'Good morning', overrides: {}, aiDisclosure: false, media: [], cover: null, coverFrameMs: null },
      ...{ thread: null, checkpoints: [], ...more },
    }),
    media: (more = {}) => {
      const one: PublishMedia = {
        ...{
          mediaId: randomUUID(),
          kind: 'image',
          use: 'feed',
          contentType: 'image/jpeg',
          bytes: 5,
          sha256: randomUUID(),
        },
        ...{ width: 640, height: 480, durationMs: null, altText: null, file: async () => '', url: async () => '' },
        ...more,
      };
      return { ...one, url: async () => `${files.origin}/${one.contentType.replace('/', '-')}/${one.mediaId}` };
    },
    publish: async (request, by = adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
    close: () => {
      network.close();
      files.close();
    },
  };
};

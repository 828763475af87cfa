/** Adapters of Instagram on a simulated Instagram, as the tests use them. */
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount, InsightsSource } from '#contracts/ports/platform-insights.ts';
import { instagramNetwork } from '#infra/platforms/instagram/index.ts';
import { appOfLogin, joined } from '#infra/platforms/kit/logins.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import type { Tools } from '#infra/platforms/kit/tables.ts';
import { loginsOf } from '#infra/platforms/live.ts';
import { readConfig } from '#runtime/process/config.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { type FileServer, startFiles, TaggedHttp } from '#test/support/networks/world-parts.ts';
import { type InstagramNetwork, type Page, type Person, scopesOf, startInstagram } from './index.ts';
import type { Host, InstagramNetworkOptions } from './state.ts';

export type InstagramAdapter = PlatformAdapter &
  Required<Pick<PlatformAdapter, 'findPosts' | 'removePost' | 'canRemove'>> &
  InsightsSource;

export type InstagramAccount = CommentRequest['account'] & InsightsAccount;

export interface InstagramWorld {
  readonly network: InstagramNetwork;
  readonly files: FileServer;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly tools: Tools;
  readonly kit: KitNetwork;
  readonly adapter: InstagramAdapter;
  /** Milliseconds of each wait that the adapter asked for; none is waited. */
  readonly pauses: number[];
  /** Another adapter on the same network. */
  open(over?: Partial<Tools>): InstagramAdapter;
  /** An account that came by the login of this world, unless another one is named. */
  account(over?: {
    readonly person?: Person;
    readonly scopes?: readonly string[];
    readonly by?: Host;
  }): Promise<InstagramAccount>;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  media(over?: Partial<PublishMedia>): PublishMedia;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
  close(): void;
}

const dayMs = 86_400_000;

/** @param by the login by which the accounts of the world come; both apps are set up */
export const instagramWorld = async (
  networkOptions: InstagramNetworkOptions = {},
  over: Partial<Tools> = {},
  by: Host = 'ig',
): Promise<InstagramWorld> => {
  const [network, files] = [await startInstagram(networkOptions), await startFiles()];
  const { state } = network;
  const http = new TaggedHttp();
  const credentials = new MemoryCredentials();
  const pauses: number[] = [];
  const tools: Tools = {
    ...{ http, credentials, appLimits: new MemoryAppLimits(), clock: () => state.now(), boundaryDeadlineMs: 1_500 },
    pause: async (ms) => {
      pauses.push(ms);
    },
    ...over,
  };
  const config = readConfig({ ...network.env.ig, ...network.env.fb });
  const kitOf = (more: Partial<Tools> = {}): KitNetwork => {
    const [first, ...others] = loginsOf(instagramNetwork).flatMap((parts) => {
      const app = appOfLogin(parts.tables, config);
      return app === null ? [] : [networkOf(parts, { ...tools, ...more }, app)];
    });
    if (first === undefined) throw new Error('no app is set up');
    return joined([first, ...others], credentials);
  };
  const adapterOf = ({ adapter, source }: KitNetwork): InstagramAdapter => {
    const { findPosts, removePost, canRemove } = adapter;
    if (findPosts === undefined || removePost === undefined || canRemove === undefined)
      throw new Error('the adapter lacks methods');
    return { ...adapter, ...source, findPosts, removePost, canRemove };
  };
  const kit = kitOf();
  const adapter = adapterOf(kit);
  const secretOf = (person: Person, scopes: readonly string[], host: Host) => {
    const now = state.now();
    const [from, until] = [now, now + 60 * dayMs].map((at) => new Date(at).toISOString()) as [string, string];
    if (host === 'ig') {
      const token = state.grant({ host, personId: person.id, holderId: null, scopes, isLong: true }, 60 * 86_400);
      return { secret: { accessToken: token, accessFrom: from, accessUntil: until }, expiresAt: until };
    }
    const page: Page = network.page(person);
    const holderId = network.holder({ pages: [page] }).id;
    const login = state.grant({ host, personId: null, holderId, scopes, isLong: true }, 60 * 86_400);
    const own = state.grant({ host, personId: person.id, holderId, scopes, isLong: true }, null);
    const secret = { loginToken: login, loginUntil: until, account: page.id, accessToken: own, accessUntil: null };
    return { secret, expiresAt: null, grant: holderId };
  };
  return {
    ...{ network, files, http, credentials, tools, kit, adapter, pauses },
    open: (more) => adapterOf(kitOf(more)),
    account: async ({ person = network.person(), by: host = by, scopes = scopesOf[host] } = {}) => {
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'instagram' as const };
      const { id: externalId, username } = person;
      const account = { id: randomUUID(), workspaceId: owner.workspaceId, externalId, username, scopes };
      await credentials.keep({ accountId: account.id, ...owner }, secretOf(person, scopes, host));
      return account;
    },
    request: (account, more = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'instagram', account },
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
    publish: async (request, adapterOfCall = adapter) => {
      const steps = new RecordedSteps(request, adapterOfCall.boundaryDeadlineMs);
      return { outcome: await adapterOfCall.publish(request, steps), steps };
    },
    close: () => {
      network.close();
      files.close();
    },
  };
};

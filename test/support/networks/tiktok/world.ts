/** Adapters of TikTok on a simulated TikTok, as the tests use them. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import { tiktokNetwork } from '#infra/platforms/tiktok/index.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { allScopes, type Person, startTikTok, type TikTokNetwork } from './index.ts';
import type { TikTokOptions } from './state.ts';

export const appOf = (network: Pick<TikTokNetwork, 'state' | 'api' | 'authorize'>): NetworkApp => ({
  ...{ id: network.state.app.clientKey, secret: network.state.app.clientSecret, version: null, monthlyReads: null },
  addresses: { api: network.api, authorize: network.authorize },
});

interface WorldTools {
  readonly credentials: CredentialStore;
  readonly clock: () => number;
  readonly boundaryDeadlineMs: number;
}

export interface TikTokWorld extends KitNetwork {
  readonly network: TikTokNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly files: HeldFiles;
  readonly connector: ConsentConnector;
  /** Another worker's, on the same network. */
  another(over?: Partial<WorldTools>, app?: Partial<NetworkApp>): KitNetwork;
  account(person?: Person, scopes?: readonly string[]): Promise<CommentRequest['account'] & InsightsAccount>;
  /** With a short video and `SELF_ONLY`, where nothing else is said. */
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
  close(): void;
}

export const tiktokWorld = async (
  options: TikTokOptions = {},
  over: Partial<WorldTools> = {},
): Promise<TikTokWorld> => {
  const network = await startTikTok(options);
  const files = heldFiles(network);
  const http = new TaggedHttp();
  const credentials = new MemoryCredentials();
  const tools = {
    ...{ http, credentials, appLimits: new MemoryAppLimits(), clock: () => network.state.now() },
    ...{ boundaryDeadlineMs: 1_500, pause: async () => {}, ...over },
  };
  const another: TikTokWorld['another'] = (more = {}, app = {}) =>
    networkOf(tiktokNetwork, { ...tools, ...more }, { ...appOf(network), ...app });
  const first = another();
  const [connector] = first.connectors;
  if (connector === undefined) throw new Error('TikTok has no way to connect');
  return {
    ...first,
    ...{ network, http, credentials, files, connector, another },
    account: async (person = network.person(), scopes = allScopes) => {
      const accessUntil = new Date(network.state.now() + 7_200_000).toISOString();
      const secret = { ...network.grant(person, scopes), accessUntil };
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'tiktok' as const };
      const { id: externalId, username } = person;
      const account = { id: randomUUID(), workspaceId: owner.workspaceId, externalId, username, scopes };
      await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null });
      return account;
    },
    request: (account, { overrides = {}, ...more } = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'tiktok', account },
      ...{ content: 'Good morning', overrides: { privacyLevel: 'SELF_ONLY', ...overrides }, aiDisclosure: false },
      ...{
        media: more.media ?? [files.video()],
        cover: null,
        coverFrameMs: null,
        thread: null,
        checkpoints: [],
        ...more,
      },
    }),
    publish: async (request, by = first.adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
    close: () => {
      files.remove();
      network.close();
    },
  };
};

/** Where the files of the operator are, as far as the simulated network can tell. */
export const provenHost = 'https://media.postline.test/blobs/';

export interface HeldFiles {
  /** An MP4 of so many bytes, which takes no place on the disk. Default 2,000. */
  video(over?: Partial<PublishMedia>, bytes?: number): PublishMedia;
  /** A JPEG that TikTok can fetch. @param host the beginning of its address */
  picture(over?: Partial<PublishMedia>, host?: string): PublishMedia;
  remove(): void;
}

const heldFiles = ({ state }: TikTokNetwork): HeldFiles => {
  const folder = mkdtempSync(path.join(tmpdir(), 'tiktok-'));
  state.proven.push(provenHost);
  const held = (
    bytes: number,
    over: Pick<PublishMedia, 'kind' | 'contentType'> & Partial<PublishMedia>,
  ): PublishMedia => {
    const mediaId = randomUUID();
    const file = path.join(folder, mediaId);
    writeFileSync(file, '\0\0\0\x18ftypmp42');
    truncateSync(file, bytes);
    return {
      ...{ mediaId, use: 'feed', bytes, width: 1_080, height: 1_920, durationMs: null, altText: null },
      sha256: createHash('sha256').update(mediaId).digest('hex'),
      ...{ file: async () => file, url: async () => '', ...over },
    };
  };
  return {
    video: (over = {}, bytes = 2_000) =>
      held(bytes, { kind: 'video', contentType: 'video/mp4', durationMs: 12_000, ...over }),
    picture: (over = {}, host = provenHost) => {
      const address = `${host}${randomUUID()}.jpg`;
      state.web.set(address, 'image/jpeg');
      return held(500, { kind: 'image', contentType: 'image/jpeg', url: async () => address, ...over });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

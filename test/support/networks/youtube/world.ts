/** YouTube of the kit on a simulated YouTube, as the tests use it. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type {
  CommentRequest,
  NativeScheduler,
  PlatformAdapter,
  PublishMedia,
  PublishRequest,
} from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import type { Tools } from '#infra/platforms/kit/tables.ts';
import { youtubeNetwork } from '#infra/platforms/youtube/index.ts';
import { readConfig } from '#runtime/process/config.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { allScopes, startYouTube, type YouTubeNetwork } from './index.ts';
import type { Channel, YouTubeOptions } from './state.ts';

export type YouTubeAccount = CommentRequest['account'] & InsightsAccount;
export type YouTubeAdapter = PlatformAdapter &
  Required<Pick<PlatformAdapter, 'removePost' | 'findPosts' | 'afterStep'>>;

export interface YouTubeWorld extends Omit<KitNetwork, 'adapter'> {
  readonly network: YouTubeNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly appLimits: MemoryAppLimits;
  readonly adapter: YouTubeAdapter;
  readonly scheduler: Required<NativeScheduler>;
  /** Another of the same, with other settings. */
  again(env?: Readonly<Record<string, string>>, over?: Partial<Tools>): KitNetwork;
  account(over?: Partial<Channel>, scopes?: readonly string[]): Promise<YouTubeAccount>;
  accountOf(channel: Channel, scopes?: readonly string[]): Promise<YouTubeAccount>;
  /** A file of so many bytes, of nothing but zeros. */
  video(bytes?: number, over?: Partial<PublishMedia>): PublishMedia;
  cover(): PublishMedia;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
  /** Ends it; each call must have been as the discovery documents have it. */
  close(): void;
}

export const youtubeWorld = async (options: YouTubeOptions = {}, over: Partial<Tools> = {}): Promise<YouTubeWorld> => {
  const network = await startYouTube(options);
  const folder = mkdtempSync(path.join(tmpdir(), 'youtube-'));
  const [http, credentials, appLimits] = [new TaggedHttp(), new MemoryCredentials(), new MemoryAppLimits()];
  const tools: Tools = {
    ...{ http, credentials, appLimits, clock: () => network.state.now(), boundaryDeadlineMs: 1_500 },
    pause: async () => undefined,
    ...over,
  };
  const again: YouTubeWorld['again'] = (env = {}, more = {}) => {
    const app = appOf('youtube', readConfig({ ...network.env, ...env }));
    if (app === null) throw new Error('there is no app');
    return networkOf(youtubeNetwork, { ...tools, ...more }, app);
  };
  const kit = again();
  const accountOf: YouTubeWorld['accountOf'] = async (channel, scopes = allScopes) => {
    const accessUntil = new Date(network.state.now() + 3_600_000).toISOString();
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'youtube' as const };
    const account = {
      id: randomUUID(),
      workspaceId: owner.workspaceId,
      externalId: channel.id,
      username: channel.handle,
    };
    const secret = { ...network.grant(channel, scopes), accessUntil };
    await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null, grant: channel.person });
    return { ...account, scopes };
  };
  const file = (name: string, bytes: number): string => {
    const to = path.join(folder, name);
    writeFileSync(to, '');
    truncateSync(to, bytes);
    return to;
  };
  const video: YouTubeWorld['video'] = (bytes = 1_000, more = {}) => ({
    ...{ mediaId: randomUUID(), kind: 'video', use: 'feed', contentType: 'video/mp4', bytes, altText: null },
    ...{ sha256: '0'.repeat(64), width: 1_920, height: 1_080, durationMs: 60_000 },
    ...{ file: async () => file(`video-${bytes}`, bytes), url: async () => '', ...more },
  });
  return {
    ...kit,
    ...{ network, http, credentials, appLimits, again, accountOf, video },
    adapter: kit.adapter as YouTubeAdapter,
    scheduler: kit.adapter.nativeScheduler?.('youtube') as Required<NativeScheduler>,
    account: (more = {}, scopes = allScopes) => accountOf(network.channel(more), scopes),
    cover: () => {
      const text = randomUUID();
      const to = path.join(folder, text);
      writeFileSync(to, text);
      return {
        ...video(text.length, { kind: 'image', use: 'cover', contentType: 'image/jpeg', durationMs: null }),
        ...{ file: async () => to, sha256: createHash('sha256').update(text).digest('hex') },
      };
    },
    request: (account, more = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'youtube', account },
      ...{ content: 'Good morning', overrides: {}, aiDisclosure: false, media: [video()], cover: null },
      ...{ coverFrameMs: null, thread: null, checkpoints: [], ...more },
    }),
    publish: async (request, by = kit.adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
    close: () => {
      network.close();
      rmSync(folder, { recursive: true, force: true });
      assert.deepEqual(network.state.unheld, []);
    },
  };
};

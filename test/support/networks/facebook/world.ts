/** Facebook of the kit on a simulated Facebook, as the tests use it. */
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
import { facebookNetwork } from '#infra/platforms/facebook/index.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import type { Tools } from '#infra/platforms/kit/tables.ts';
import { readConfig } from '#runtime/process/config.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { allScopes, type FacebookNetwork, startFacebook } from './index.ts';
import type { FacebookOptions, Page, Person } from './state.ts';

export type FacebookAccount = CommentRequest['account'] & InsightsAccount;
export type FacebookAdapter = PlatformAdapter &
  Required<Pick<PlatformAdapter, 'removePost' | 'findPosts' | 'afterStep'>>;

export interface FacebookWorld extends Omit<KitNetwork, 'adapter'> {
  readonly network: FacebookNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly appLimits: MemoryAppLimits;
  readonly adapter: FacebookAdapter;
  readonly scheduler: Required<NativeScheduler>;
  /** Another of the same, with other settings. */
  again(env?: Readonly<Record<string, string>>, over?: Partial<Tools>): KitNetwork;
  account(over?: Partial<Page>, scopes?: readonly string[], person?: Person): Promise<FacebookAccount>;
  /** A file of so many bytes, of nothing but zeros: horizontal, of a minute. */
  video(bytes?: number, over?: Partial<PublishMedia>): PublishMedia;
  /** The same, vertical, of twenty seconds. */
  reel(bytes?: number, over?: Partial<PublishMedia>): PublishMedia;
  photo(over?: Partial<PublishMedia>): PublishMedia;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
  close(): void;
}

export const facebookWorld = async (
  options: FacebookOptions = {},
  over: Partial<Tools> = {},
): Promise<FacebookWorld> => {
  const network = await startFacebook(options);
  const folder = mkdtempSync(path.join(tmpdir(), 'facebook-'));
  const [http, credentials, appLimits] = [new TaggedHttp(), new MemoryCredentials(), new MemoryAppLimits()];
  const tools: Tools = {
    ...{ http, credentials, appLimits, clock: () => network.state.now(), boundaryDeadlineMs: 1_500 },
    pause: async () => undefined,
    ...over,
  };
  const again: FacebookWorld['again'] = (env = {}, more = {}) => {
    const app = appOf('facebook', readConfig({ ...network.env, ...env }));
    if (app === null) throw new Error('there is no app');
    return networkOf(facebookNetwork, { ...tools, ...more }, app);
  };
  const kit = again();
  const file = (name: string, bytes: number): string => {
    const to = path.join(folder, name);
    writeFileSync(to, '');
    truncateSync(to, bytes);
    return to;
  };
  const video: FacebookWorld['video'] = (bytes = 1_000, more = {}) => ({
    ...{ mediaId: randomUUID(), kind: 'video', use: 'feed', contentType: 'video/mp4', bytes, altText: null },
    ...{ sha256: '0'.repeat(64), width: 1_920, height: 1_080, durationMs: 60_000 },
    ...{ file: async () => file(`video-${bytes}`, bytes), url: async () => '', ...more },
  });
  return {
    ...kit,
    ...{ network, http, credentials, appLimits, again, video },
    adapter: kit.adapter as FacebookAdapter,
    scheduler: kit.adapter.nativeScheduler?.('facebook') as Required<NativeScheduler>,
    account: async (more = {}, scopes = allScopes, person = network.person()) => {
      const page = network.pageOf(person, more);
      const { login, page: accessToken } = network.grant(person, page, scopes);
      const loginUntil = new Date(network.state.now() + 60 * 86_400_000).toISOString();
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'facebook' as const };
      const { id: externalId, username } = page;
      const account = { id: randomUUID(), workspaceId: owner.workspaceId, externalId, username, scopes };
      const secret = { accessToken, accessUntil: null, account: externalId, loginToken: login, loginUntil };
      await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null, grant: person.id });
      return account;
    },
    reel: (bytes = 1_000, more = {}) => video(bytes, { width: 1_080, height: 1_920, durationMs: 20_000, ...more }),
    photo: (more = {}) => {
      const text = randomUUID();
      const to = path.join(folder, text);
      writeFileSync(to, text);
      return {
        ...video(text.length, { kind: 'image', contentType: 'image/jpeg', durationMs: null }),
        ...{ file: async () => to, sha256: createHash('sha256').update(text).digest('hex'), ...more },
      };
    },
    request: (account, more = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'facebook', account },
      ...{ content: 'Good morning', overrides: {}, aiDisclosure: false, media: [], cover: null },
      ...{ coverFrameMs: null, thread: null, checkpoints: [], ...more },
    }),
    publish: async (request, by = kit.adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
    close: () => {
      network.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

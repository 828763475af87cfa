/**
 * A worker that publishes one video to YouTube, in a process of its own: the parent kills it and measures it. Its only argument
 * says what; it tells its checkpoints.
 */
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { youtubeNetwork } from '#infra/platforms/youtube/index.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { readConfig } from '#runtime/process/config.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';

export interface Reported {
  readonly env: Readonly<Record<string, string>>;
  readonly file: string;
  readonly media: Omit<PublishMedia, 'file' | 'url'>;
  readonly accessToken: string;
  readonly request: Omit<PublishRequest, 'media'>;
}

export type Tells =
  | { readonly kind: 'checkpoint'; readonly step: string; readonly data: Json }
  | { readonly kind: 'ended'; readonly outcome: Json; readonly grownBytes: number };

const { env, file, media, accessToken, request } = JSON.parse(process.argv[2] ?? '{}') as Reported;
const tell = (what: Tells): void => {
  process.send?.(what);
};

class ReportedSteps extends RecordedSteps {
  override async checkpoint(step: string, data: Json): Promise<void> {
    await super.checkpoint(step, data);
    tell({ kind: 'checkpoint', step, data });
  }
}

const credentials = new MemoryCredentials();
await credentials.keep(
  { accountId: request.account.id, workspaceId: '', clientId: '', platform: 'youtube' },
  { secret: { accessToken, accessUntil: new Date(Date.now() + 7_200_000).toISOString() }, expiresAt: null },
);
const app = appOf('youtube', readConfig(env));
if (app === null) throw new Error('there is no app');
const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
const tools = { http, credentials, appLimits: new MemoryAppLimits(), clock: Date.now };
const { adapter } = networkOf(youtubeNetwork, tools, app);
const asked = { ...request, media: [{ ...media, file: async () => file, url: async () => '' }] };
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
const outcome = await adapter.publish(asked, new ReportedSteps(asked, 60_000));
clearInterval(watch);
tell({ kind: 'ended', outcome: outcome as unknown as Json, grownBytes: most - before });
process.disconnect?.();

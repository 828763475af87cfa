/**
 * A worker that publishes one video to YouTube, in a process of its own: the parent kills it and measures it. Its only argument
 * says what; it tells its checkpoints.
 */
import { randomUUID } from 'node:crypto';
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
  /** A small video that is published before the memory is measured: the code of an upload is then loaded. Null: none. */
  readonly warmUp: Pick<Reported, 'file' | 'media'> | null;
}

export type Tells =
  | { readonly kind: 'checkpoint'; readonly step: string; readonly data: Json }
  | { readonly kind: 'ended'; readonly outcome: Json; readonly grownBytes: number };

const { env, file, media, accessToken, request, warmUp } = JSON.parse(process.argv[2] ?? '{}') as Reported;
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
const withFile = (of: Pick<Reported, 'file' | 'media'>) => ({
  ...of.media,
  file: async () => of.file,
  url: async () => '',
});
if (warmUp !== null) {
  const small = { ...request, targetId: randomUUID(), attempt: 1, checkpoints: [], media: [withFile(warmUp)] };
  const { kind } = await adapter.publish(small, new RecordedSteps(small, 60_000));
  if (kind !== 'published') throw new Error(`the small video came to ${kind}`);
}
const asked = { ...request, media: [withFile({ file, media })] };
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
const outcome = await adapter.publish(asked, new ReportedSteps(asked, 60_000));
clearInterval(watch);
tell({ kind: 'ended', outcome: outcome as unknown as Json, grownBytes: most - before });
process.disconnect?.();

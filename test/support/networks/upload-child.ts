/**
 * A worker that publishes one video, in a process of its own: its parent kills it and measures it. Its only argument says what;
 * it tells its checkpoints.
 */
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import { kitNetworks } from '#infra/platforms/live.ts';
import type { Members } from '#infra/platforms/shared/members.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryAppLimits } from './memory-app-limits.ts';
import { MemoryCredentials } from './memory-credentials.ts';

export interface GivenVideo {
  readonly file: string;
  readonly media: Omit<PublishMedia, 'file' | 'url'>;
}

export interface Reported {
  readonly app: NetworkApp;
  /** Of the account. */
  readonly secret: Members;
  readonly request: Omit<PublishRequest, 'media'>;
  readonly video: GivenVideo;
  /** A small video that is published before the memory is measured: the code of an upload is then loaded. Null: none. */
  readonly warmUp: GivenVideo | null;
}

export type Tells =
  | { readonly kind: 'checkpoint'; readonly step: string; readonly data: Json }
  | { readonly kind: 'ended'; readonly outcome: { readonly kind: string }; readonly grownBytes: number };

const { app, secret, request, video, warmUp } = JSON.parse(process.argv[2] ?? '{}') as Reported;
const tell = (what: Tells): void => {
  process.send?.(what);
};

class ReportedSteps extends RecordedSteps {
  override async checkpoint(step: string, data: Json): Promise<void> {
    await super.checkpoint(step, data);
    tell({ kind: 'checkpoint', step, data });
  }
}

const { account, platform } = request;
const parts = kitNetworks[platform];
if (parts === undefined) throw new Error(`${platform} is no network of the kit`);
const credentials = new MemoryCredentials();
await credentials.keep({ accountId: account.id, workspaceId: '', clientId: '', platform }, { secret, expiresAt: null });
const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
const { adapter } = networkOf(
  parts,
  { http, credentials, appLimits: new MemoryAppLimits(), clock: Date.now, pause: async () => {} },
  app,
);
const withFile = ({ file, media }: GivenVideo): PublishMedia => ({
  ...media,
  file: async () => file,
  url: async () => '',
});
if (warmUp !== null) {
  const small = { ...request, targetId: randomUUID(), attempt: 1, checkpoints: [], media: [withFile(warmUp)] };
  const { kind } = await adapter.publish(small, new RecordedSteps(small, 60_000));
  if (kind !== 'published' && kind !== 'accepted') throw new Error(`the small video came to ${kind}`);
}
const asked = { ...request, media: [withFile(video)] };
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
const outcome = await adapter.publish(asked, new ReportedSteps(asked, 60_000));
clearInterval(watch);
tell({ kind: 'ended', outcome, grownBytes: most - before });
process.disconnect?.();

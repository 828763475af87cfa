/**
 * A worker that publishes one video to X, in a process of its own: the parent kills it and measures it. Its only argument
 * says what; it tells its checkpoints.
 */
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { XAdapter } from '#test/support/networks/x/adapter.ts';
import { mediaOf } from '#test/support/networks/x/world.ts';

export interface Reported {
  readonly origin: string;
  readonly file: string;
  readonly bytes: number;
  readonly mediaId: string;
  readonly accessToken: string;
  readonly request: Omit<PublishRequest, 'media'>;
}

export type Tells =
  | { readonly kind: 'checkpoint'; readonly step: string; readonly data: Json }
  | { readonly kind: 'ended'; readonly outcome: Json; readonly grownBytes: number };

const { origin, file, bytes, mediaId, accessToken, request } = JSON.parse(process.argv[2] ?? '{}') as Reported;
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
  { accountId: request.account.id, workspaceId: '', clientId: '', platform: 'x' },
  { secret: { accessToken, accessUntil: new Date(Date.now() + 7_200_000).toISOString() }, expiresAt: null },
);
const adapter = new XAdapter({
  ...{ http: new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] })), credentials },
  ...{
    app: { clientId: '', clientSecret: null },
    clock: () => Date.now(),
    appLimits: new MemoryAppLimits(),
    api: origin,
  },
  pause: async () => {},
});
const media = [mediaOf(file, { mediaId, kind: 'video', contentType: 'video/mp4', bytes })];
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
const asked = { ...request, media };
const outcome = await adapter.publish(asked, new ReportedSteps(asked, 10_000));
clearInterval(watch);
tell({ kind: 'ended', outcome: outcome as unknown as Json, grownBytes: most - before });
process.disconnect?.();

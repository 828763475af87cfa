/** Adapters of X on a simulated X, as the tests use them. */
import { randomUUID } from 'node:crypto';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { XAdapter, type XOptions } from './adapter.ts';
import { type Person, startX, type XNetwork } from './index.ts';
import type { XNetworkOptions } from './state.ts';

const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });
const real = new GuardedNetworkHttp(guard);

/** Marks each call with its target, which the network's ledger keeps. */
class TaggedHttp implements NetworkHttp {
  readonly calls: NetworkCall[] = [];

  send(call: NetworkCall, signal: AbortSignal) {
    this.calls.push(call);
    const { targetId } = call.subject;
    const tag = targetId === null ? {} : { 'x-test-tag': targetId };
    return real.send({ ...call, headers: { ...call.headers, ...tag } }, signal);
  }
}

export interface XWorld {
  readonly network: XNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly options: XOptions;
  readonly adapter: XAdapter;
  /** Milliseconds of each wait that the adapter asked for; none is waited. */
  readonly pauses: number[];
  account(person?: Person, scopes?: readonly string[]): Promise<CommentRequest['account'] & InsightsAccount>;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: XAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<XAdapter['publish']>>; readonly steps: RecordedSteps }>;
}

export const xWorld = async (networkOptions: XNetworkOptions = {}, over: Partial<XOptions> = {}): Promise<XWorld> => {
  const network = await startX(networkOptions);
  const http = new TaggedHttp();
  const credentials = new MemoryCredentials();
  const pauses: number[] = [];
  const { clientId, clientSecret } = network.state.app;
  const options: XOptions = {
    ...{
      http,
      credentials,
      app: { clientId, clientSecret },
      clock: () => network.state.now(),
      appLimits: new MemoryAppLimits(),
    },
    ...{ api: network.origin, boundaryDeadlineMs: 1_500 },
    pause: async (ms) => {
      pauses.push(ms);
    },
    ...over,
  };
  const adapter = new XAdapter(options);
  return {
    ...{ network, http, credentials, options, adapter, pauses },
    account: async (person = network.person(), scopes = undefined) => {
      const secret = {
        ...network.grant(person, scopes),
        accessUntil: new Date(network.state.now() + 7_200_000).toISOString(),
      };
      const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'x' as const };
      const { id: externalId, username } = person;
      const { workspaceId } = owner;
      const account = { id: randomUUID(), workspaceId, externalId, username, scopes: scopes ?? [] };
      await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null });
      return account;
    },
    request: (account, more = {}) => ({
      ...{
        workspaceId: randomUUID(),
        targetId: randomUUID(),
        attempt: 1,
        platform: 'x',
        account,
        content: 'Good morning',
        overrides: {},
      },
      ...{ aiDisclosure: false, media: [], cover: null, coverFrameMs: null, thread: null, checkpoints: [], ...more },
    }),
    publish: async (request, by = adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
  };
};

/** A file of nothing but its size; the simulator looks into none. */
export const mediaOf = (
  file: string,
  over: Partial<PublishMedia> & Pick<PublishMedia, 'kind' | 'contentType' | 'bytes'>,
): PublishMedia => ({
  ...{ mediaId: randomUUID(), use: 'feed', sha256: '0'.repeat(64), width: 640, height: 480, durationMs: null },
  ...{ altText: null, file: async () => file, url: async () => '' },
  ...over,
});

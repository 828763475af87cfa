/** Adapters of X on a simulated X, as the tests use them. */
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { XAdapter, type XOptions } from './adapter.ts';
import { type Person, startX, type XNetwork } from './index.ts';
import type { XNetworkOptions } from './state.ts';

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

/** LinkedIn of the kit on a simulated LinkedIn, as the tests use it. */
import { randomUUID } from 'node:crypto';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import type { CommentRequest, PlatformAdapter, PublishRequest } from '#contracts/ports/platform.ts';
import type { InsightsAccount } from '#contracts/ports/platform-insights.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { type KitNetwork, networkOf } from '#infra/platforms/kit/network.ts';
import type { Tools } from '#infra/platforms/kit/tables.ts';
import { linkedinNetwork } from '#infra/platforms/linkedin/index.ts';
import { readConfig } from '#runtime/process/config.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { TaggedHttp } from '#test/support/networks/world-parts.ts';
import { type LinkedInNetwork, startLinkedIn } from './index.ts';
import type { LinkedInOptions, Person } from './state.ts';

export type LinkedInAccount = CommentRequest['account'] & InsightsAccount;
export type LinkedInAdapter = PlatformAdapter & Required<Pick<PlatformAdapter, 'removePost' | 'findPosts'>>;

export interface LinkedInWorld extends Omit<KitNetwork, 'adapter'> {
  readonly network: LinkedInNetwork;
  readonly http: TaggedHttp;
  readonly credentials: MemoryCredentials;
  readonly appLimits: MemoryAppLimits;
  readonly adapter: LinkedInAdapter;
  /** Milliseconds of each wait that the adapter asked for; none is waited. */
  readonly pauses: number[];
  /** Another of the same, with other settings. */
  again(env?: Readonly<Record<string, string>>, over?: Partial<Tools>): KitNetwork;
  member(person?: Person, scopes?: readonly string[]): Promise<LinkedInAccount>;
  /** An organization of a new member. */
  organization(role?: string): Promise<LinkedInAccount>;
  /** An account of an organization that is there. */
  accountOf(person: Person, externalId: string, scopes?: readonly string[]): Promise<LinkedInAccount>;
  request(account: PublishRequest['account'], over?: Partial<PublishRequest>): PublishRequest;
  publish(
    request: PublishRequest,
    by?: PlatformAdapter,
  ): Promise<{ readonly outcome: Awaited<ReturnType<PlatformAdapter['publish']>>; readonly steps: RecordedSteps }>;
}

export const linkedinWorld = async (
  options: LinkedInOptions = {},
  over: Partial<Tools> = {},
): Promise<LinkedInWorld> => {
  const network = await startLinkedIn(options);
  const [http, credentials, appLimits] = [new TaggedHttp(), new MemoryCredentials(), new MemoryAppLimits()];
  const pauses: number[] = [];
  const tools: Tools = {
    ...{ http, credentials, appLimits, clock: () => network.state.now(), boundaryDeadlineMs: 1_500 },
    pause: async (ms) => {
      pauses.push(ms);
    },
    ...over,
  };
  const again: LinkedInWorld['again'] = (env = {}, more = {}) => {
    const app = appOf('linkedin', readConfig({ ...network.env, ...env }));
    if (app === null) throw new Error('there is no app');
    return networkOf(linkedinNetwork(), { ...tools, ...more }, app);
  };
  const kit = again();
  const accountOf: LinkedInWorld['accountOf'] = async (person, externalId, scopes) => {
    const accessUntil = new Date(network.state.now() + 60 * 86_400_000).toISOString();
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'linkedin' as const };
    const account = { id: randomUUID(), workspaceId: owner.workspaceId, externalId, username: null };
    const secret = { ...network.grant(person, scopes), accessUntil };
    await credentials.keep({ accountId: account.id, ...owner }, { secret, expiresAt: null, grant: person.id });
    return { ...account, scopes: scopes ?? [] };
  };
  return {
    ...kit,
    ...{ network, http, credentials, appLimits, pauses, again, accountOf },
    adapter: kit.adapter as LinkedInAdapter,
    member: (person = network.person(), scopes = undefined) => accountOf(person, `urn:li:person:${person.id}`, scopes),
    organization: (role) => {
      const person = network.person();
      return accountOf(person, `urn:li:organization:${network.organization(person, role).id}`);
    },
    request: (account, more = {}) => ({
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform: 'linkedin', account },
      ...{ content: 'Good morning', overrides: { visibility: 'PUBLIC' }, aiDisclosure: false, media: [], cover: null },
      ...{ coverFrameMs: null, thread: null, checkpoints: [], ...more },
    }),
    publish: async (request, by = kit.adapter) => {
      const steps = new RecordedSteps(request, by.boundaryDeadlineMs);
      return { outcome: await by.publish(request, steps), steps };
    },
  };
};

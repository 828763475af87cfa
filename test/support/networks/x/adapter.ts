/** The network X of the kit in the pieces that its tests take hold of. */
import type { AppLimits } from '#contracts/ports/app-limits.ts';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { Credential, CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { OnLimits, PlatformAdapter } from '#contracts/ports/platform.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { NetworkClient, refusedOf } from '#infra/platforms/kit/client.ts';
import { beforeBoundary, type RefusedAnswer } from '#infra/platforms/kit/errors.ts';
import { networkOf } from '#infra/platforms/kit/network.ts';
import * as oauth from '#infra/platforms/kit/oauth.ts';
import { textIn } from '#infra/platforms/shared/members.ts';
import { offer, type XSettings, xNetwork } from '#infra/platforms/x/index.ts';
import { tables } from '#infra/platforms/x/tables.ts';

interface XApp {
  readonly clientId: string;
  readonly clientSecret: string | null;
}

interface OfApp {
  readonly http: NetworkHttp;
  readonly app: XApp;
  readonly clock: () => number;
  readonly api?: string;
  readonly authorize?: string;
  readonly monthlyReads?: number;
}

export interface XOptions extends Omit<OfApp, 'authorize'>, XSettings {
  readonly credentials: CredentialStore;
  readonly appLimits: AppLimits;
  readonly boundaryDeadlineMs?: number;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onLimits?: OnLimits;
}

const usual = rulesOf('x').app?.addresses;

const appOf = ({ app, api, authorize, monthlyReads }: Omit<OfApp, 'http' | 'clock'>): NetworkApp => ({
  id: app?.clientId,
  secret: app?.clientSecret,
  addresses: { api: api ?? usual?.api ?? '', authorize: authorize ?? usual?.authorize ?? '' },
  version: null,
  monthlyReads: monthlyReads ?? null,
});

/** A class, which tests watch by extending it. */
export class XAdapter implements PlatformAdapter, InsightsSource {
  readonly #adapter: PlatformAdapter;
  readonly #source: InsightsSource;
  readonly boundaryDeadlineMs: number;
  readonly insightsVersion: string;
  readonly minIntervalMs: number;
  readonly maxAheadMs: number | null;
  readonly nightAgesMs: readonly number[];

  constructor(options: XOptions) {
    const { adapter, source } = networkOf(xNetwork(options), options, appOf(options));
    this.#adapter = adapter;
    this.#source = source;
    this.boundaryDeadlineMs = adapter.boundaryDeadlineMs;
    this.insightsVersion = source.insightsVersion;
    this.minIntervalMs = source.minIntervalMs;
    this.maxAheadMs = source.maxAheadMs;
    this.nightAgesMs = source.nightAgesMs ?? [];
  }

  settleWindowMs: PlatformAdapter['settleWindowMs'] = (...asked) => this.#adapter.settleWindowMs(...asked);
  absenceIsProof: PlatformAdapter['absenceIsProof'] = (...asked) => this.#adapter.absenceIsProof(...asked);
  listsOwnPosts: PlatformAdapter['listsOwnPosts'] = (...asked) => this.#adapter.listsOwnPosts(...asked);

  publish(...given: Parameters<PlatformAdapter['publish']>) {
    return this.#adapter.publish(...given);
  }

  reconcile(...given: Parameters<PlatformAdapter['reconcile']>) {
    return this.#adapter.reconcile(...given);
  }

  findPosts(...[request]: Parameters<NonNullable<PlatformAdapter['findPosts']>>) {
    if (this.#adapter.findPosts === undefined) throw new Error('nobody can be asked');
    return this.#adapter.findPosts(request);
  }

  comment(...given: Parameters<PlatformAdapter['comment']>) {
    return this.#adapter.comment(...given);
  }

  removePost(...given: Parameters<NonNullable<PlatformAdapter['removePost']>>) {
    if (this.#adapter.removePost === undefined) throw new Error('nothing can be removed');
    return this.#adapter.removePost(...given);
  }

  fetchPostInsights(...given: Parameters<InsightsSource['fetchPostInsights']>) {
    return this.#source.fetchPostInsights(...given);
  }

  fetchAccountInsights(...given: Parameters<InsightsSource['fetchAccountInsights']>) {
    return this.#source.fetchAccountInsights(...given);
  }
}

const toolsOf = (options: OfApp): oauth.OAuthTools => ({ ...options, oauth: tables.oauth, app: appOf(options) });
const unused = {} as CredentialStore;

export const xConsent = (options: OfApp & { readonly appLimits: AppLimits }): ConsentConnector => {
  const [connector] = networkOf(xNetwork(), { ...options, credentials: unused }, appOf(options)).connectors;
  if (connector === undefined) throw new Error('X has no way to connect');
  return connector;
};

export const { newVerifier } = oauth;

export const authorizeUrl = (options: OfApp, asked: Parameters<typeof oauth.authorizeUrl>[1]): string =>
  oauth.authorizeUrl(toolsOf(options), asked);

export const exchangeCode = (options: OfApp, asked: Parameters<typeof oauth.exchangeCode>[1], signal: AbortSignal) =>
  oauth.exchangeCode(toolsOf(options), asked, signal);

export const refreshTokens = (
  options: OfApp,
  former: Credential,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
) => oauth.refreshTokens(toolsOf(options), former, subject, signal);

export const revokeTokens = (
  options: OfApp,
  former: Pick<Credential, 'secret'>,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
) => oauth.revokeTokens(toolsOf(options), former, subject, signal);

/** Whose consent it is; X tells the subscription beside it. */
export const lookUpAccount = async (options: OfApp, token: string, signal: AbortSignal) => {
  const kit = { ...options, appLimits: {} as AppLimits, credentials: unused, tables, app: appOf(options) };
  const client = new NetworkClient(kit);
  let subscription: string | null = null;
  const found = await offer({
    ...{ token, said: {}, scopes: [], workspaceId: '', endsAt: null },
    call: async (ask) => {
      const answer = await client.callAs(token, ask, signal);
      if (answer.kind === 'ok') subscription = textIn(answer.body.data, 'subscription_type');
      return answer;
    },
  });
  if (found.kind !== 'offered') return found;
  const [one] = found.accounts;
  if (one === undefined) throw new Error('X shows no account');
  return { kind: 'found', profile: { ...one.profile, subscription } } as const;
};

/** What an answer means of a call that makes nothing. */
export const beforeCreate = (refused: Omit<RefusedAnswer, 'row' | 'failure' | 'named'>, now: number) =>
  beforeBoundary(refusedOf({ tables, clock: () => now }, refused), now);

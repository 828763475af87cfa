/** The networks that have an adapter of their own: one line each. */
import type { Connector } from '#contracts/ports/connector.ts';
import type { Credential, CredentialStore, Refresh } from '#contracts/ports/credentials.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { BlueskyAdapter, BlueskyInsights, blueskyConnector, endSession, refreshSession } from './bluesky/index.ts';
import { TelegramAdapter, TelegramInsights, telegramConnector } from './telegram/index.ts';

export interface LiveOptions {
  readonly credentials: CredentialStore;
  readonly http: NetworkHttp;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly config: {
    readonly boundaryDeadlineMs: number | null;
    readonly blueskyResolver: string;
    readonly blueskyDirectory: string;
    readonly blueskyAppView: string;
    readonly telegramApi: string;
  };
}

type Each<T> = Readonly<Partial<Record<Platform, T>>>;

export interface LiveNetworks {
  readonly adapters: Each<PlatformAdapter>;
  readonly sources: Each<InsightsSource>;
  readonly connectors: Each<Connector>;
  /** Ask a network once for a fresh credential. */
  readonly refreshers: Each<(former: Credential, signal: AbortSignal) => Promise<Refresh>>;
  /** Milliseconds before its end at which a credential that nobody used is refreshed. */
  readonly refreshWindows: Each<number>;
  /** Ask a network once to take back what it gave; `revoked` also where it no longer knows it. */
  readonly revokers: Each<
    (credential: Credential, accountId: string, signal: AbortSignal) => Promise<'revoked' | 'unavailable'>
  >;
}

export const liveNetworks = ({ credentials, http, clock, config }: LiveOptions): LiveNetworks => {
  const {
    boundaryDeadlineMs,
    blueskyResolver: resolver,
    blueskyDirectory: directory,
    blueskyAppView: appView,
    telegramApi: api,
  } = config;
  const shared = { http, credentials, clock, ...(boundaryDeadlineMs === null ? {} : { boundaryDeadlineMs }) };
  return {
    adapters: { bluesky: new BlueskyAdapter(shared), telegram: new TelegramAdapter({ ...shared, api }) },
    sources: {
      bluesky: new BlueskyInsights({ ...shared, appView }),
      telegram: new TelegramInsights({ ...shared, api }),
    },
    connectors: {
      bluesky: blueskyConnector({ http, resolver, directory }),
      telegram: telegramConnector({ http, api }),
    },
    refreshers: {
      bluesky: (former, signal) => refreshSession(http, former, { accountId: '', targetId: null }, signal),
    },
    // A session of 90 days that no post has renewed.
    refreshWindows: { bluesky: 14 * 86_400_000 },
    revokers: {
      bluesky: (credential, accountId, signal) => endSession(http, credential, { accountId, targetId: null }, signal),
    },
  };
};

/** The networks that have an adapter of their own: one entry each. */

import type { AppLimits } from '#contracts/ports/app-limits.ts';
import type { ConnectCodes } from '#contracts/ports/connect-codes.ts';
import type { Connector } from '#contracts/ports/connector.ts';
import type { CredentialStore, Refresher, Revoker } from '#contracts/ports/credentials.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { NetworkInbox } from '#contracts/ports/network-inbox.ts';
import type { NetworkListener } from '#contracts/ports/network-listener.ts';
import type { OnLimits, PlatformAdapter } from '#contracts/ports/platform.ts';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { PushedPosts } from '#contracts/ports/pushed-posts.ts';
import type { AppSettings } from '#domain/platforms/rules.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { type BlueskyConfig, liveBluesky } from './bluesky/index.ts';
import { facebookNetwork } from './facebook/index.ts';
import { instagramNetwork } from './instagram/index.ts';
import { appOfLogin, joined } from './kit/logins.ts';
import { type NetworkParts, networkOf } from './kit/network.ts';
import { linkedinNetwork } from './linkedin/index.ts';
import { pinterestNetwork } from './pinterest/index.ts';
import { liveTelegram, type TelegramConfig } from './telegram/index.ts';
import { threadsNetwork } from './threads/index.ts';
import { tiktokNetwork } from './tiktok/index.ts';
import { xNetwork } from './x/index.ts';
import { youtubeNetwork } from './youtube/index.ts';

/** What networks gave us, and what they reported. */
export interface LiveStores {
  readonly credentials: CredentialStore;
  readonly connectCodes: ConnectCodes;
  readonly pushedPosts: PushedPosts;
  readonly appLimits: AppLimits;
}

export interface LiveOptions {
  readonly stores: LiveStores;
  readonly http: NetworkHttp;
  /** Of the accounts whose posts go out here. */
  readonly onLimits?: OnLimits;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly config: BlueskyConfig & TelegramConfig & AppSettings & { readonly boundaryDeadlineMs: number | null };
}

/** What one network brings. */
export interface LiveNetwork {
  readonly adapter: PlatformAdapter;
  readonly source: InsightsSource;
  /** Absent: the network tells nothing of an account before a post. */
  readonly accounts?: AccountSource;
  /** Ways to connect an account, in the order in which the page offers them. */
  readonly connectors: readonly Connector[];
  /** Absent: its credentials do not end. */
  readonly refresher?: Refresher;
  /** Milliseconds before its end at which a credential that nobody used is refreshed. */
  readonly refreshWindowMs?: number;
  /** Absent: the network has nothing to take back. */
  readonly revoker?: Revoker;
  /** Absent: the network tells nothing by itself, or not here. */
  readonly listener?: NetworkListener;
  /** Absent: the network does not call us. */
  readonly inbox?: NetworkInbox;
}

type Each<T> = Readonly<Partial<Record<Platform, T>>>;

export interface LiveNetworks {
  readonly adapters: Each<PlatformAdapter>;
  readonly sources: Each<InsightsSource>;
  readonly accounts: Each<AccountSource>;
  readonly connectors: Each<readonly Connector[]>;
  readonly refreshers: Each<Refresher>;
  readonly refreshWindows: Each<number>;
  readonly revokers: Each<Revoker>;
  readonly listeners: Each<NetworkListener>;
  readonly inboxes: Each<NetworkInbox>;
}

/** The networks of the kit. */
export const kitNetworks: Each<NetworkParts> = {
  facebook: facebookNetwork,
  instagram: instagramNetwork,
  linkedin: linkedinNetwork(),
  pinterest: pinterestNetwork,
  threads: threadsNetwork(),
  tiktok: tiktokNetwork,
  x: xNetwork(),
  youtube: youtubeNetwork,
};

/** Each way in which accounts of a network come: the network itself, and its other logins. */
export const loginsOf = (parts: NetworkParts | undefined): readonly NetworkParts[] =>
  parts === undefined ? [] : [parts, ...loginsOf(parts.alsoBy)];

const networksOf = ({ stores, http, clock, config, onLimits }: LiveOptions): Each<LiveNetwork | null> => {
  const { boundaryDeadlineMs } = config;
  const { credentials, connectCodes: codes, pushedPosts: pushed, appLimits } = stores;
  const shared = {
    ...{ http, credentials, clock },
    ...(boundaryDeadlineMs === null ? {} : { boundaryDeadlineMs }),
    ...(onLimits === undefined ? {} : { onLimits }),
  };
  const ofKit = platforms.flatMap((platform) => {
    const logins = loginsOf(kitNetworks[platform]).flatMap((parts) => {
      const app = appOfLogin(parts.tables, config);
      return app === null ? [] : [networkOf(parts, { ...shared, appLimits }, app)];
    });
    const [first, ...others] = logins;
    return first === undefined ? [] : [[platform, joined([first, ...others], credentials)]];
  });
  return {
    ...(Object.fromEntries(ofKit) as Each<LiveNetwork>),
    bluesky: liveBluesky(shared, config),
    telegram: liveTelegram({ ...shared, codes, pushed }, config),
  };
};

export const liveNetworks = (options: LiveOptions): LiveNetworks => {
  const networks = Object.entries(networksOf(options));
  const each = <T>(pick: (network: LiveNetwork) => T | undefined): Each<T> =>
    Object.fromEntries(
      networks.flatMap(([platform, network]) => {
        const one = network === null ? undefined : pick(network);
        return one === undefined ? [] : [[platform, one]];
      }),
    );
  return {
    adapters: each(({ adapter }) => adapter),
    sources: each(({ source }) => source),
    accounts: each(({ accounts }) => accounts),
    connectors: each(({ connectors }) => (connectors.length === 0 ? undefined : connectors)),
    refreshers: each(({ refresher }) => refresher),
    refreshWindows: each(({ refreshWindowMs }) => refreshWindowMs),
    revokers: each(({ revoker }) => revoker),
    listeners: each(({ listener }) => listener),
    inboxes: each(({ inbox }) => inbox),
  };
};

import type { Refresher, Revoker } from '#contracts/ports/credentials.ts';
import { BlueskyAdapter } from './adapter.ts';
import { blueskyConnector } from './connect.ts';
import { BlueskyInsights } from './insights.ts';
import type { ProofKeys } from './oauth/client.ts';
import { blueskyConsent } from './oauth/connect.ts';
import type { BlueskyOptions } from './options.ts';
import { endSession, refreshSession } from './session.ts';

/** Bluesky: by the owner's consent where our client has a key, and by an app password. */

export interface BlueskyConfig {
  readonly blueskyResolver: string;
  readonly blueskyDirectory: string;
  readonly blueskyAppView: string;
  /** Null: owners are not asked for consent. */
  readonly blueskyOauthKeys: ProofKeys | null;
}

const dayMs = 86_400_000;

export const liveBluesky = (
  shared: Omit<BlueskyOptions, 'clientKeys' | 'appView'>,
  { blueskyResolver: resolver, blueskyDirectory: directory, blueskyAppView: appView, blueskyOauthKeys }: BlueskyConfig,
) => {
  const { http, clock } = shared;
  const keys = blueskyOauthKeys ?? [];
  const tokens = { http, clock, keys };
  const options = { http, resolver, directory };
  const refresher: Refresher = (former, signal, { accountId }) =>
    refreshSession(tokens, former, { accountId, targetId: null }, signal);
  const revoker: Revoker = (credential, accountId, signal) =>
    endSession(tokens, credential, { accountId, targetId: null }, signal);
  return {
    adapter: new BlueskyAdapter({ ...shared, clientKeys: keys }),
    source: new BlueskyInsights({ ...shared, appView }),
    connectors: [
      ...(blueskyOauthKeys === null ? [] : [blueskyConsent({ ...options, clock, keys })]),
      blueskyConnector(options),
    ],
    ...{ refresher, revoker },
    // A session of 90 days that no post has renewed.
    refreshWindowMs: 14 * dayMs,
  };
};

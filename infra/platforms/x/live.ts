import type { Refresher, Revoker } from '#contracts/ports/credentials.ts';
import { XAdapter } from './adapter.ts';
import { xConsent } from './connect.ts';
import { type OAuthOptions, refreshTokens, revokeTokens } from './oauth.ts';
import type { XOptions } from './options.ts';

/** X, where the operator has an app there. */

export interface XConfig {
  /** Null: the operator has no app. */
  readonly xClientId: string | null;
  readonly xClientSecret: string | null;
  readonly xApi: string;
  readonly xAuthorize: string;
  /** Reads of a month: a post is one, a person two. */
  readonly xMonthlyReads: number;
}

/** Null: X is not offered. */
export const liveX = (
  shared: Omit<XOptions, 'app' | 'api' | 'monthlyReads'>,
  { xClientId, xClientSecret, xApi: api, xAuthorize: authorize, xMonthlyReads }: XConfig,
) => {
  if (xClientId === null) return null;
  const app = { clientId: xClientId, clientSecret: xClientSecret };
  const { http, clock } = shared;
  const oauth: OAuthOptions = { http, clock, app, api, authorize };
  const adapter = new XAdapter({ ...shared, app, api, monthlyReads: xMonthlyReads });
  const refresher: Refresher = (former, signal, { accountId }) =>
    refreshTokens(oauth, former, { accountId, targetId: null }, signal);
  const revoker: Revoker = async (credential, accountId, signal) => {
    const { kind } = await revokeTokens(oauth, credential, { accountId, targetId: null }, signal);
    return kind === 'revoked' ? 'revoked' : 'unavailable';
  };
  return {
    ...{
      adapter,
      source: adapter,
      connectors: [xConsent({ ...oauth, appLimits: shared.appLimits, monthlyReads: xMonthlyReads })],
      refresher,
      revoker,
    },
    // X ends a refresh token that nobody used for about six months; the adapter counts 150 days.
    refreshWindowMs: 30 * 86_400_000,
  };
};

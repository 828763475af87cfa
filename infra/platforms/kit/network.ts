import { setTimeout as delay } from 'node:timers/promises';
import type { ConsentConnector } from '#contracts/ports/connector.ts';
import type { Refresher, Revoker } from '#contracts/ports/credentials.ts';
import type { NetworkInbox } from '#contracts/ports/network-inbox.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import { readingOf, rulesOf } from '#domain/platforms/index.ts';
import type { Members } from '../shared/members.ts';
import type { NetworkApp } from './app.ts';
import { NetworkClient } from './client.ts';
import { consentOf, type OfferAccounts } from './consent.ts';
import { failureOf } from './errors.ts';
import { askedBy, refreshTokens, revokeTokens } from './oauth.ts';
import type { Kit, NetworkTables, Tools } from './tables.ts';

/** A network of the kit: its tables and what it does itself, put together as `live.ts` takes a network. */

/** What the methods of a network work with. */
export interface Bound extends Kit {
  readonly client: NetworkClient;
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly boundaryDeadlineMs: number;
}

type OfRules = 'boundaryDeadlineMs' | 'settleWindowMs' | 'absenceIsProof' | 'listsOwnPosts' | 'apiVersion';
/** A network without first comments has no `comment`; what the rules of the network say of it need not be said again. */
export type NetworkMethods = Omit<PlatformAdapter, OfRules | 'comment'> &
  Partial<Pick<PlatformAdapter, OfRules | 'comment'>> &
  Pick<InsightsSource, 'fetchPostInsights' | 'fetchAccountInsights'> &
  Partial<AccountSource>;

export interface NetworkParts {
  readonly tables: NetworkTables;
  readonly offer: OfferAccounts;
  methods(bound: Bound): NetworkMethods;
  /** How the network calls us, signed with the secret of the app. Absent: it does not. */
  readonly inbox?: (secret: string, clientId: string) => NetworkInbox;
  /** Another login by which accounts of the network come. Absent: there is one. */
  readonly alsoBy?: NetworkParts;
  /** Of a network with several: whether a credential came by this one. */
  readonly takes?: (secret: Members) => boolean;
}

export interface KitNetwork extends Pick<NetworkParts, 'takes'> {
  readonly adapter: PlatformAdapter;
  readonly source: InsightsSource;
  readonly accounts?: AccountSource;
  readonly connectors: readonly ConsentConnector[];
  readonly refresher?: Refresher;
  readonly refreshWindowMs?: number;
  readonly revoker?: Revoker;
  readonly inbox?: NetworkInbox;
}

const byTheClock = async (ms: number, signal: AbortSignal): Promise<void> => {
  await delay(ms, undefined, { signal });
};

const usualDeadlineMs = 10_000;

const noComment: PlatformAdapter['comment'] = async () => ({
  kind: 'failed',
  failure: failureOf('permission', null, 'the network has no comments of apps'),
});

export const networkOf = (parts: NetworkParts, tools: Tools, app: NetworkApp): KitNetwork => {
  const { tables } = parts;
  const { platform, insights } = tables;
  const oauth = askedBy(tables.oauth, app);
  // Each account of a login has a copy of its tokens: the first one that is refreshed would end those of all others.
  if (oauth.grant === 'person' && oauth.refresh?.kind === 'rotates') {
    throw new Error(`${platform}: a refresh token that rotates cannot be shared by the accounts of a person`);
  }
  const kit: Kit = { ...tools, tables, app };
  const client = new NetworkClient(kit);
  const { pause = byTheClock, http, clock } = tools;
  const boundaryDeadlineMs = tools.boundaryDeadlineMs ?? tables.boundaryDeadlineMs ?? usualDeadlineMs;
  const { fetchPostInsights, fetchAccountInsights, choices, facts, ...methods } = parts.methods({
    ...{ ...kit, client, pause, boundaryDeadlineMs },
  });
  const { name } = rulesOf(platform);
  const oauthTools = { http, oauth, app, clock };
  return {
    adapter: {
      ...{ boundaryDeadlineMs, comment: noComment },
      settleWindowMs: (_platform, { externalId }) => readingOf(platform, externalId).settleWindowMs,
      absenceIsProof: (_platform, { externalId }) => readingOf(platform, externalId).absenceIsProof,
      listsOwnPosts: (_platform, { externalId }) => readingOf(platform, externalId).listsOwnPosts,
      apiVersion: () => app.version,
      ...methods,
    },
    source: { ...insights, fetchPostInsights, fetchAccountInsights },
    ...(parts.inbox === undefined || app.secret === null ? {} : { inbox: parts.inbox(app.secret, app.id) }),
    ...(choices === undefined ? {} : { accounts: { choices, ...(facts === undefined ? {} : { facts }) } }),
    ...(parts.takes === undefined ? {} : { takes: parts.takes }),
    connectors: [
      consentOf({
        ...{ ...oauthTools, client, offer: parts.offer, name, says: tables.doctor },
        ...(tables.appOf === undefined ? {} : { by: tables.appOf }),
      }),
    ],
    ...(oauth.refresh === null && oauth.mint === undefined
      ? {}
      : {
          refresher: (former, signal, { accountId }) =>
            refreshTokens(oauthTools, former, { accountId, targetId: null }, signal),
          refreshWindowMs: oauth.refreshWindowMs,
        }),
    ...(oauth.revoke.length === 0
      ? {}
      : {
          revoker: async (credential, accountId, signal) => {
            const { kind } = await revokeTokens(oauthTools, credential, { accountId, targetId: null }, signal);
            return kind === 'revoked' ? 'revoked' : 'unavailable';
          },
        }),
  };
};

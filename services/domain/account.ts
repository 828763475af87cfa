import { isDeepStrictEqual } from 'node:util';
import type { AccountEvent } from '#schemas/account.ts';
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import { type Decider, Rejection } from './decider.ts';

/** A connected account. Its law: its id follows from client, platform and external id; a lapse is recorded once. */

interface Identity {
  readonly clientId: string;
  readonly platform: Platform;
  readonly externalId: string;
  readonly network: 'live' | 'sandbox';
}

interface Profile {
  readonly username: string | null;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
}

/** The grant of the account's owner, and the profile that the network shows. */
interface Grant extends Profile {
  readonly scopes: readonly string[];
  readonly expiresAt: string | null;
  readonly timezone: string | null;
}

export type AccountState =
  | { readonly status: 'none' }
  | (Identity &
      Grant & {
        readonly status: 'connected' | 'reauth_required' | 'disconnected';
        /** The invite of the present consent; null: the consent had none. */
        readonly inviteId: string | null;
        /** The limits that the network last reported. */
        readonly observed: readonly ObservedWindow[];
      });

export type AccountCommand =
  | (Identity & Grant & { readonly type: 'Connect'; readonly inviteId: string | null })
  /** The network shows the account like this. */
  | (Profile & { readonly type: 'ChangeProfile' })
  /** The network reports these limits of the account. */
  | { readonly type: 'ObserveLimits'; readonly windows: readonly ObservedWindow[] }
  | { readonly type: 'RequireReauth'; readonly reason: string }
  | { readonly type: 'Disconnect'; readonly reason: string }
  /** The owner wants nothing of theirs kept: no profile, and no account. */
  | { readonly type: 'ForgetOwner'; readonly reason: string };

const grantOf = ({ username, displayName, avatarUrl, scopes, expiresAt, timezone }: Grant) => ({
  username,
  displayName,
  avatarUrl,
  scopes: [...scopes],
  expiresAt,
  timezone,
});

const nobody: Profile = { username: null, displayName: null, avatarUrl: null };

const sameGrant = (a: Grant, b: Grant): boolean => JSON.stringify(grantOf(a)) === JSON.stringify(grantOf(b));

const decide = (command: AccountCommand, state: AccountState): readonly AccountEvent[] => {
  switch (command.type) {
    case 'Connect': {
      const { clientId, platform, externalId, network, inviteId } = command;
      const grant = grantOf(command);
      if (state.status === 'none') {
        return [{ type: 'AccountConnected', data: { clientId, platform, externalId, network, ...grant, inviteId } }];
      }
      // A repeat of a consent changes nothing. Another consent means a new token, even with equal data, so it appends
      // an event: a worker that is about to record the lapse of the former token then conflicts.
      const repeats = state.inviteId === inviteId && sameGrant(state, command);
      if (state.status === 'connected' && repeats) return [];
      return [{ type: 'AccountReauthorized', data: { clientId, ...grant, inviteId } }];
    }
    case 'ChangeProfile': {
      if (state.status !== 'connected') return [];
      const { username, displayName, avatarUrl } = command;
      if (sameGrant(state, { ...state, username, displayName, avatarUrl })) return [];
      return [{ type: 'AccountProfileChanged', data: { clientId: state.clientId, username, displayName, avatarUrl } }];
    }
    case 'ObserveLimits': {
      if (state.status === 'none' || isDeepStrictEqual(state.observed, command.windows)) return [];
      return [{ type: 'AccountLimitsObserved', data: { clientId: state.clientId, windows: [...command.windows] } }];
    }
    case 'RequireReauth':
      return state.status === 'connected' ? [{ type: 'AccountReauthRequired', data: { reason: command.reason } }] : [];
    case 'Disconnect':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such account.');
      return state.status === 'disconnected' ? [] : [{ type: 'AccountDisconnected', data: { reason: command.reason } }];
    case 'ForgetOwner': {
      if (state.status === 'none') return [];
      const { clientId, status } = state;
      const isBlank = sameGrant(state, { ...state, ...nobody });
      return [
        ...(isBlank ? [] : [{ type: 'AccountProfileChanged', data: { clientId, ...nobody } } as const]),
        ...(status === 'disconnected'
          ? []
          : [{ type: 'AccountDisconnected', data: { reason: command.reason } } as const]),
      ];
    }
  }
};

const evolve = (state: AccountState, event: AccountEvent): AccountState => {
  if (event.type === 'AccountConnected') {
    const { clientId, platform, externalId, network, inviteId } = event.data;
    return {
      status: 'connected',
      clientId,
      platform,
      externalId,
      network,
      ...grantOf(event.data),
      inviteId,
      observed: [],
    };
  }
  if (state.status === 'none') return state;
  switch (event.type) {
    case 'AccountReauthorized':
      return { ...state, ...grantOf(event.data), inviteId: event.data.inviteId, status: 'connected' };
    case 'AccountReauthRequired':
      return { ...state, status: 'reauth_required' };
    case 'AccountDisconnected':
      return { ...state, status: 'disconnected' };
    case 'AccountLimitsObserved':
      return { ...state, observed: event.data.windows };
    case 'AccountProfileChanged': {
      const { username, displayName, avatarUrl } = event.data;
      return { ...state, username, displayName, avatarUrl };
    }
  }
};

export const account: Decider<AccountState, AccountCommand, AccountEvent> = {
  kind: 'account',
  initial: { status: 'none' },
  decide,
  evolve,
};

import type { Platform } from '#schemas/common.ts';
import { defaultMaxAccounts, type InviteEvent } from '#schemas/invite.ts';
import { type Decider, Rejection } from './decider.ts';

/** A connect link. Its law: only its own platforms, only until it expires, and no more accounts than it is for. */

export type InviteState =
  | { readonly status: 'none' }
  | {
      readonly status: 'open' | 'revoked';
      readonly clientId: string;
      readonly platforms: readonly Platform[];
      readonly expiresAt: string;
      readonly keyVersion: string;
      readonly accountIds: readonly string[];
      readonly maxAccounts: number;
    };

export type InviteCommand =
  | {
      readonly type: 'Create';
      readonly clientId: string;
      readonly platforms: readonly Platform[];
      readonly expiresAt: string;
      readonly keyVersion: string;
      readonly recipientEmail: string | null;
      readonly maxAccounts: number;
    }
  | { readonly type: 'Use'; readonly now: string; readonly accountId: string; readonly platform: Platform }
  | { readonly type: 'Revoke'; readonly reason: string | null };

/** Callers cannot tell unknown, revoked and expired links apart. */
export const isUsable = (
  state: InviteState,
  now: string,
): state is Extract<InviteState, { status: 'open' | 'revoked' }> => state.status === 'open' && state.expiresAt > now;

const decide = (command: InviteCommand, state: InviteState): readonly InviteEvent[] => {
  switch (command.type) {
    case 'Create': {
      if (state.status !== 'none') return [];
      const { clientId, platforms, expiresAt, keyVersion, recipientEmail, maxAccounts } = command;
      return [
        {
          type: 'ConnectInviteCreated',
          data: { clientId, platforms: [...new Set(platforms)], expiresAt, keyVersion, recipientEmail, maxAccounts },
        },
      ];
    }
    case 'Use':
      if (!isUsable(state, command.now)) throw new Rejection('not_found', 'There is no such invite.');
      if (!state.platforms.includes(command.platform)) {
        throw new Rejection('validation_failed', `This invite is not for ${command.platform}.`);
      }
      if (state.accountIds.includes(command.accountId)) return [];
      if (state.accountIds.length >= state.maxAccounts) {
        throw new Rejection(
          'invite_full',
          `This link has connected its ${state.maxAccounts} accounts. Ask for a new one.`,
        );
      }
      return [{ type: 'ConnectInviteUsed', data: { accountId: command.accountId, platform: command.platform } }];
    case 'Revoke':
      return state.status === 'open' ? [{ type: 'ConnectInviteRevoked', data: { reason: command.reason } }] : [];
  }
};

const evolve = (state: InviteState, event: InviteEvent): InviteState => {
  switch (event.type) {
    case 'ConnectInviteCreated': {
      const { clientId, platforms, expiresAt, keyVersion, maxAccounts = defaultMaxAccounts } = event.data;
      return { status: 'open', clientId, platforms, expiresAt, keyVersion, accountIds: [], maxAccounts };
    }
    case 'ConnectInviteUsed':
      return state.status === 'none' ? state : { ...state, accountIds: [...state.accountIds, event.data.accountId] };
    case 'ConnectInviteRevoked':
      return state.status === 'none' ? state : { ...state, status: 'revoked' };
  }
};

export const invite: Decider<InviteState, InviteCommand, InviteEvent> = {
  kind: 'invite',
  initial: { status: 'none' },
  decide,
  evolve,
};

import type { Role } from '#schemas/common.ts';
import type { TeamInviteEvent } from '#schemas/teaminvite.ts';
import { type Decider, Rejection } from './decider.ts';

/** An invitation to the team. Its law: one person, once, before it expires or is revoked. */

export type TeamInviteState =
  | { readonly status: 'none' }
  | {
      readonly status: 'open' | 'revoked';
      readonly memberId: string;
      readonly email: string | null;
      readonly name: string | null;
      readonly role: Role;
      readonly expiresAt: string;
      readonly keyVersion: string;
    }
  | { readonly status: 'accepted'; readonly personId: string; readonly memberId: string };

export type TeamInviteCommand =
  | {
      readonly type: 'Create';
      readonly inviteId: string;
      readonly memberId: string;
      readonly email: string | null;
      readonly name: string | null;
      readonly role: Role;
      readonly now: string;
      readonly expiresAt: string;
      readonly keyVersion: string;
    }
  | { readonly type: 'Accept'; readonly personId: string; readonly now: string }
  | { readonly type: 'Revoke' };

/** Longest life of an invitation, in milliseconds: 30 days. */
export const maxInviteMs = 30 * 86_400_000;

/** Unknown, revoked, used and expired links answer alike. */
export const isOpenInvite = (
  state: TeamInviteState,
  now: string,
): state is Extract<TeamInviteState, { readonly expiresAt: string }> =>
  state.status === 'open' && state.expiresAt > now;

const decide = (command: TeamInviteCommand, state: TeamInviteState): readonly TeamInviteEvent[] => {
  switch (command.type) {
    case 'Create': {
      if (state.status !== 'none') return [];
      const { type: _type, now, ...data } = command;
      const lifeMs = Date.parse(data.expiresAt) - Date.parse(now);
      if (!(lifeMs > 0 && lifeMs <= maxInviteMs)) {
        throw new Rejection('validation_failed', 'An invitation expires after now and within 30 days.', {
          errors: [{ path: '/expiresAt', code: 'out_of_range', message: 'must be after now and within 30 days' }],
        });
      }
      return [{ type: 'TeamInviteCreated', data }];
    }
    case 'Accept':
      if (state.status === 'accepted' && state.personId === command.personId) return [];
      if (!isOpenInvite(state, command.now)) throw new Rejection('not_found', 'There is no such invitation.');
      return [{ type: 'TeamInviteAccepted', data: { personId: command.personId } }];
    case 'Revoke':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such invitation.');
      return state.status === 'open' ? [{ type: 'TeamInviteRevoked', data: {} }] : [];
  }
};

const evolve = (state: TeamInviteState, event: TeamInviteEvent): TeamInviteState => {
  if (event.type === 'TeamInviteCreated') {
    const { memberId, email, name, role, expiresAt, keyVersion } = event.data;
    return { status: 'open', memberId, email, name, role, expiresAt, keyVersion };
  }
  if (state.status !== 'open') return state;
  if (event.type === 'TeamInviteRevoked') return { ...state, status: 'revoked' };
  return { status: 'accepted', personId: event.data.personId, memberId: state.memberId };
};

export const teaminvite: Decider<TeamInviteState, TeamInviteCommand, TeamInviteEvent> = {
  kind: 'teaminvite',
  initial: { status: 'none' },
  decide,
  evolve,
};

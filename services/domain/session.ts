import type { SessionEnd, SessionEvent, SignInWay } from '#schemas/person.ts';
import type { Decider } from './decider.ts';

/** A session of a person in the console. Its law: started once, ended once. */

export type SessionState = { readonly status: 'none' } | { readonly status: 'started' | 'ended' };

export type SessionCommand =
  | { readonly type: 'Start'; readonly personId: string; readonly by: SignInWay; readonly expiresAt: string }
  | { readonly type: 'End'; readonly reason: SessionEnd };

const decide = (command: SessionCommand, state: SessionState): readonly SessionEvent[] => {
  switch (command.type) {
    case 'Start': {
      const { personId, by, expiresAt } = command;
      return state.status === 'none' ? [{ type: 'SessionStarted', data: { personId, by, expiresAt } }] : [];
    }
    case 'End':
      return state.status === 'started' ? [{ type: 'SessionRevoked', data: { reason: command.reason } }] : [];
  }
};

const evolve = (_state: SessionState, event: SessionEvent): SessionState => ({
  status: event.type === 'SessionStarted' ? 'started' : 'ended',
});

export const session: Decider<SessionState, SessionCommand, SessionEvent> = {
  kind: 'session',
  initial: { status: 'none' },
  decide,
  evolve,
};

import type { PersonEmailEvent } from '#schemas/person.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * The claim on an e-mail address: one stream per address, so that two persons cannot have it at once. A claim of a
 * person who was never registered goes on holding: the next caller registers that person.
 */

export type PersonEmailState = { readonly status: 'free' } | { readonly status: 'claimed'; readonly personId: string };

export type PersonEmailCommand =
  | { readonly type: 'Claim'; readonly personId: string }
  | { readonly type: 'Release'; readonly personId: string };

const decide = (command: PersonEmailCommand, state: PersonEmailState): readonly PersonEmailEvent[] => {
  const { personId } = command;
  const isOwn = state.status === 'claimed' && state.personId === personId;
  switch (command.type) {
    case 'Claim':
      if (isOwn) return [];
      if (state.status === 'claimed') throw new Rejection('already_exists', 'Another person has this address.');
      return [{ type: 'EmailClaimed', data: { personId } }];
    case 'Release':
      return isOwn ? [{ type: 'EmailReleased', data: { personId } }] : [];
  }
};

const evolve = (_state: PersonEmailState, event: PersonEmailEvent): PersonEmailState =>
  event.type === 'EmailClaimed' ? { status: 'claimed', personId: event.data.personId } : { status: 'free' };

export const personemail: Decider<PersonEmailState, PersonEmailCommand, PersonEmailEvent> = {
  kind: 'personemail',
  initial: { status: 'free' },
  decide,
  evolve,
};

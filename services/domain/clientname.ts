import type { ClientNameEvent } from '#schemas/client.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * The claim on a name inside a workspace: one stream per normalised name, so that two clients cannot take it at once.
 * The owner decides whether a claim still holds (`bearsName`); this stream only takes, passes on and releases claims.
 */

export type ClientNameState =
  | { readonly status: 'free' }
  | { readonly status: 'claimed'; readonly clientId: string; readonly claimedAt: string };

export type ClientNameCommand =
  /** `evicts`: the owner whose claim, as the caller has checked, no longer holds. */
  | {
      readonly type: 'Claim';
      readonly clientId: string;
      readonly name: string;
      readonly now: string;
      readonly evicts: string | null;
    }
  | { readonly type: 'Release'; readonly clientId: string };

const decide = (command: ClientNameCommand, state: ClientNameState): readonly ClientNameEvent[] => {
  switch (command.type) {
    case 'Claim': {
      const own = state.status === 'claimed' && state.clientId === command.clientId;
      // A second claim of the same client appends too: a caller that acts on the first one must get a conflict.
      if (own && state.claimedAt === command.now) return [];
      if (state.status === 'claimed' && !own && state.clientId !== command.evicts) {
        throw new Rejection('name_claimed', 'Another client has claimed this name.');
      }
      return [
        { type: 'NameClaimed', data: { clientId: command.clientId, name: command.name, claimedAt: command.now } },
      ];
    }
    case 'Release':
      if (state.status === 'free' || state.clientId !== command.clientId) return [];
      return [{ type: 'NameReleased', data: { clientId: command.clientId } }];
  }
};

const evolve = (_state: ClientNameState, event: ClientNameEvent): ClientNameState =>
  event.type === 'NameClaimed'
    ? { status: 'claimed', clientId: event.data.clientId, claimedAt: event.data.claimedAt }
    : { status: 'free' };

export const clientname: Decider<ClientNameState, ClientNameCommand, ClientNameEvent> = {
  kind: 'clientname',
  initial: { status: 'free' },
  decide,
  evolve,
};

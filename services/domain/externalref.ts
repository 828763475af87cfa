import type { ExternalRefEvent } from '#schemas/externalref.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * The claim on a caller's reference inside a client: one stream per reference, so that two posts cannot take it at once.
 * The post decides whether a claim still holds (`bearsExternalRef`); this stream only takes, passes on and releases
 * claims.
 */

export type ExternalRefState =
  | { readonly status: 'free' }
  | { readonly status: 'claimed'; readonly postId: string; readonly claimedAt: string };

export type ExternalRefCommand =
  /** `evicts`: the post whose claim, as the caller has checked, no longer holds. */
  | {
      readonly type: 'Claim';
      readonly clientId: string;
      readonly externalRef: string;
      readonly postId: string;
      readonly now: string;
      readonly evicts: string | null;
    }
  | { readonly type: 'Release'; readonly postId: string };

const decide = (command: ExternalRefCommand, state: ExternalRefState): readonly ExternalRefEvent[] => {
  switch (command.type) {
    case 'Claim': {
      const { clientId, externalRef, postId, now: claimedAt } = command;
      const own = state.status === 'claimed' && state.postId === postId;
      // A second claim of the same post appends too: a caller that acts on the first one must get a conflict.
      if (own && state.claimedAt === claimedAt) return [];
      if (state.status === 'claimed' && !own && state.postId !== command.evicts) {
        throw new Rejection('already_exists', 'Another post of the client has this reference.');
      }
      return [{ type: 'ExternalRefClaimed', data: { clientId, externalRef, postId, claimedAt } }];
    }
    case 'Release':
      if (state.status === 'free' || state.postId !== command.postId) return [];
      return [{ type: 'ExternalRefReleased', data: { postId: command.postId } }];
  }
};

const evolve = (_state: ExternalRefState, event: ExternalRefEvent): ExternalRefState =>
  event.type === 'ExternalRefClaimed'
    ? { status: 'claimed', postId: event.data.postId, claimedAt: event.data.claimedAt }
    : { status: 'free' };

export const externalref: Decider<ExternalRefState, ExternalRefCommand, ExternalRefEvent> = {
  kind: 'externalref',
  initial: { status: 'free' },
  decide,
  evolve,
};

import type { ClientEvent, ClientFields } from '#schemas/client.ts';
import { type Decider, Rejection } from './decider.ts';
import { normaliseName } from './ids.ts';

/** A client of the agency. Its law: an archived client changes no more; its name is claimed in another stream first. */

export type ClientState =
  | { readonly status: 'none' }
  | { readonly status: 'live' | 'archived'; readonly fields: ClientFields; readonly erased: boolean };

export type ClientCommand =
  | { readonly type: 'Create'; readonly fields: ClientFields }
  | { readonly type: 'Update'; readonly changes: Partial<ClientFields> }
  | { readonly type: 'Archive' }
  /** Another client takes a name that this client claimed and does not have. */
  | { readonly type: 'LapseNameClaim'; readonly name: string }
  | { readonly type: 'Erase' };

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Whether the client has this name now: a claim holds while its owner has the name. */
export const bearsName = (state: ClientState, name: string): boolean =>
  state.status === 'live' && normaliseName(state.fields.name) === normaliseName(name);

export const asksToRetry = ({ unknownOutcome }: ClientFields['rules']): boolean =>
  unknownOutcome === 'retry_when_absent';

/** Rules are kept as they were sent: any other value lets a late approval publish at once. */
export const letsLateFail = ({ approvalLate }: ClientFields['rules']): boolean => approvalLate === 'fail';

/**
 * Whether a target with an unknown outcome may be tried again after looks that found no post. Rules are kept as they
 * were sent, so any other value, and an archived client, hold the target.
 */
export const retriesWhenAbsent = (state: ClientState): boolean =>
  state.status === 'live' && asksToRetry(state.fields.rules);

const decide = (command: ClientCommand, state: ClientState): readonly ClientEvent[] => {
  switch (command.type) {
    case 'Create':
      return state.status === 'none' ? [{ type: 'ClientCreated', data: command.fields }] : [];
    case 'Update': {
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such client.');
      if (state.status === 'archived') throw new Rejection('client_archived', 'An archived client cannot be changed.');
      const { fields } = state;
      const changed = Object.fromEntries(
        Object.entries(command.changes).filter(([name, value]) => !same(value, fields[name as keyof ClientFields])),
      );
      return Object.keys(changed).length === 0
        ? []
        : [{ type: 'ClientUpdated', data: changed as Partial<ClientFields> }];
    }
    case 'Archive':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such client.');
      return state.status === 'archived' ? [] : [{ type: 'ClientArchived', data: {} }];
    case 'LapseNameClaim':
      return [{ type: 'ClientNameClaimLapsed', data: { name: command.name } }];
    case 'Erase':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such client.');
      return state.erased ? [] : [{ type: 'ClientErased', data: {} }];
  }
};

const evolve = (state: ClientState, event: ClientEvent): ClientState => {
  if (event.type === 'ClientCreated') return { status: 'live', fields: event.data, erased: false };
  if (state.status === 'none') return state;
  switch (event.type) {
    case 'ClientUpdated':
      return { ...state, fields: { ...state.fields, ...event.data } };
    case 'ClientArchived':
      return { ...state, status: 'archived' };
    case 'ClientErased':
      return { ...state, erased: true };
    case 'ClientNameClaimLapsed':
      return state;
  }
};

export const client: Decider<ClientState, ClientCommand, ClientEvent> = {
  kind: 'client',
  initial: { status: 'none' },
  fences: ['ClientNameClaimLapsed'],
  decide,
  evolve,
};

import type { Mode } from '#schemas/common.ts';
import { type GrantableScope, type GrantEnder, type GrantEvent, grantableScopes } from '#schemas/grant.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * What a person gave an app. Its laws: it is given once and never changes, it expires within a year, and a revoked one
 * stays revoked.
 */

export type GrantState =
  | { readonly status: 'none' }
  | {
      readonly status: 'active' | 'revoked';
      readonly clientId: string;
      readonly personId: string;
      readonly memberId: string;
      readonly mode: Mode;
      readonly expiresAt: string;
    };

export type GrantCommand =
  | {
      readonly type: 'Give';
      readonly now: string;
      readonly clientId: string;
      readonly clientName: string;
      readonly personId: string;
      readonly memberId: string;
      readonly mode: Mode;
      readonly scopes: readonly string[];
      readonly resource: string;
      readonly expiresAt: string;
    }
  | { readonly type: 'Revoke'; readonly by: GrantEnder };

const yearMs = 366 * 86_400_000;

const isGrantable = (value: string): value is GrantableScope => (grantableScopes as readonly string[]).includes(value);

const decide = (command: GrantCommand, state: GrantState): readonly GrantEvent[] => {
  switch (command.type) {
    case 'Give': {
      if (state.status !== 'none') return [];
      const lifetime = Date.parse(command.expiresAt) - Date.parse(command.now);
      if (!(lifetime > 0 && lifetime <= yearMs)) {
        throw new Rejection('validation_failed', 'A grant expires after now and within one year.');
      }
      const scopes = command.scopes.filter(isGrantable);
      if (scopes.length === 0 || scopes.length !== command.scopes.length) {
        throw new Rejection('validation_failed', `A grant needs scopes, each one of: ${grantableScopes.join(', ')}.`);
      }
      const { clientId, clientName, personId, memberId, mode, resource, expiresAt } = command;
      const given = {
        clientId,
        clientName,
        personId,
        memberId,
        mode,
        scopes: [...new Set(scopes)],
        resource,
        expiresAt,
      };
      return [{ type: 'GrantGiven', data: given }];
    }
    case 'Revoke':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such grant.');
      return state.status === 'revoked' ? [] : [{ type: 'GrantRevoked', data: { by: command.by } }];
  }
};

const evolve = (state: GrantState, event: GrantEvent): GrantState => {
  switch (event.type) {
    case 'GrantGiven': {
      const { clientId, personId, memberId, mode, expiresAt } = event.data;
      return { status: 'active', clientId, personId, memberId, mode, expiresAt };
    }
    case 'GrantRevoked':
      return state.status === 'none' ? state : { ...state, status: 'revoked' };
  }
};

export const grant: Decider<GrantState, GrantCommand, GrantEvent> = {
  kind: 'grant',
  initial: { status: 'none' },
  decide,
  evolve,
};

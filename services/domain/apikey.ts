import { type ApiKeyEvent, scopes as knownScopes, type Scope } from '#schemas/apikey.ts';
import { type Mode, maxLimitClients } from '#schemas/common.ts';
import { type Decider, Rejection } from './decider.ts';

/** An API key. Its law: it expires within a year of its creation, and its scopes are known ones. */

export type ApiKeyState =
  | { readonly status: 'none' }
  | {
      readonly status: 'active' | 'revoked';
      readonly hash: string;
      readonly expiresAt: string;
      readonly mode: Mode;
    };

export type ApiKeyCommand =
  | {
      readonly type: 'Create';
      readonly now: string;
      readonly memberId: string;
      readonly name: string;
      readonly hash: string;
      readonly prefix: string;
      readonly scopes: readonly string[];
      readonly mode: Mode;
      readonly expiresAt: string;
      /** Null: all clients of the workspace. */
      readonly clientIds: readonly string[] | null;
    }
  | { readonly type: 'Rotate'; readonly now: string; readonly hash: string; readonly prefix: string }
  | { readonly type: 'Revoke' };

const yearMs = 366 * 86_400_000;
const rotationGraceMs = 24 * 3_600_000;

const isScope = (value: string): value is Scope => (knownScopes as readonly string[]).includes(value);

/** Each client once. A limit to no client would be a key without power, and is refused. */
const limitOf = (clientIds: readonly string[] | null): string[] | null => {
  if (clientIds === null) return null;
  const limit = [...new Set(clientIds)];
  if (limit.length === 0 || limit.length > maxLimitClients) {
    throw new Rejection('validation_failed', `A key is limited to 1 to ${maxLimitClients} clients, or to none.`, {
      errors: [{ path: '/clientIds', code: 'out_of_range', message: `must be 1 to ${maxLimitClients} clients` }],
    });
  }
  return limit;
};

const decide = (command: ApiKeyCommand, state: ApiKeyState): readonly ApiKeyEvent[] => {
  switch (command.type) {
    case 'Create': {
      if (state.status !== 'none') return [];
      const lifetime = Date.parse(command.expiresAt) - Date.parse(command.now);
      if (!(lifetime > 0 && lifetime <= yearMs)) {
        throw new Rejection('validation_failed', 'A key expires after now and within one year.', {
          errors: [
            { path: '/expiresAt', code: 'out_of_range', message: 'must be after now and at most one year away' },
          ],
        });
      }
      const scopes = command.scopes.filter(isScope);
      if (scopes.length === 0 || scopes.length !== command.scopes.length) {
        throw new Rejection('validation_failed', `A key needs scopes, each one of: ${knownScopes.join(', ')}.`, {
          errors: [{ path: '/scopes', code: 'not_allowed', message: 'must be known scopes, at least one' }],
        });
      }
      const { memberId, name, hash, prefix, mode, expiresAt } = command;
      const clientIds = limitOf(command.clientIds);
      return [
        {
          type: 'ApiKeyCreated',
          data: { memberId, name, hash, prefix, scopes: [...new Set(scopes)], mode, expiresAt, clientIds },
        },
      ];
    }
    case 'Rotate': {
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such key.');
      if (state.status === 'revoked' || state.expiresAt <= command.now) {
        throw new Rejection('validation_failed', 'A revoked or expired key cannot be rotated: create a new one.');
      }
      if (state.hash === command.hash) return [];
      const graceEnds = Date.parse(command.now) + rotationGraceMs;
      const previousUntil = new Date(Math.min(graceEnds, Date.parse(state.expiresAt))).toISOString();
      const { hash, prefix } = command;
      return [{ type: 'ApiKeyRotated', data: { hash, prefix, previousHash: state.hash, previousUntil } }];
    }
    case 'Revoke':
      if (state.status === 'none') throw new Rejection('not_found', 'There is no such key.');
      return state.status === 'revoked' ? [] : [{ type: 'ApiKeyRevoked', data: {} }];
  }
};

const evolve = (state: ApiKeyState, event: ApiKeyEvent): ApiKeyState => {
  switch (event.type) {
    case 'ApiKeyCreated': {
      const { hash, expiresAt, mode } = event.data;
      return { status: 'active', hash, expiresAt, mode };
    }
    case 'ApiKeyRotated':
      return state.status === 'none' ? state : { ...state, hash: event.data.hash };
    case 'ApiKeyRevoked':
      return state.status === 'none' ? state : { ...state, status: 'revoked' };
  }
};

export const apikey: Decider<ApiKeyState, ApiKeyCommand, ApiKeyEvent> = {
  kind: 'apikey',
  initial: { status: 'none' },
  decide,
  evolve,
};

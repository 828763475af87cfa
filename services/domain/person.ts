import type { EmailProof, PasswordCause, PersonEvent } from '#schemas/person.ts';
import { type Decider, Rejection } from './decider.ts';

/** A person who signs in. Its law: registered once, and nothing after the erasure. */

export type PersonState =
  | { readonly status: 'none' }
  | {
      readonly status: 'registered';
      /** Null once the data key of the person is destroyed. */
      readonly email: string | null;
      readonly name: string | null;
      /** Null: nobody has proven that the person has this address. */
      readonly emailProvenAt: string | null;
      readonly passkeyIds: readonly string[];
      /** Whether a password alone does not sign the person in. */
      readonly secondFactor: boolean;
    }
  | { readonly status: 'erased' };

export type PersonCommand =
  | { readonly type: 'Register'; readonly personId: string; readonly email: string; readonly name: string }
  | {
      readonly type: 'SetPassword';
      readonly by: PasswordCause;
      /** Absent: the others stay. */
      readonly removes?: RemovedWays;
      /** Who proves the address with it; absent: nobody. */
      readonly proves?: EmailProof;
    }
  | { readonly type: 'ProveEmail'; readonly by: EmailProof; readonly removes?: RemovedWays }
  | { readonly type: 'AddPasskey'; readonly passkeyId: string }
  | { readonly type: 'RemovePasskey'; readonly passkeyId: string }
  | { readonly type: 'EnableSecondFactor' }
  | { readonly type: 'DisableSecondFactor' }
  | { readonly type: 'ReplaceRecoveryCodes' }
  | { readonly type: 'UseRecoveryCode' }
  | { readonly type: 'Erase' };

/** The ways to sign in, beside the password, that end. */
export interface RemovedWays {
  readonly passkeys: boolean;
  readonly secondFactor: boolean;
}

export const maxPasskeys = 20;

type Registered = Extract<PersonState, { status: 'registered' }>;

const registered = (state: PersonState): Registered => {
  if (state.status !== 'registered') throw new Rejection('not_found', 'There is no such person.');
  return state;
};

const removal = (
  { passkeyIds, secondFactor }: Registered,
  removes: RemovedWays | undefined,
): readonly PersonEvent[] => [
  ...(removes?.passkeys === true ? passkeyIds : []).map(
    (passkeyId) => ({ type: 'PasskeyRemoved', data: { passkeyId } }) as const,
  ),
  ...(removes?.secondFactor === true && secondFactor ? [{ type: 'SecondFactorDisabled', data: {} } as const] : []),
];

const proof = ({ emailProvenAt }: Registered, by: EmailProof | undefined): readonly PersonEvent[] =>
  by === undefined || emailProvenAt !== null ? [] : [{ type: 'EmailProven', data: { by } }];

const decide = (command: PersonCommand, state: PersonState): readonly PersonEvent[] => {
  switch (command.type) {
    case 'Register': {
      if (state.status === 'erased') throw new Rejection('already_exists', 'This person was erased.');
      if (state.status === 'registered') return [];
      const { personId, email, name } = command;
      return [{ type: 'PersonRegistered', data: { personId, email, name } }];
    }
    case 'SetPassword': {
      const known = registered(state);
      const set = { type: 'PasswordSet', data: { by: command.by } } as const;
      return [set, ...removal(known, command.removes), ...proof(known, command.proves)];
    }
    case 'ProveEmail': {
      const known = registered(state);
      return [...removal(known, command.removes), ...proof(known, command.by)];
    }
    case 'AddPasskey': {
      const { passkeyIds } = registered(state);
      if (passkeyIds.includes(command.passkeyId)) return [];
      if (passkeyIds.length >= maxPasskeys) {
        throw new Rejection('validation_failed', `A person has at most ${maxPasskeys} passkeys: remove one first.`);
      }
      return [{ type: 'PasskeyAdded', data: { passkeyId: command.passkeyId } }];
    }
    case 'RemovePasskey':
      return registered(state).passkeyIds.includes(command.passkeyId)
        ? [{ type: 'PasskeyRemoved', data: { passkeyId: command.passkeyId } }]
        : [];
    case 'EnableSecondFactor':
      return registered(state).secondFactor ? [] : [{ type: 'SecondFactorEnabled', data: {} }];
    case 'DisableSecondFactor':
      return registered(state).secondFactor ? [{ type: 'SecondFactorDisabled', data: {} }] : [];
    case 'ReplaceRecoveryCodes':
      registered(state);
      return [{ type: 'RecoveryCodesReplaced', data: {} }];
    case 'UseRecoveryCode':
      registered(state);
      return [{ type: 'RecoveryCodeUsed', data: {} }];
    case 'Erase':
      return state.status === 'registered' ? [{ type: 'PersonErased', data: {} }] : [];
  }
};

const evolve: Decider<PersonState, PersonCommand, PersonEvent>['evolve'] = (state, event, { occurredAt }) => {
  if (event.type === 'PersonRegistered') {
    const { email, name } = event.data;
    return { status: 'registered', email, name, emailProvenAt: null, passkeyIds: [], secondFactor: false };
  }
  if (state.status !== 'registered') return state;
  switch (event.type) {
    case 'EmailProven':
      return { ...state, emailProvenAt: state.emailProvenAt ?? occurredAt };
    case 'PasskeyAdded':
      return { ...state, passkeyIds: [...state.passkeyIds, event.data.passkeyId] };
    case 'PasskeyRemoved':
      return { ...state, passkeyIds: state.passkeyIds.filter((id) => id !== event.data.passkeyId) };
    case 'SecondFactorEnabled':
      return { ...state, secondFactor: true };
    case 'SecondFactorDisabled':
      return { ...state, secondFactor: false };
    case 'PersonErased':
      return { status: 'erased' };
    case 'PasswordSet':
    case 'RecoveryCodesReplaced':
    case 'RecoveryCodeUsed':
      return state;
  }
};

export const person: Decider<PersonState, PersonCommand, PersonEvent> = {
  kind: 'person',
  initial: { status: 'none' },
  decide,
  evolve,
};

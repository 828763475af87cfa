import { hash } from 'node:crypto';
import { person } from '#domain/person.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { networkOf } from '#runtime/identity/proxies.ts';
import { uuidPattern } from '#schemas/common.ts';
import {
  type Attempted,
  beginAttempt,
  forgetAttempts,
  ofAccount,
  ofAddress,
  takeBackAttempt,
  takenBackUnchecked,
} from './attempts.ts';
import { People, type PersonCredentials } from './credentials.ts';
import { type PeopleDeps, personContext } from './deps.ts';
import { emailMac, normaliseEmail } from './emails.ts';
import { isPassword, maxPassword } from './passwords.ts';
import { isRecoveryCode, recoveryMac } from './recovery-codes.ts';
import { openStep, sealStep } from './sealed-forms.ts';
import { totpStepOf } from './totp.ts';

/**
 * Sign-in with a password, then with a second factor where the person has one. Words and time are the same whether the
 * account exists, has a password, or the password was wrong.
 */

export type SignedIn =
  | {
      readonly outcome: 'signed_in';
      readonly personId: string;
      readonly by: 'password' | 'recovery_code';
      /** For the session: it starts while nothing has ended what was right here. */
      readonly era: number;
    }
  /** The password was right; `pending` goes with the code. */
  | { readonly outcome: 'second_factor'; readonly pending: string }
  | { readonly outcome: 'wrong' };

export interface PasswordSignIn {
  readonly email: string;
  readonly password: string;
  /** In the form by which allowances are counted. */
  readonly address: string;
  /** What a browser that signed this person in before still has; null: none. */
  readonly knownDevice: string | null;
}

/**
 * A browser that has signed a person in has a token of that person. Its attempts at that person are counted for it alone:
 * a stranger who guesses at the account from elsewhere, or who shares its address, does not lock the owner out.
 */
export const deviceToken = ({ secrets }: Pick<PeopleDeps, 'secrets'>, personId: string): string =>
  secrets.seal('forms', `device\n${personId}`);

const uuid = new RegExp(uuidPattern);

/** The person who has signed in with the browser that brings this token; null for no token of ours. */
export const ownerOfDevice = ({ secrets }: Pick<PeopleDeps, 'secrets'>, token: string | null): string | null => {
  const [kind, personId = null] = (token === null ? null : secrets.open('forms', token))?.split('\n') ?? [];
  return kind === 'device' && personId !== null && uuid.test(personId) ? personId : null;
};

/** Whether this person has signed in with the browser that brings this token. */
export const isDeviceOf = (deps: Pick<PeopleDeps, 'secrets'>, token: string | null, personId: string): boolean =>
  ownerOfDevice(deps, token) === personId;

/** The token as attempts are counted by; null where it is of somebody else. */
const deviceOf = (deps: PeopleDeps, token: string | null, personId: string | undefined): string | null =>
  token !== null && personId !== undefined && isDeviceOf(deps, token, personId) ? hash('sha256', token, 'hex') : null;

/** What the address counts: nothing for a known device, which guesses at its own person alone. */
const countedBy = (address: string, device: string | null): readonly Attempted[] =>
  device === null ? [ofAddress(address)] : [];

/** @throws TooManyAttempts */
export const signInByPassword = async (
  deps: PeopleDeps,
  { email: typed, password, address, knownDevice }: PasswordSignIn,
): Promise<SignedIn> => {
  const email = normaliseEmail(typed).slice(0, 300);
  const credentials = await new People(deps.pool, deps.secrets).byEmail(email);
  const device = deviceOf(deps, knownDevice, credentials?.personId);
  const account = ofAccount(emailMac(deps.secrets, email), device);
  const counted = countedBy(address, device);
  for (const one of [...counted, account]) await beginAttempt(deps.pool, one);
  const known = device === null ? null : (credentials?.personId ?? null);
  const caller = { known: known !== null, owner: known ?? networkOf(address) };
  const isRight = await takenBackUnchecked(deps.pool, [...counted, account], () =>
    isPassword(password.slice(0, maxPassword + 1), credentials?.passwordHash ?? null, caller),
  );
  if (!isRight || credentials === null) return { outcome: 'wrong' };
  for (const one of counted) await takeBackAttempt(deps.pool, one);
  await forgetAttempts(deps.pool, account);
  const { personId, totpConfirmed, era } = credentials;
  if (!totpConfirmed) return { outcome: 'signed_in', personId, by: 'password', era };
  const step: FirstStep = { personId, passwordMark: passwordMarkOf(credentials) };
  return { outcome: 'second_factor', pending: sealStep(deps, 'second factor', step) };
};

/** A right password on its way to the second step. */
interface FirstStep {
  readonly personId: string;
  /** Of the password that was right: once another one is set, the step is over. */
  readonly passwordMark: string;
}

/** Hashes have a salt of 128 bits, so that nobody finds a password by the mark. */
const passwordMarkOf = ({ passwordHash }: PersonCredentials): string => hash('sha256', passwordHash ?? '', 'base64url');

export interface CodeSignIn {
  /** Of the first step. */
  readonly pending: string;
  readonly code: string;
  readonly address: string;
  /** As for the password. Default: none. */
  readonly knownDevice?: string | null;
}

/** The second step: a code of the authenticator app, or a recovery code. @throws TooManyAttempts */
export const signInByCode = async (
  deps: PeopleDeps,
  { pending, code, address, knownDevice = null }: CodeSignIn,
): Promise<SignedIn | { readonly outcome: 'expired' }> => {
  const step = openStep<FirstStep>(deps, 'second factor', pending)?.value;
  if (step === undefined) return { outcome: 'expired' };
  const { personId, passwordMark } = step;
  const people = new People(deps.pool, deps.secrets);
  const credentials = await people.byId(personId);
  if (credentials === null || passwordMarkOf(credentials) !== passwordMark) return { outcome: 'expired' };
  const device = deviceOf(deps, knownDevice, personId);
  const attempted = { what: device === null ? `code ${personId}` : `code ${personId} ${device}`, free: 5 };
  const counted = countedBy(address, device);
  for (const one of [...counted, attempted]) await beginAttempt(deps.pool, one);
  const by = await spendCode(deps, people, credentials, code.slice(0, 100));
  if (by === null) return { outcome: 'wrong' };
  for (const one of counted) await takeBackAttempt(deps.pool, one);
  await forgetAttempts(deps.pool, attempted);
  return { outcome: 'signed_in', personId, by, era: credentials.era };
};

/** Each code works once. Null for a wrong one. */
export const spendCode = async (
  deps: PeopleDeps,
  people: People,
  { personId, totpSecret, totpConfirmed, recoveryVersion }: PersonCredentials,
  code: string,
): Promise<'password' | 'recovery_code' | null> => {
  if (totpSecret === null || !totpConfirmed) return null;
  const step = totpStepOf(totpSecret, code, deps.clock());
  if (step !== null) return (await people.spendTotp(personId, step)) ? 'password' : null;
  if (!isRecoveryCode(code) || recoveryVersion === null || !deps.secrets.has(recoveryVersion)) return null;
  const mac = recoveryMac(deps.secrets, personId, code, recoveryVersion);
  if (!(await people.spendRecoveryCode(personId, mac))) return null;
  await execute(deps.store, person, personId, { type: 'UseRecoveryCode' }, personContext(deps, personId));
  return 'recovery_code';
};

import { Rejection } from '#domain/decider.ts';
import { person, type RemovedWays } from '#domain/person.ts';
import type { CommandContext } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PasswordCause, SessionEnd } from '#schemas/person.ts';
import { revokeGrantsOfPerson } from '../grants.ts';
import { beginAttempt, forgetAttempts, takenBackUnchecked } from './attempts.ts';
import { People, type PersonCredentials } from './credentials.ts';
import { nowOf, type PeopleDeps, personContext } from './deps.ts';
import { hashPassword, isPassword, requireGoodPassword } from './passwords.ts';
import { findPersonLink, takePersonLink } from './person-links.ts';
import { requireProven } from './proof.ts';
import { newRecoveryCodes, recoveryMac } from './recovery-codes.ts';
import { loadPerson } from './register.ts';
import { recordEndsOf } from './sessions.ts';
import { spendCode } from './sign-in.ts';
import { newTotpSecret, totpOffer, totpStepOf } from './totp.ts';

/** What a signed-in person changes about the own sign-in. Each change asks for the password again. */

const refuse = (path: string, message: string): never => {
  throw new Rejection('validation_failed', message, { errors: [{ path, code: 'not_allowed', message }] });
};

const credentialsOf = async (deps: PeopleDeps, personId: string): Promise<PersonCredentials> => {
  const found = await new People(deps.pool, deps.secrets).byId(personId);
  if (found === null) throw new Rejection('not_found', 'There is no such person.');
  return found;
};

/** @throws TooManyAttempts; Rejection where it is another one */
export const requirePassword = async (
  deps: PeopleDeps,
  personId: string,
  password: string,
): Promise<PersonCredentials> => {
  const found = await credentialsOf(deps, personId);
  const attempted = { what: `password again ${personId}`, free: 5 };
  await beginAttempt(deps.pool, attempted);
  const caller = { known: true, owner: personId };
  const check = () => isPassword(password, found.passwordHash, caller);
  if (!(await takenBackUnchecked(deps.pool, [attempted], check))) {
    refuse('/currentPassword', 'This is not your password.');
  }
  await forgetAttempts(deps.pool, attempted);
  return found;
};

/** @throws Rejection where the password is not good enough, Unavailable where too many are hashed at once */
const hashOfGood = async (deps: PeopleDeps, personId: string, password: string): Promise<string> => {
  const known = await loadPerson(deps, personId);
  if (known === null) throw new Rejection('not_found', 'There is no such person.');
  requireGoodPassword(password, { email: known.email ?? '', name: known.name ?? '' });
  return hashPassword(password, personId);
};

const noWays: RemovedWays = { passkeys: false, secondFactor: false };
const allWays: RemovedWays = { passkeys: true, secondFactor: true };

interface Renewed {
  readonly personId: string;
  readonly removes: RemovedWays;
  /** Id of the session that stays; null: none does. */
  readonly keep: string | null;
  readonly reason: SessionEnd;
}

/** If we die after it, `recordEnds` tells of the sessions that ended. @returns false where the era has ended */
const renew = async (
  deps: PeopleDeps,
  { personId, ...renewed }: Renewed,
  era: number | null,
  passwordHash: string | null,
): Promise<boolean> => {
  const people = new People(deps.pool, deps.secrets);
  const ended = await people.renew(personId, { ...renewed, era, passwordHash, now: nowOf(deps) });
  if (ended === null) return false;
  faultPoint('password:after-row');
  await recordEndsOf(deps, personId, ended, renewed.reason);
  return true;
};

const tellPassword = async (deps: PeopleDeps, personId: string, by: PasswordCause): Promise<void> => {
  await execute(deps.store, person, personId, { type: 'SetPassword', by }, personContext(deps, personId));
};

/** Ends every other session of the person. @param keep the session that changes it */
export const changePassword = async (
  deps: PeopleDeps,
  personId: string,
  { current, next, keep }: { readonly current: string; readonly next: string; readonly keep: string },
): Promise<void> => {
  const { era } = await requirePassword(deps, personId, current);
  const passwordHash = await hashOfGood(deps, personId, next);
  const renewed = { personId, removes: noWays, keep, reason: 'password_set' } as const;
  if (!(await renew(deps, renewed, era, passwordHash)))
    refuse('/currentPassword', 'This is not your password any more.');
  await tellPassword(deps, personId, 'changed');
};

/** A link that sets a password: who has it reads the mail of the address, or has it from an operator. */
export interface PasswordLink {
  readonly purpose: 'reset' | 'confirm';
  readonly token: string;
  /** Whether other ways to sign in end. */
  readonly removes: boolean;
}

/**
 * Takes the link only with a password that is good enough. Ends every session, and what apps were given: a stranger who
 * had the former password may have connected some. Keys stay, because programs of the workspace work with them.
 *
 * The link proves the address. Of an account whose address nobody has proven, a stranger may have made the passkeys and
 * the second factor: both end where it is wanted. Of a proven one the second factor stays, or a reader of the mails of
 * a person would need nothing else.
 * @returns null for a link that ended
 */
export const setPasswordByLink = async (
  deps: PeopleDeps,
  { purpose, token, removes }: PasswordLink,
  next: string,
): Promise<string | null> => {
  const named = await findPersonLink(deps, token, purpose);
  const known = named === null ? null : await loadPerson(deps, named);
  if (named === null || known === null) return null;
  // Before the link is used up: a person who must come again can use it then.
  const passwordHash = await hashOfGood(deps, named, next);
  // Before the link is taken: if we die here, the person opens it again.
  await revokeGrantsOfPerson(deps, named);
  const personId = await takePersonLink(deps, token, purpose);
  if (personId === null) return null;
  const ends = { passkeys: removes, secondFactor: removes && known.emailProvenAt === null };
  await renew(deps, { personId, removes: ends, keep: null, reason: 'password_set' }, null, passwordHash);
  // A consent that was answered between the two; from the new era on, none of before gives anything.
  await revokeGrantsOfPerson(deps, personId);
  // If we died before it, the address is not proven yet: the person asks for another link, which tells all of it.
  const tell = { type: 'SetPassword', by: 'reset', removes: ends, proves: 'link' } as const;
  await execute(deps.store, person, personId, tell, personContext(deps, personId));
  return personId;
};

/** @param removes whether other ways to sign in end; default: they stay */
export const resetPassword = (deps: PeopleDeps, token: string, next: string, removes = false): Promise<string | null> =>
  setPasswordByLink(deps, { purpose: 'reset', token, removes }, next);

/**
 * A signed-in person opens the link of the mail: the password, which the person knows, and this session stay. All else
 * that is older ends.
 * @returns false for a link that ended, or is of somebody else
 */
export const confirmEmail = async (
  deps: PeopleDeps,
  { token, personId, keep }: { readonly token: string; readonly personId: string; readonly keep: string },
): Promise<boolean> => {
  if ((await findPersonLink(deps, token, 'confirm')) !== personId) return false;
  await revokeGrantsOfPerson(deps, personId);
  if ((await takePersonLink(deps, token, 'confirm')) === null) return false;
  await renew(deps, { personId, removes: allWays, keep, reason: 'revoked' }, null, null);
  // As above: a consent that was answered meanwhile.
  await revokeGrantsOfPerson(deps, personId);
  const tell = { type: 'ProveEmail', by: 'link', removes: allWays } as const;
  await execute(deps.store, person, personId, tell, personContext(deps, personId));
  return true;
};

/** A secret for the authenticator app. It asks for nothing before `confirmSecondFactor`. */
export const offerSecondFactor = async (
  deps: PeopleDeps,
  personId: string,
  password: string,
): Promise<{ readonly uri: string; readonly text: string }> => {
  const found = await requirePassword(deps, personId, password);
  await requireProven(deps, personId);
  if (found.totpConfirmed) refuse('/code', 'You have a second factor already: remove it first.');
  const known = await loadPerson(deps, personId);
  const secret = newTotpSecret();
  await new People(deps.pool, deps.secrets).offerTotp(found, secret);
  return totpOffer(secret, known?.email ?? '');
};

/** The offer again, for a page that was loaded anew; null without one. */
export const openOffer = async (
  deps: PeopleDeps,
  personId: string,
): Promise<{ readonly uri: string; readonly text: string } | null> => {
  const { totpSecret, totpConfirmed } = await credentialsOf(deps, personId);
  if (totpSecret === null || totpConfirmed) return null;
  return totpOffer(totpSecret, (await loadPerson(deps, personId))?.email ?? '');
};

/** The first right code turns the second factor on. @returns recovery codes, shown once */
export const confirmSecondFactor = async (
  deps: PeopleDeps,
  personId: string,
  code: string,
): Promise<readonly string[]> => {
  const people = new People(deps.pool, deps.secrets);
  await requireProven(deps, personId);
  const found = await credentialsOf(deps, personId);
  const { totpSecret, totpConfirmed } = found;
  const begin = 'Begin again: there is nothing to confirm.';
  if (totpSecret === null || totpConfirmed) return refuse('/code', begin);
  const attempted = { what: `confirm ${personId}`, free: 5 };
  await beginAttempt(deps.pool, attempted);
  const step = totpStepOf(totpSecret, code, deps.clock());
  if (step === null || !(await people.spendTotp(personId, step))) {
    return refuse('/code', 'This is not the code that the app shows now.');
  }
  await forgetAttempts(deps.pool, attempted);
  if (!(await people.confirmTotp(found))) return refuse('/code', begin);
  // If we die here, the factor is asked for; the event and the codes come when the person asks for new codes.
  faultPoint('second-factor:after-row');
  return replaceCodes(deps, found);
};

const replaceCodes = async (deps: PeopleDeps, found: PersonCredentials): Promise<readonly string[]> => {
  const { personId } = found;
  const codes = newRecoveryCodes();
  const version = deps.secrets.current;
  const macs = codes.map((code) => recoveryMac(deps.secrets, personId, code, version));
  if (!(await new People(deps.pool, deps.secrets).setRecoveryCodes(found, macs, version))) {
    return refuse('/password', 'Your sign-in changed meanwhile: begin again.');
  }
  await execute(deps.store, person, personId, { type: 'EnableSecondFactor' }, personContext(deps, personId));
  await execute(deps.store, person, personId, { type: 'ReplaceRecoveryCodes' }, personContext(deps, personId));
  return codes;
};

/** New recovery codes, shown once; the former ones end. */
export const replaceRecoveryCodes = async (
  deps: PeopleDeps,
  personId: string,
  password: string,
): Promise<readonly string[]> => {
  const found = await requirePassword(deps, personId, password);
  if (!found.totpConfirmed) return refuse('/password', 'Recovery codes go with a second factor: turn it on first.');
  return replaceCodes(deps, found);
};

/** Asks for the password and for a code, so that a stolen password alone does not remove what guards against it. */
export const removeSecondFactor = async (
  deps: PeopleDeps,
  personId: string,
  { password, code }: { readonly password: string; readonly code: string },
): Promise<void> => {
  const people = new People(deps.pool, deps.secrets);
  const found = await requirePassword(deps, personId, password);
  if (!found.totpConfirmed) return;
  const attempted = { what: `code ${personId}`, free: 5 };
  await beginAttempt(deps.pool, attempted);
  if ((await spendCode(deps, people, found, code)) === null) refuse('/code', 'This code is wrong, or was used.');
  await forgetAttempts(deps.pool, attempted);
  await endSecondFactor(deps, personId, personContext(deps, personId));
};

/** The row first, because it is what asks for a code. If we die in between, the same step again tells of it. */
export const endSecondFactor = async (deps: PeopleDeps, personId: string, context: CommandContext): Promise<void> => {
  await new People(deps.pool, deps.secrets).removeTotp(personId);
  await execute(deps.store, person, personId, { type: 'DisableSecondFactor' }, context);
};

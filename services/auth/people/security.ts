import { Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PasswordCause } from '#schemas/person.ts';
import { revokeGrantsOfPerson } from '../grants.ts';
import { beginAttempt, forgetAttempts } from './attempts.ts';
import { People, type PersonCredentials } from './credentials.ts';
import { nowOf, type PeopleDeps, personContext } from './deps.ts';
import { hashPassword, isPassword, requireGoodPassword } from './passwords.ts';
import { findPersonLink, takePersonLink } from './person-links.ts';
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
  if (!(await isPassword(password, found.passwordHash))) refuse('/currentPassword', 'This is not your password.');
  await forgetAttempts(deps.pool, attempted);
  return found;
};

/** @throws Rejection where the password is not good enough, Unavailable where too many are hashed at once */
const hashOfGood = async (deps: PeopleDeps, personId: string, password: string): Promise<string> => {
  const known = await loadPerson(deps, personId);
  if (known === null) throw new Rejection('not_found', 'There is no such person.');
  requireGoodPassword(password, { email: known.email ?? '', name: known.name ?? '' });
  return hashPassword(password);
};

/** The rows first, because they are what signs in. If we die then, `recordEnds` tells of the sessions that ended. */
const setPassword = async (
  deps: PeopleDeps,
  personId: string,
  passwordHash: string,
  { by, keep }: { readonly by: PasswordCause; readonly keep: string | null },
): Promise<void> => {
  const reason = 'password_set';
  const people = new People(deps.pool, deps.secrets);
  const ended = await people.setPassword(personId, passwordHash, { keep, now: nowOf(deps), reason });
  faultPoint('password:after-row');
  await recordEndsOf(deps, personId, ended, reason);
  await execute(deps.store, person, personId, { type: 'SetPassword', by }, personContext(deps, personId));
};

/** Ends every other session of the person. @param keep the session that changes it */
export const changePassword = async (
  deps: PeopleDeps,
  personId: string,
  { current, next, keep }: { readonly current: string; readonly next: string; readonly keep: string },
): Promise<void> => {
  await requirePassword(deps, personId, current);
  await setPassword(deps, personId, await hashOfGood(deps, personId, next), { by: 'changed', keep });
};

/**
 * Takes the link only with a password that is good enough. Ends every session, and what apps were given: a stranger who
 * had the former password may have connected some. Keys stay, because programs of the workspace work with them.
 * @returns null for a link that ended
 */
export const resetPassword = async (deps: PeopleDeps, token: string, next: string): Promise<string | null> => {
  const named = await findPersonLink(deps, token, 'reset');
  if (named === null || (await loadPerson(deps, named)) === null) return null;
  // Before the link is taken: a person who is told to come again has it still.
  const passwordHash = await hashOfGood(deps, named, next);
  // Before the link is taken: if we die here, the person opens it again.
  await revokeGrantsOfPerson(deps, named);
  const personId = await takePersonLink(deps, token, 'reset');
  if (personId === null) return null;
  await setPassword(deps, personId, passwordHash, { by: 'reset', keep: null });
  return personId;
};

/** A secret for the authenticator app. It asks for nothing before `confirmSecondFactor`. */
export const offerSecondFactor = async (
  deps: PeopleDeps,
  personId: string,
  password: string,
): Promise<{ readonly uri: string; readonly text: string }> => {
  const found = await requirePassword(deps, personId, password);
  if (found.totpConfirmed) refuse('/code', 'You have a second factor already: remove it first.');
  const known = await loadPerson(deps, personId);
  const secret = newTotpSecret();
  await new People(deps.pool, deps.secrets).offerTotp(personId, secret);
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
  const { totpSecret, totpConfirmed } = await credentialsOf(deps, personId);
  if (totpSecret === null || totpConfirmed) return refuse('/code', 'Begin again: there is nothing to confirm.');
  const attempted = { what: `confirm ${personId}`, free: 5 };
  await beginAttempt(deps.pool, attempted);
  const step = totpStepOf(totpSecret, code, deps.clock());
  if (step === null || !(await people.spendTotp(personId, step))) {
    return refuse('/code', 'This is not the code that the app shows now.');
  }
  await forgetAttempts(deps.pool, attempted);
  await people.confirmTotp(personId);
  // If we die here, the factor is asked for; the event and the codes come when the person asks for new codes.
  faultPoint('second-factor:after-row');
  return replaceCodes(deps, personId);
};

const replaceCodes = async (deps: PeopleDeps, personId: string): Promise<readonly string[]> => {
  const codes = newRecoveryCodes();
  const version = deps.secrets.current;
  const macs = codes.map((code) => recoveryMac(deps.secrets, personId, code, version));
  await execute(deps.store, person, personId, { type: 'EnableSecondFactor' }, personContext(deps, personId));
  await new People(deps.pool, deps.secrets).setRecoveryCodes(personId, macs, version);
  await execute(deps.store, person, personId, { type: 'ReplaceRecoveryCodes' }, personContext(deps, personId));
  return codes;
};

/** New recovery codes, shown once; the former ones end. */
export const replaceRecoveryCodes = async (
  deps: PeopleDeps,
  personId: string,
  password: string,
): Promise<readonly string[]> => {
  const { totpConfirmed } = await requirePassword(deps, personId, password);
  if (!totpConfirmed) return refuse('/password', 'Recovery codes go with a second factor: turn it on first.');
  return replaceCodes(deps, personId);
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
  await people.removeTotp(personId);
  await execute(deps.store, person, personId, { type: 'DisableSecondFactor' }, personContext(deps, personId));
};

import { randomUUID } from 'node:crypto';
import { isConflict } from '#contracts/ports/event-store.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { type PersonState, person } from '#domain/person.ts';
import { personemail } from '#domain/personemail.ts';
import { type CommandContext, type Loaded, partitionKeyOf } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { maxPersonName } from '#schemas/person.ts';
import { People } from './credentials.ts';
import { type PeopleDeps, personContext } from './deps.ts';
import { emailClaimIdOf, emailMac, isEmail, normaliseEmail } from './emails.ts';
import { hashPassword, requireGoodPassword } from './passwords.ts';

/** Registers a person: claim of the address → events of the person → row with the hash of the password. */

export interface NewPerson {
  readonly email: string;
  readonly name: string;
  readonly password: string;
  /** Whether the invitation proves the address: it came to it by mail, or an operator made it for it. Default: no. */
  readonly isProven?: boolean;
}

/** A step of registration lost against another caller: everything is read again. */
const maxRounds = 20;

const checked = ({ email: typed, name: typedName, password, isProven = false }: NewPerson): Required<NewPerson> => {
  const email = normaliseEmail(typed);
  const name = typedName.trim();
  if (!isEmail(email)) {
    throw new Rejection('validation_failed', 'Give an e-mail address such as ann@example.com.', {
      errors: [{ path: '/email', code: 'not_allowed', message: 'must be an e-mail address' }],
    });
  }
  if (name === '' || name.length > maxPersonName || /\p{Cc}/u.test(name)) {
    throw new Rejection('validation_failed', `Give your name, in 1 to ${maxPersonName} characters.`, {
      errors: [{ path: '/name', code: 'out_of_range', message: `must have 1 to ${maxPersonName} characters` }],
    });
  }
  requireGoodPassword(password, { email, name });
  return { email, name, password, isProven };
};

/**
 * @param cause id of the invitation: a repeat under the same one completes a registration whose process died
 * @returns the id of the person, whose events and row are committed
 * @throws Rejection validation_failed; already_exists where the address is that of a registered person
 */
export const registerPerson = async (deps: PeopleDeps, wanted: NewPerson, cause: string): Promise<string> => {
  const { email, name, password, isProven } = checked(wanted);
  const people = new People(deps.pool, deps.secrets);
  const passwordHash = await hashPassword(password, cause);
  const claimId = emailClaimIdOf(emailMac(deps.secrets, email));
  for (let round = 1; ; round += 1) {
    const { state: claim } = await deps.store.load(personemail, claimId);
    // A claim whose person was never registered is taken over with its id: the late append of its first claimant loses.
    const personId = claim.status === 'claimed' ? claim.personId : randomUUID();
    const context = { ...personContext(deps, personId), commandId: cause };
    const before = await deps.store.load(person, personId);
    if (before.state.status === 'erased') throw new Rejection('already_exists', 'Come again in a moment.');
    if (before.state.status === 'registered') {
      await complete(people, before, { cause, personId, email, passwordHash });
      return personId;
    }
    try {
      await execute(deps.store, personemail, claimId, { type: 'Claim', personId }, context, { redecide: false });
      faultPoint('person:after-claim');
      await appendRegistered(deps, personId, { email, name, isProven }, context);
      faultPoint('person:after-events');
      await people.create(personId, email, passwordHash);
      faultPoint('person:after-row');
      return personId;
    } catch (error) {
      if (!isConflict(error) || round >= maxRounds) throw error;
    }
  }
};

const appendRegistered = async (
  { store }: PeopleDeps,
  personId: string,
  { email, name, isProven }: Omit<Required<NewPerson>, 'password'>,
  context: CommandContext,
): Promise<void> => {
  const registered = { type: 'PersonRegistered', data: { personId, email, name } } as const;
  const password = { type: 'PasswordSet', data: { by: 'joined' } } as const;
  const proof = { type: 'EmailProven', data: { by: 'invitation' } } as const;
  const events = [registered, password, ...(isProven ? [proof] : [])];
  await store.append(`person-${personId}`, -1, events, context, partitionKeyOf('person', personId));
};

/**
 * If we die between the events and the row, the person cannot sign in yet: opening the same invitation again
 * writes the row. No other way may write it, because the password would be a stranger's.
 */
const complete = async (
  people: People,
  { events }: Loaded<PersonState>,
  { cause, personId, email, passwordHash }: Readonly<Record<'cause' | 'personId' | 'email' | 'passwordHash', string>>,
): Promise<void> => {
  const isOwn = birthOf(person, events)?.metadata.commandId === cause;
  if (!isOwn || (await people.byId(personId)) !== null) {
    throw new Rejection('already_exists', 'You have an account with this address already: sign in with it.');
  }
  await people.create(personId, email, passwordHash);
};

/** What a person is called and where mails go; nulls once erased. */
export const loadPerson = async (
  { store }: Pick<PeopleDeps, 'store'>,
  personId: string,
): Promise<Extract<PersonState, { status: 'registered' }> | null> => {
  const { state } = await store.load(person, personId);
  return state.status === 'registered' ? state : null;
};

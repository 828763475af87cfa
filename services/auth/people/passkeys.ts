import { hash, randomUUID } from 'node:crypto';
import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Pool } from 'pg';
import { Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { maxPasskeyName } from '#schemas/person.ts';
import { beginAttempt, ofAddress, takeBackAttempt } from './attempts.ts';
import { People } from './credentials.ts';
import { type PeopleDeps, personContext } from './deps.ts';
import { requireProven } from './proof.ts';
import { openStep, sealStep } from './sealed-forms.ts';
import { ownerOfDevice } from './sign-in.ts';

/**
 * Passkeys: WebAuthn credentials that find their person by themselves and verify who holds the device, so that one signs
 * in without a password and without a second factor.
 */

/** Where passkeys work: the host of the console. */
export interface RelyingParty {
  /** `https://console.example.com` */
  readonly origin: string;
}

interface Challenge {
  readonly challenge: string;
  /** Null: for a sign-in. */
  readonly personId: string | null;
  /** Of the person, when the form was made; null: for a sign-in. */
  readonly era: number | null;
}

const purpose = 'passkey';

/** Loaded with the first passkey: a process that nobody shows one saves its memory. */
const webauthn = () => import('@simplewebauthn/server');

/** The challenge goes with the form, sealed; it is spent when it comes back. */
const sealChallenge = (deps: PeopleDeps, value: Challenge): string => sealStep(deps, purpose, value);

const openChallenge = async (deps: PeopleDeps, sealed: string, personId: string | null): Promise<Challenge | null> => {
  const opened = openStep<Challenge>(deps, purpose, sealed);
  if (opened === null || opened.value.personId !== personId) return null;
  const { rowCount } = await deps.pool.query(
    'insert into auth.spent (hash, expires_at) values ($1, $2) on conflict do nothing',
    [hash('sha256', sealed, 'buffer'), opened.until],
  );
  return rowCount === 1 ? opened.value : null;
};

export interface Passkey {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
}

export const listPasskeys = async (pool: Pool, personId: string): Promise<readonly Passkey[]> => {
  const { rows } = await pool.query(
    'select id::text, name, created_at, last_used_at from auth.passkeys where person_id = $1 order by created_at, id',
    [personId],
  );
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.created_at.toISOString(),
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
  }));
};

const rpIdOf = ({ origin }: RelyingParty): string => new URL(origin).hostname;

export const offerPasskey = async (
  deps: PeopleDeps,
  party: RelyingParty,
  { personId, email, name }: { readonly personId: string; readonly email: string; readonly name: string },
): Promise<{ readonly options: PublicKeyCredentialCreationOptionsJSON; readonly sealed: string }> => {
  const { rows } = await deps.pool.query<{ credential_id: Buffer; transports: AuthenticatorTransport[] }>(
    'select credential_id, transports from auth.passkeys where person_id = $1',
    [personId],
  );
  const era = (await new People(deps.pool, deps.secrets).byId(personId))?.era ?? null;
  const { generateRegistrationOptions } = await webauthn();
  const options = await generateRegistrationOptions({
    rpName: 'Postline',
    rpID: rpIdOf(party),
    userID: new Uint8Array(Buffer.from(personId.replaceAll('-', ''), 'hex')),
    userName: email,
    userDisplayName: name,
    attestationType: 'none',
    excludeCredentials: rows.map(({ credential_id: id, transports }) => ({ id: id.toString('base64url'), transports })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  return { options, sealed: sealChallenge(deps, { challenge: options.challenge, personId, era }) };
};

const known: readonly unknown[] = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'];

/** What a browser says of how it reaches the device: it is not signed, and may be anything. */
const transportsOf = (said: unknown): readonly AuthenticatorTransport[] =>
  Array.isArray(said) ? said.filter((one) => known.includes(one)).slice(0, known.length) : [];

const refuse = (message: string): never => {
  throw new Rejection('validation_failed', message);
};

/**
 * The event comes first: it holds the bound on their number. If we die before the row, the passkey does not work, and
 * the person adds it again. The row comes only in the era of its form: a new password, or the owner of the address, may
 * have ended what this person began. @throws Rejection with words for the person
 */
export const addPasskey = async (
  deps: PeopleDeps,
  { origin }: RelyingParty,
  {
    personId,
    sealed,
    response,
    name: typed,
  }: {
    readonly personId: string;
    readonly sealed: string;
    readonly response: RegistrationResponseJSON;
    readonly name: string;
  },
): Promise<Passkey> => {
  const name = typed.trim() === '' ? 'Passkey' : typed.trim();
  if (name.length > maxPasskeyName || /\p{Cc}/u.test(name)) {
    refuse(`The name of a passkey has at most ${maxPasskeyName} characters.`);
  }
  await requireProven(deps, personId);
  const opened = await openChallenge(deps, sealed, personId);
  if (opened === null) return refuse('This took too long: try again.');
  const { challenge, era } = opened;
  const { verifyRegistrationResponse } = await webauthn();
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpIdOf({ origin }),
    requireUserVerification: true,
  }).catch(() => null);
  if (verified === null || !verified.verified) return refuse('The passkey could not be verified: try again.');
  const { credential } = verified.registrationInfo;
  const id = randomUUID();
  await execute(deps.store, person, personId, { type: 'AddPasskey', passkeyId: id }, personContext(deps, personId));
  const { rows } = await deps.pool.query<{ created_at: Date }>(
    `insert into auth.passkeys (id, person_id, credential_id, public_key, counter, transports, name)
     select $1, person_id, $3, $4, $5, $6, $7 from auth.people where person_id = $2 and era = $8 for share
     on conflict (credential_id) do nothing returning created_at`,
    [
      id,
      personId,
      Buffer.from(credential.id, 'base64url'),
      Buffer.from(credential.publicKey),
      credential.counter,
      transportsOf(credential.transports),
      name,
      era,
    ],
  );
  const [row] = rows;
  if (row === undefined) {
    await removePasskey(deps, personId, id);
    return refuse('This passkey is registered already, or your sign-in changed meanwhile: look, and try again.');
  }
  return { id, name, createdAt: row.created_at.toISOString(), lastUsedAt: null };
};

/** The row comes first, because it is what signs in. */
export const removePasskey = async (deps: PeopleDeps, personId: string, id: string): Promise<void> => {
  await deps.pool.query('delete from auth.passkeys where id = $1 and person_id = $2', [id, personId]);
  await execute(deps.store, person, personId, { type: 'RemovePasskey', passkeyId: id }, personContext(deps, personId));
};

/** Asks for any passkey of this host, so that the answer tells nothing about accounts. */
export const askForPasskey = async (
  deps: PeopleDeps,
  party: RelyingParty,
): Promise<{ readonly options: PublicKeyCredentialRequestOptionsJSON; readonly sealed: string }> => {
  const { generateAuthenticationOptions } = await webauthn();
  const options = await generateAuthenticationOptions({ rpID: rpIdOf(party), userVerification: 'required' });
  return { options, sealed: sealChallenge(deps, { challenge: options.challenge, personId: null, era: null }) };
};

export interface PasskeySignIn {
  /** Of the form. */
  readonly sealed: string;
  readonly response: AuthenticationResponseJSON;
  /** In the form by which allowances are counted. */
  readonly address: string;
  /** What a browser that signed somebody in before still has. Default: none. */
  readonly knownDevice?: string | null;
}

/** The person of the passkey, and the era in which it was right; null where it is none of ours, or does not verify. @throws TooManyAttempts */
export const signInByPasskey = async (
  deps: PeopleDeps,
  { origin }: RelyingParty,
  { sealed, response, address, knownDevice = null }: PasskeySignIn,
): Promise<{ readonly personId: string; readonly era: number } | null> => {
  // No passkey is guessed: the count bounds the work. A known device has its own count, also behind a shared address.
  const owner = ownerOfDevice(deps, knownDevice);
  const attempted = owner === null ? ofAddress(address) : { what: `passkey from a device of ${owner}`, free: 20 };
  await beginAttempt(deps.pool, attempted);
  const challenge = (await openChallenge(deps, sealed, null))?.challenge ?? null;
  if (challenge === null || typeof response.id !== 'string') return null;
  const { rows } = await deps.pool.query(
    `select id::text, person_id::text, credential_id, public_key, counter, transports, era
     from auth.passkeys join auth.people using (person_id) where credential_id = $1`,
    [Buffer.from(response.id, 'base64url')],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { verifyAuthenticationResponse } = await webauthn();
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpIdOf({ origin }),
    requireUserVerification: true,
    credential: {
      id: row.credential_id.toString('base64url'),
      publicKey: new Uint8Array(row.public_key),
      counter: Number(row.counter),
      transports: row.transports,
    },
  }).catch(() => null);
  if (verified === null || !verified.verified) return null;
  // Of two uses with one counter, one wins. Synced passkeys count nothing and stay at 0 (WebAuthn 3, 6.1.1).
  const { newCounter } = verified.authenticationInfo;
  const { rowCount } = await deps.pool.query(
    `update auth.passkeys set counter = $2, last_used_at = $3
     where id = $1 and (counter < $2 or (counter = 0 and $2 = 0))`,
    [row.id, newCounter, new Date(deps.clock()).toISOString()],
  );
  if (rowCount !== 1) return null;
  await takeBackAttempt(deps.pool, attempted);
  return { personId: row.person_id, era: row.era };
};

import { uuidv5 } from '#domain/ids.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { maxEmail } from '#schemas/person.ts';

/** E-mail addresses of persons: how they are compared, and the name of their claim, which does not tell the address. */

/**
 * The workspace of events that belong to no workspace: persons, their addresses and their sessions. A uuid of version 8
 * that no generator makes.
 */
export const installationId = '00000000-0000-8000-8000-000000000001';

/** Addresses are compared without regard to case: no provider of today tells two mailboxes apart by it. */
export const normaliseEmail = (text: string): string => text.trim().normalize('NFKC').toLowerCase();

/** One `@` with something on both sides, no blanks or control characters. Only a mail proves an address. */
export const isEmail = (text: string): boolean => {
  const at = text.indexOf('@');
  const domain = text.slice(at + 1);
  return (
    text.length <= maxEmail &&
    at > 0 &&
    at <= 64 &&
    domain.length > 2 &&
    domain.includes('.') &&
    !domain.includes('@') &&
    !domain.startsWith('.') &&
    !domain.endsWith('.') &&
    !/[\s\p{C}<>(),;:"[\]\\]/u.test(text)
  );
};

/** @param email normalised */
export const emailMac = (secrets: Secrets, email: string, version: string = secrets.oldest): Buffer =>
  secrets.mac('emails', email, version);

/**
 * The stream of the claim. The oldest version of the secret key names it, so that a new key in front does not let a
 * second person claim an address.
 */
export const emailClaimIdOf = (mac: Buffer): string => uuidv5(installationId, `email\n${mac.toString('hex')}`);

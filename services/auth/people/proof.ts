import { Rejection } from '#domain/decider.ts';
import type { PeopleDeps } from './deps.ts';
import { confirmMail } from './mail.ts';
import { mintPersonLink } from './person-links.ts';
import { loadPerson } from './register.ts';

/**
 * Whether the person of an account has its address. Where this installation sends mails, an account whose address nobody
 * has proven gets no way in that would stay, no key, no app and no further workspace: its owner may come yet, and takes
 * it back by a mail. Without mails an operator says so, and nothing is refused.
 */

/** @throws Rejection where the address is not proven and a mail could prove it */
export const requireProven = async (deps: PeopleDeps, personId: string): Promise<void> => {
  const { mailer = null } = deps;
  if (mailer === null) return;
  const known = await loadPerson(deps, personId);
  if (known !== null && known.emailProvenAt !== null) return;
  throw new Rejection(
    'validation_failed',
    'Confirm your e-mail address first: open the link in the mail that you got, or have it sent again under Security.',
  );
};

/** Sends the link that proves the address. If we die before, the person has it sent again. */
export const sendConfirmation = async (deps: PeopleDeps, personId: string, consoleUrl: string): Promise<void> => {
  const { mailer = null } = deps;
  const known = await loadPerson(deps, personId);
  const email = known?.email ?? null;
  if (mailer === null || known === null || email === null || known.emailProvenAt !== null) return;
  const { token } = await mintPersonLink(deps, personId, 'confirm');
  await mailer.send(confirmMail(email, `${consoleUrl}/confirm/${token}`));
};

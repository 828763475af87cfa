import { notFound } from '#services/api/call/refusal.ts';
import { People } from '#services/auth/people/credentials.ts';
import { normaliseEmail } from '#services/auth/people/emails.ts';
import { resetMail } from '#services/auth/people/mail.ts';
import { listPasskeys } from '#services/auth/people/passkeys.ts';
import { minPassword } from '#services/auth/people/passwords.ts';
import { findPersonLink, type LinkPurpose, mintAskedLink, takePersonLink } from '#services/auth/people/person-links.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import { confirmEmail, type PasswordLink, setPasswordByLink } from '#services/auth/people/security.ts';
import { clearCookie } from '../cookies.ts';
import type { Console, Visit } from '../deps.ts';
import { attempt, type FormRefusal } from '../errors.ts';
import { textOf } from '../forms.ts';
import { home } from '../paths.ts';
import type { Route } from '../routes.ts';
import { canMail, sendLater, tellPerson } from '../security-mails.ts';
import { goTo, showPage } from '../show.ts';
import { enter } from './sign-in.ts';

/** Links that work once: for a new password, for the proof of an address, and into the console. Opening one changes nothing: scanners open links. */

/** If we die before the mail is sent, its link counts for an hour, and the person asks again. */
const sendReset = async (it: Console, personId: string, email: string): Promise<void> => {
  const { deps } = it;
  const { mailer = null } = deps;
  const link = await mintAskedLink(deps, personId, 'reset');
  if (mailer === null || link === null) return;
  const isSent = await mailer.send(resetMail(email, `${deps.consoleUrl()}/reset-password/${link.token}`));
  // A link that reached nobody must not keep the next one from being sent.
  if (!isSent) await takePersonLink(deps, link.token, 'reset');
};

/**
 * Refuses nobody: a stranger who asks for a person, or from the same address, must not keep the person from asking. What
 * is bounded is the mails. The look for the account comes before the answer for every address, and the mail after it: the
 * time tells nothing, and addresses without an account keep no mail waiting.
 */
const forgot = async (visit: Visit): Promise<void> => {
  const { it, form } = visit;
  const { deps } = it;
  const byMail = canMail(it);
  const email = normaliseEmail(textOf(form, 'email', 300));
  const found = byMail ? await new People(deps.pool, deps.secrets).byEmail(email) : null;
  if (found !== null) sendLater(it, 'reset', () => sendReset(it, found.personId, email));
  showPage(visit, { view: 'forgot-done', title: 'Look into your mail', data: { email, byMail } });
};

const showForgot = (visit: Visit): void =>
  showPage(visit, { view: 'forgot', title: 'Set a new password', data: { byMail: canMail(visit.it) } });

/** The person of the link of the path. @throws Refusal 404 where it works no more */
const personOf = async ({ it, params }: Visit, purpose: LinkPurpose): Promise<string> => {
  const personId = await findPersonLink(it.deps, params.token ?? '', purpose);
  if (personId === null) throw notFound('link');
  return personId;
};

/** Other ways to sign in that a reset may end. Of a proven person the second factor stays. */
const waysOf = async ({ it }: Visit, personId: string) => {
  const { deps } = it;
  const [known, credentials, passkeys] = await Promise.all([
    loadPerson(deps, personId),
    new People(deps.pool, deps.secrets).byId(personId),
    listPasskeys(deps.pool, personId),
  ]);
  const isProven = known !== null && known.emailProvenAt !== null;
  const hasFactor = credentials?.totpConfirmed === true;
  return { isProven, hasFactor, passkeys: passkeys.length, mayRemove: passkeys.length > 0 || (!isProven && hasFactor) };
};

const showReset = async (visit: Visit, personId: string, refused: FormRefusal | null): Promise<void> => {
  const data = { minPassword, ...(await waysOf(visit, personId)) };
  showPage(visit, { view: 'reset', title: 'Set a new password', ...refused, data });
};

/** The new password has ended every session: the person signs in with it, and with the second factor. */
const byLink = async (
  visit: Visit,
  link: Omit<PasswordLink, 'token'>,
): Promise<readonly [personId: string, refused: null] | readonly [personId: null, refused: FormRefusal]> => {
  const { it, ctx, form, params } = visit;
  const [personId, refused] = await attempt(ctx, () =>
    setPasswordByLink(it.deps, { ...link, token: params.token ?? '' }, form.get('password') ?? ''),
  );
  if (refused !== null) return [null, refused];
  if (personId === null) throw notFound('link');
  tellPerson(it, ctx, personId, 'password_reset');
  clearCookie(it, ctx, 'session');
  return [personId, null];
};

const reset = async (visit: Visit): Promise<void> => {
  const named = await personOf(visit, 'reset');
  const [, refused] = await byLink(visit, { purpose: 'reset', removes: visit.form.get('remove') === 'yes' });
  return refused === null ? goTo(visit.ctx, '/sign-in?done=password') : showReset(visit, named, refused);
};

const showConfirm = async (visit: Visit, personId: string, refused: FormRefusal | null): Promise<void> => {
  const email = (await loadPerson(visit.it.deps, personId))?.email ?? '';
  const data = { minPassword, email, isOwn: visit.visitor?.personId === personId };
  showPage(visit, { view: 'confirm', title: `Confirm that ${email} is yours`, ...refused, data });
};

/**
 * A visitor who is signed in as the person knows the password, and keeps it. Anybody else who has the link sets one: the
 * account may have been made by a stranger.
 */
const confirm = async (visit: Visit): Promise<void> => {
  const { it, ctx, params, visitor } = visit;
  const named = await personOf(visit, 'confirm');
  if (visitor !== null && visitor.personId === named) {
    const asked = { token: params.token ?? '', personId: named, keep: visitor.session.id };
    if (!(await confirmEmail(it.deps, asked))) throw notFound('link');
    return goTo(ctx, '/security?done=confirmed');
  }
  const [, refused] = await byLink(visit, { purpose: 'confirm', removes: true });
  return refused === null ? goTo(ctx, '/sign-in?done=confirmed') : showConfirm(visit, named, refused);
};

const takeLink = async (visit: Visit): Promise<void> => {
  const personId = await takePersonLink(visit.it.deps, visit.params.token ?? '', 'sign_in');
  if (personId === null) throw notFound('link');
  await enter(visit, { personId, by: 'link' });
  goTo(visit.ctx, home);
};

export const linkRoutes: readonly Route[] = [
  { method: 'GET', path: '/forgot-password', for: 'anyone', answer: showForgot },
  { method: 'POST', path: '/forgot-password', for: 'anyone', answer: forgot },
  {
    method: 'GET',
    path: '/reset-password/:token',
    for: 'anyone',
    answer: async (visit) => showReset(visit, await personOf(visit, 'reset'), null),
  },
  { method: 'POST', path: '/reset-password/:token', for: 'anyone', answer: reset },
  {
    method: 'GET',
    path: '/confirm/:token',
    for: 'anyone',
    answer: async (visit) => showConfirm(visit, await personOf(visit, 'confirm'), null),
  },
  { method: 'POST', path: '/confirm/:token', for: 'anyone', answer: confirm },
  {
    method: 'GET',
    path: '/enter/:token',
    for: 'anyone',
    answer: async (visit) => {
      await personOf(visit, 'sign_in');
      showPage(visit, { view: 'enter', title: 'Sign in with this link' });
    },
  },
  { method: 'POST', path: '/enter/:token', for: 'anyone', answer: takeLink },
];

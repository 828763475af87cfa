import { notFound } from '#services/api/refusal.ts';
import { stateOf } from '#services/api/state.ts';
import { beginAttempt } from '#services/auth/people/attempts.ts';
import { People } from '#services/auth/people/credentials.ts';
import { emailMac, normaliseEmail } from '#services/auth/people/emails.ts';
import { resetMail } from '#services/auth/people/mail.ts';
import { minPassword } from '#services/auth/people/passwords.ts';
import { findPersonLink, mintPersonLink, takePersonLink } from '#services/auth/people/person-links.ts';
import { resetPassword } from '#services/auth/people/security.ts';
import { clearCookie } from '../cookies.ts';
import type { Console, Visit } from '../deps.ts';
import { attempt, type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import { home } from '../paths.ts';
import type { Route } from '../routes.ts';
import { sendLater, tellPerson } from '../security-mails.ts';
import { goTo, showPage } from '../show.ts';
import { enter } from './sign-in.ts';

/** Links that work once: for a new password, and into the console. Opening one changes nothing: scanners open links. */

const canMail = ({ deps }: Console): boolean => deps.mailer !== undefined && deps.mailer !== null;

const sendReset = async (it: Console, email: string): Promise<void> => {
  const { deps } = it;
  const { mailer = null } = deps;
  const found = await new People(deps.pool, deps.secrets).byEmail(email);
  if (found === null || mailer === null) return;
  const { token } = await mintPersonLink(deps, found.personId, 'reset');
  await mailer.send(resetMail(email, `${deps.consoleUrl()}/reset-password/${token}`));
};

const forgot = async (visit: Visit): Promise<void> => {
  const { it, ctx, form } = visit;
  const { deps } = it;
  const byMail = canMail(it);
  const email = normaliseEmail(textOf(form, 'email', 300));
  const refused = await refusalOf(ctx, async () => {
    await beginAttempt(deps.pool, { what: `reset from ${stateOf(ctx).address}`, free: 20 });
    await beginAttempt(deps.pool, { what: `reset ${emailMac(deps.secrets, email).toString('hex')}`, free: 3 });
  });
  if (refused !== null) return showForgot(visit, refused);
  if (byMail) sendLater(it, () => sendReset(it, email));
  showPage(visit, { view: 'forgot-done', title: 'Look into your mail', data: { email, byMail } });
};

const showForgot = (visit: Visit, refused: FormRefusal | null): void =>
  showPage(visit, {
    ...{ view: 'forgot', title: 'Set a new password', ...refused },
    data: { byMail: canMail(visit.it) },
  });

const linkOf = async (visit: Visit, purpose: 'reset' | 'sign_in'): Promise<string> => {
  const { it, params } = visit;
  const token = params.token ?? '';
  if ((await findPersonLink(it.deps, token, purpose)) === null) throw notFound('link');
  return token;
};

const showReset = (visit: Visit, refused: FormRefusal | null): void =>
  showPage(visit, { view: 'reset', title: 'Set a new password', ...refused, data: { minPassword } });

const reset = async (visit: Visit): Promise<void> => {
  const { it, ctx, form } = visit;
  const token = await linkOf(visit, 'reset');
  const [personId, refused] = await attempt(ctx, () => resetPassword(it.deps, token, form.get('password') ?? ''));
  if (refused !== null) return showReset(visit, refused);
  if (personId === null) throw notFound('link');
  tellPerson(it, ctx, personId, 'password_reset');
  // The new password has ended every session: the person signs in with it, and with the second factor.
  clearCookie(it, ctx, 'session');
  goTo(ctx, '/sign-in?done=password');
};

const takeLink = async (visit: Visit): Promise<void> => {
  const personId = await takePersonLink(visit.it.deps, visit.params.token ?? '', 'sign_in');
  if (personId === null) throw notFound('link');
  await enter(visit, personId, 'link');
  goTo(visit.ctx, home);
};

export const linkRoutes: readonly Route[] = [
  { method: 'GET', path: '/forgot-password', for: 'anyone', answer: (visit) => showForgot(visit, null) },
  { method: 'POST', path: '/forgot-password', for: 'anyone', answer: forgot },
  {
    method: 'GET',
    path: '/reset-password/:token',
    for: 'anyone',
    answer: async (visit) => {
      await linkOf(visit, 'reset');
      showReset(visit, null);
    },
  },
  { method: 'POST', path: '/reset-password/:token', for: 'anyone', answer: reset },
  {
    method: 'GET',
    path: '/enter/:token',
    for: 'anyone',
    answer: async (visit) => {
      await linkOf(visit, 'sign_in');
      showPage(visit, { view: 'enter', title: 'Sign in with this link' });
    },
  },
  { method: 'POST', path: '/enter/:token', for: 'anyone', answer: takeLink },
];

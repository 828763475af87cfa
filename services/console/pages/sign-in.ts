import { readFile } from 'node:fs/promises';
import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import { stateOf } from '#services/api/http/every-request.ts';
import { askForPasskey, signInByPasskey } from '#services/auth/people/passkeys.ts';
import { endSessions, type SessionStart, sessionMs, startSession } from '#services/auth/people/sessions.ts';
import { deviceToken, isDeviceOf, signInByCode, signInByPassword } from '#services/auth/people/sign-in.ts';
import { clearCookie, readCookie, setCookie } from '../cookies.ts';
import type { Visit } from '../deps.ts';
import { attempt, type FormRefusal } from '../errors.ts';
import { textOf } from '../forms.ts';
import { nextOf, signInFor } from '../paths.ts';
import type { Route } from '../routes.ts';
import { tellPerson } from '../security-mails.ts';
import { goTo, noticeOf, showPage } from '../show.ts';
import { deviceOf } from '../words.ts';

/** Sign-in: a password and, where the person has one, a second factor; or a passkey. And sign-out. */

const deviceSeconds = 365 * 86_400;

export type SignedInAs = Pick<SessionStart, 'personId' | 'by' | 'era'>;

/** A new session in the cookie; the one that the browser had ends. */
export const enter = async ({ it, ctx, visitor }: Visit, { personId, by, era }: SignedInAs): Promise<string> => {
  const { deps } = it;
  if (visitor !== null) await endSessions(deps, visitor.personId, { ids: [visitor.session.id] }, 'signed_out');
  const { address, correlationId } = stateOf(ctx);
  const device = deviceOf(ctx.get('User-Agent'));
  const { id, secret } = await startSession(deps, {
    ...{ personId, by, device, address, correlationId },
    ...(era === undefined ? {} : { era }),
  });
  setCookie(it, ctx, 'session', secret, sessionMs / 1_000);
  setCookie(it, ctx, 'device', deviceToken(deps, personId), deviceSeconds);
  return id;
};

const notices: Readonly<Record<string, string>> = {
  password: 'Your new password is set. Sign in with it.',
  confirmed: 'Your address is confirmed, and your password is set. Sign in with it.',
  'signed-out': 'You are signed out.',
};

const wrong: FormRefusal = { status: 422, alert: 'The e-mail address or the password is wrong.' };
const late: FormRefusal = { status: 422, alert: 'This took too long. Sign in again.' };

const showSignIn = async (visit: Visit, next: string, refused: FormRefusal | null, email = ''): Promise<void> => {
  const { it } = visit;
  const { options, sealed } = await askForPasskey(it.deps, { origin: it.deps.consoleUrl() });
  showPage(visit, {
    ...{ view: 'sign-in', title: 'Sign in', script: true, ...refused },
    notice: noticeOf(visit, notices, refused),
    data: { next, email, passkey: { options: JSON.stringify(options), sealed } },
  });
};

const showCode = (visit: Visit, next: string, pending: string, refused: FormRefusal | null): void =>
  showPage(visit, { view: 'sign-in-code', title: 'Enter your code', ...refused, data: { next, pending } });

const proceed = async (visit: Visit, next: string, who: SignedInAs): Promise<void> => {
  const { personId, by } = who;
  const { it, ctx } = visit;
  const isNew = !isDeviceOf(it.deps, readCookie(it, ctx, 'device'), personId);
  await enter(visit, who);
  if (by === 'recovery_code') tellPerson(it, ctx, personId, 'recovery_code_used');
  else if (isNew) tellPerson(it, ctx, personId, 'new_browser');
  goTo(ctx, next);
};

const byPassword = async (visit: Visit): Promise<void> => {
  const { it, ctx, form } = visit;
  const next = nextOf(form.get('next'));
  const email = textOf(form, 'email', 300);
  const password = form.get('password') ?? '';
  const { address } = stateOf(ctx);
  const knownDevice = readCookie(it, ctx, 'device');
  const [result, refused] = await attempt(ctx, () =>
    signInByPassword(it.deps, { email, password, address, knownDevice }),
  );
  if (refused !== null) return showSignIn(visit, next, refused, email);
  if (result.outcome === 'wrong') return showSignIn(visit, next, wrong, email);
  if (result.outcome === 'second_factor') return showCode(visit, next, result.pending, null);
  return proceed(visit, next, result);
};

const byCode = async (visit: Visit): Promise<void> => {
  const { it, ctx, form } = visit;
  const next = nextOf(form.get('next'));
  const pending = form.get('pending') ?? '';
  const code = textOf(form, 'code', 100);
  const { address } = stateOf(ctx);
  const knownDevice = readCookie(it, ctx, 'device');
  const [result, refused] = await attempt(ctx, () => signInByCode(it.deps, { pending, code, address, knownDevice }));
  if (refused !== null) return showCode(visit, next, pending, refused);
  if (result.outcome === 'expired') return showSignIn(visit, next, late);
  if (result.outcome === 'signed_in') return proceed(visit, next, result);
  showCode(visit, next, pending, { status: 422, alert: 'This code is wrong, or was used.' });
};

/** What the browser's own dialog gave; null where it is no such thing. */
export const readCredential = <T>(text: string | null): T | null => {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null ? (value as T) : null;
  } catch {
    return null;
  }
};

const byPasskey = async (visit: Visit): Promise<void> => {
  const { it, ctx, form } = visit;
  const next = nextOf(form.get('next'));
  const response = readCredential<AuthenticationResponseJSON>(form.get('response'));
  const sealed = form.get('sealed') ?? '';
  const sent = { sealed, address: stateOf(ctx).address, knownDevice: readCookie(it, ctx, 'device') };
  const [found, refused] = await attempt(ctx, async () =>
    response === null ? null : signInByPasskey(it.deps, { origin: it.deps.consoleUrl() }, { ...sent, response }),
  );
  if (found !== null) return proceed(visit, next, { ...found, by: 'passkey' });
  const unknown = 'The passkey was not accepted. Try again, or sign in with your password.';
  return showSignIn(visit, next, refused ?? { status: 422, alert: unknown });
};

const signOut = async ({ it, ctx, form, visitor }: Visit): Promise<void> => {
  if (visitor !== null) await endSessions(it.deps, visitor.personId, { ids: [visitor.session.id] }, 'signed_out');
  clearCookie(it, ctx, 'session');
  const next = form.get('next');
  goTo(ctx, next === null ? '/sign-in?done=signed-out' : signInFor(next));
};

const script = await readFile(new URL('../views/passkeys.js', import.meta.url), 'utf8');

export const signInRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/sign-in',
    for: 'anyone',
    answer: (visit) => {
      const { next } = visit.ctx.query;
      const to = nextOf(typeof next === 'string' ? next : null);
      return visit.visitor === null ? showSignIn(visit, to, null) : goTo(visit.ctx, to);
    },
  },
  { method: 'POST', path: '/sign-in', for: 'anyone', answer: byPassword },
  // The address stays in the bar of the browser after a form: a reload of it begins anew.
  { method: 'GET', path: '/sign-in/code', for: 'anyone', answer: ({ ctx }) => goTo(ctx, '/sign-in') },
  { method: 'POST', path: '/sign-in/code', for: 'anyone', answer: byCode },
  { method: 'GET', path: '/sign-in/passkey', for: 'anyone', answer: ({ ctx }) => goTo(ctx, '/sign-in') },
  { method: 'POST', path: '/sign-in/passkey', for: 'anyone', answer: byPasskey },
  { method: 'POST', path: '/sign-out', for: 'anyone', answer: signOut },
  {
    method: 'GET',
    path: '/sign-in/passkeys.js',
    for: 'anyone',
    answer: ({ ctx }) => {
      ctx.set('Cache-Control', 'no-cache');
      ctx.type = 'text/javascript';
      ctx.body = script;
    },
  },
];

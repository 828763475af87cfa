import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import { uuidPattern } from '#schemas/common.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { beginAttempt } from '#services/auth/people/attempts.ts';
import { People } from '#services/auth/people/credentials.ts';
import { addPasskey, listPasskeys, offerPasskey, removePasskey } from '#services/auth/people/passkeys.ts';
import { minPassword } from '#services/auth/people/passwords.ts';
import { sendConfirmation } from '#services/auth/people/proof.ts';
import { changePassword, requirePassword } from '#services/auth/people/security.ts';
import { endSessions, listSessions } from '#services/auth/people/sessions.ts';
import type { Visit, Visitor } from '../deps.ts';
import { type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import { call } from '../operations.ts';
import type { Route } from '../routes.ts';
import { canMail, sendLater, tellPerson } from '../security-mails.ts';
import { goTo, noticeOf, showPage } from '../show.ts';
import { memberOf } from '../visitors.ts';
import { readCredential } from './sign-in.ts';

/** Security of the own sign-in: password, second factor, passkeys, sessions. */

type Section = 'email' | 'password' | 'second-factor' | 'passkeys';

const notices: Readonly<Record<string, string>> = {
  confirmed: 'Your address is confirmed, and what was older has ended: other sessions, passkeys and the second factor.',
  'confirmation-sent': 'The link is on its way to your address.',
  password: 'Your password is changed, and every other session has ended.',
  'second-factor-off': 'The second factor is off.',
  'passkey-added': 'The passkey is added.',
  'passkey-removed': 'The passkey is removed.',
  'session-ended': 'The session has ended.',
  'sessions-ended': 'All other sessions have ended.',
};

export const showSecurity = async (
  visit: Visit<Visitor>,
  refused: (FormRefusal & { readonly section: Section }) | null,
): Promise<void> => {
  const { it, visitor } = visit;
  const { deps } = it;
  const { personId, email, name, isProven } = visitor;
  const [credentials, passkeys, sessions, asked] = await Promise.all([
    new People(deps.pool, deps.secrets).byId(personId),
    listPasskeys(deps.pool, personId),
    sessionsOf(visit),
    offerPasskey(deps, { origin: deps.consoleUrl() }, { personId, email, name }),
  ]);
  const { section = null, ...shown } = refused ?? {};
  showPage(visit, {
    ...{ view: 'security', title: 'Security', script: true, ...shown },
    notice: noticeOf(visit, notices, refused),
    data: {
      ...{ email, isProven, canMail: canMail(it), mayAdd: isProven || !canMail(it) },
      ...{ minPassword, passkeys, sessions, section },
      hasSecondFactor: credentials?.totpConfirmed === true,
      codesLeft: credentials?.recoveryMacs.length ?? 0,
      passkey: { options: JSON.stringify(asked.options), sealed: asked.sealed },
    },
  });
};

interface SessionRow {
  readonly id: string;
  readonly device: string;
  readonly address: string;
  readonly createdAt: string;
  readonly lastUsedAt: string;
  readonly current: boolean;
}

/** A member of no workspace has sessions too, and no operation of a workspace shows them. */
const sessionsOf = async (visit: Visit<Visitor>): Promise<readonly SessionRow[]> => {
  const { it, visitor } = visit;
  const member = memberOf(visitor);
  if (member !== null) return call<readonly SessionRow[]>({ ...visit, visitor: member }, 'listSessions');
  const sessions = await listSessions(it.deps, visitor.personId);
  return sessions.map((one) => ({ ...one, current: one.id === visitor.session.id }));
};

const uuid = new RegExp(uuidPattern);

const idOf = ({ params }: Visit<Visitor>, noun: string): string => {
  const { id = '' } = params;
  if (!uuid.test(id)) throw notFound(noun);
  return id;
};

const setPassword = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const { personId, session } = visitor;
  const refused = await refusalOf(ctx, async () => {
    const current = form.get('current') ?? '';
    await changePassword(it.deps, personId, { current, next: form.get('password') ?? '', keep: session.id });
  });
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'password' });
  tellPerson(it, ctx, personId, 'password_changed');
  goTo(ctx, '/security?done=password');
};

/** Asks for the password, so that a session that somebody left open does not become a way in that stays. */
const add = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const { personId } = visitor;
  const { deps } = it;
  const response = readCredential<RegistrationResponseJSON>(form.get('response'));
  const refused = await refusalOf(ctx, async () => {
    await requirePassword(deps, personId, form.get('password') ?? '');
    if (response === null) throw notFound('passkey');
    const made = { personId, sealed: form.get('sealed') ?? '', response, name: textOf(form, 'name') };
    await addPasskey(deps, { origin: deps.consoleUrl() }, made);
  });
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'passkeys' });
  tellPerson(it, ctx, personId, 'passkey_added');
  goTo(ctx, '/security?done=passkey-added');
};

const sendAgain = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, visitor } = visit;
  const { deps } = it;
  const refused = await refusalOf(ctx, () =>
    beginAttempt(deps.pool, { what: `confirmation ${visitor.personId}`, free: 4 }),
  );
  if (refused !== null) return showSecurity(visit, { ...refused, section: 'email' });
  sendLater(it, 'confirm', () => sendConfirmation(deps, visitor.personId, deps.consoleUrl()));
  goTo(ctx, '/security?done=confirmation-sent');
};

const remove = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, visitor } = visit;
  await removePasskey(it.deps, visitor.personId, idOf(visit, 'passkey'));
  tellPerson(it, ctx, visitor.personId, 'passkey_removed');
  goTo(ctx, '/security?done=passkey-removed');
};

const endOne = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, visitor } = visit;
  const id = idOf(visit, 'session');
  const member = memberOf(visitor);
  if (member !== null) await call({ ...visit, visitor: member }, 'revokeSession', { params: { id } });
  else await endSessions(it.deps, visitor.personId, { ids: [id] }, 'revoked');
  goTo(ctx, '/security?done=session-ended');
};

const endOthers = async ({ it, ctx, visitor }: Visit<Visitor>): Promise<void> => {
  await endSessions(it.deps, visitor.personId, { allBut: visitor.session.id }, 'revoked');
  goTo(ctx, '/security?done=sessions-ended');
};

export const securityRoutes: readonly Route[] = [
  { method: 'GET', path: '/security', for: 'person', answer: (visit) => showSecurity(visit, null) },
  { method: 'POST', path: '/security/confirmation', for: 'person', answer: sendAgain },
  { method: 'POST', path: '/security/password', for: 'person', answer: setPassword },
  { method: 'POST', path: '/security/passkeys', for: 'person', answer: add },
  { method: 'POST', path: '/security/passkeys/:id/remove', for: 'person', answer: remove },
  { method: 'POST', path: '/security/sessions/end-others', for: 'person', answer: endOthers },
  { method: 'POST', path: '/security/sessions/:id/end', for: 'person', answer: endOne },
];

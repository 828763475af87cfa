import type { Positions } from '#runtime/eventing/domain-store.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { beginAttempt } from '#services/auth/people/attempts.ts';
import { normaliseEmail } from '#services/auth/people/emails.ts';
import { mayMail } from '#services/auth/people/mail.ts';
import { minPassword } from '#services/auth/people/passwords.ts';
import { sendConfirmation } from '#services/auth/people/proof.ts';
import { chooseWorkspace } from '#services/auth/people/sessions.ts';
import { findTeamInvite, joinAs, joinAsNew, type OpenTeamInviteLink } from '#services/auth/people/team-invites.ts';
import type { Visit } from '../deps.ts';
import { type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import { home, signInFor } from '../paths.ts';
import type { Route } from '../routes.ts';
import { canMail, sendLater } from '../security-mails.ts';
import { goTo, showPage } from '../show.ts';
import { roleShown } from '../words.ts';
import { enter } from './sign-in.ts';

/** The page behind an invitation to the team: a new person registers, a signed-in one joins. */

/** Milliseconds that the next page waits for the workspace to show its new member. */
const caughtUpMs = 2_000;

/** An accepted one is of use only to the person who accepted it: their process may have died before they were a member. */
const openLink = async ({ it, params, visitor }: Visit): Promise<OpenTeamInviteLink> => {
  const link = await findTeamInvite(it.deps, params.token ?? '');
  const isOver = link?.state.status === 'accepted' && link.state.personId !== visitor?.personId;
  if (link === null || isOver) throw notFound('invitation');
  return link;
};

interface Typed {
  readonly email: string;
  readonly name: string;
}

const showJoin = (visit: Visit, link: OpenTeamInviteLink, refused: FormRefusal | null, typed: Typed | null): void => {
  const { state, workspaceName } = link;
  const invited = state.status === 'accepted' ? null : state;
  showPage(visit, {
    ...{ view: 'join', title: `Join ${workspaceName}`, ...refused },
    data: {
      workspaceName,
      minPassword,
      role: invited === null ? null : roleShown(invited.role),
      /** Null: the person chooses one. */
      invitedEmail: invited?.email ?? null,
      email: typed?.email ?? invited?.email ?? '',
      name: typed?.name ?? invited?.name ?? '',
      path: visit.ctx.path,
      signIn: signInFor(visit.ctx.path),
    },
  });
};

/** A workspace that has others join with addresses of strangers sends no more mails than with its invitations. */
const confirmByMail = async (
  { it }: Visit,
  { workspaceId, provesEmail }: OpenTeamInviteLink,
  personId: string,
  email: string,
): Promise<void> => {
  const { deps } = it;
  if (provesEmail || !canMail(it) || !(await mayMail(deps, workspaceId, normaliseEmail(email)))) return;
  sendLater(it, 'confirm', () => sendConfirmation(deps, personId, deps.consoleUrl()));
};

const join = async (visit: Visit): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const { deps } = it;
  const link = await openLink(visit);
  const positions: Positions = new Map();
  const typed = { email: textOf(form, 'email', 300), name: textOf(form, 'name', 300) };
  let sessionId = visitor?.session.id ?? null;
  const refused = await refusalOf(ctx, async () => {
    if (visitor !== null) return joinAs(deps, link, visitor.personId, positions);
    // A person with the link could otherwise probe any address for an account.
    await beginAttempt(deps.pool, { what: `join ${link.inviteId} ${stateOf(ctx).address}`, free: 10 });
    const personId = await joinAsNew(deps, link, { ...typed, password: form.get('password') ?? '' }, positions);
    sessionId = await enter(visit, { personId, by: 'joined' });
    await confirmByMail(visit, link, personId, typed.email);
  });
  if (refused !== null) return showJoin(visit, link, refused, typed);
  if (sessionId !== null) {
    await chooseWorkspace(deps.pool, sessionId, { workspaceId: link.workspaceId, mode: 'test' });
  }
  await deps.caughtUp(positions, caughtUpMs);
  goTo(ctx, home);
};

export const joinRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/join/:token',
    for: 'anyone',
    answer: async (visit) => showJoin(visit, await openLink(visit), null, null),
  },
  { method: 'POST', path: '/join/:token', for: 'anyone', answer: join },
];

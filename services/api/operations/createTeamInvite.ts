import { maxOpenInvites, openTeamInvites } from '#projections/team-invites.ts';
import { TeamInviteCreate, TeamInviteShown } from '#schemas/http/console.ts';
import { beginAttempt, TooManyAttempts } from '#services/auth/people/attempts.ts';
import { emailMac, isEmail, normaliseEmail } from '#services/auth/people/emails.ts';
import { inviteMail } from '#services/auth/people/mail.ts';
import { createTeamInvite as create } from '#services/auth/people/team-invites.ts';
import { loadWorkspace } from '#services/workflows/provision.ts';
import { operatorOf } from '../console/keys.ts';
import { exampleTeamInvite, requireMayManage } from '../console/team.ts';
import { type Call, operation } from '../operation.ts';
import { invalid } from '../refusal.ts';

const hourMs = 3_600_000;
const defaultHours = 168;

/**
 * Whether a mail may go out. A workspace that makes and revokes invitations would otherwise send as many mails as it
 * likes, to people who asked for none.
 */
const mayMail = async ({ pool, secrets }: Call['deps'], workspaceId: string, email: string): Promise<boolean> => {
  try {
    await beginAttempt(pool, { what: `mails of ${workspaceId}`, free: 100 });
    await beginAttempt(pool, {
      what: `mail of ${workspaceId} to ${emailMac(secrets, email).toString('hex')}`,
      free: 3,
    });
    return true;
  } catch (error) {
    if (error instanceof TooManyAttempts) return false;
    throw error;
  }
};

export const createTeamInvite = operation({
  id: 'createTeamInvite',
  method: 'POST',
  path: '/team-invites',
  tag: 'console',
  noun: 'team invite',
  summary: 'Invite a person to the team',
  description:
    'Makes a link by which one person becomes a member. The answer shows it once; where this installation sends mails, it goes to the address as well. Owners invite to every role; Managers creators and viewers. A repeat of the call makes another link.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 2,
  body: TeamInviteCreate,
  answer: TeamInviteShown,
  codes: [],
  example: {
    body: { email: 'ann@agency.example', role: 'creator' },
    data: { ...exampleTeamInvite, url: 'https://console.example/join/<token>', mailed: false },
  },
  handle: async (call) => {
    const { deps, principal, body, now, positions } = call;
    const { role, name = null, expiresInHours = defaultHours } = body;
    requireMayManage(principal.role, role);
    const email = body.email === undefined ? null : normaliseEmail(body.email);
    if (email !== null && !isEmail(email)) throw invalid('/email', 'not_allowed', 'must be an e-mail address');
    const workspaceId = principal.liveWorkspaceId;
    const open = await openTeamInvites(deps.pool, workspaceId, now);
    if (open.length >= maxOpenInvites) {
      throw invalid('', 'not_allowed', `must wait: ${maxOpenInvites} invitations are open, revoke some first`);
    }
    const expiresAt = new Date(Date.parse(now) + expiresInHours * hourMs).toISOString();
    const context = { ...call.context, workspaceId };
    const wanted = { memberId: null, email, name, role, expiresAt };
    const { inviteId, memberId, token } = await create(deps, wanted, context, positions);
    const url = `${deps.consoleUrl()}/join/${token}`;
    const { mailer = null } = deps;
    const mailed = email !== null && mailer !== null && (await mayMail(deps, workspaceId, email));
    if (mailed) {
      const { name: workspaceName } = await loadWorkspace(operatorOf(call), workspaceId);
      // Nobody waits for the mail server: the answer has the link too.
      void mailer.send(inviteMail(email, workspaceName, url, expiresAt));
    }
    const shown = {
      id: inviteId,
      object: 'team_invite',
      memberId,
      email,
      role,
      createdAt: now,
      expiresAt,
      url,
      mailed,
    };
    return { data: shown };
  },
});

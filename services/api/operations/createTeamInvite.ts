import { maxOpenInvites, openTeamInvites } from '#projections/models/team-invites.ts';
import { TeamInviteCreate, TeamInviteShown } from '#schemas/http/console.ts';
import { isEmail, normaliseEmail } from '#services/auth/people/emails.ts';
import { inviteMail, mayMail } from '#services/auth/people/mail.ts';
import { createTeamInvite as create } from '#services/auth/people/team-invites.ts';
import { loadWorkspace } from '#services/workflows/provision.ts';
import { operatorOf } from '../console/keys.ts';
import { exampleTeamInvite, requireMayManage } from '../console/team.ts';
import { operation } from '../operation.ts';
import { invalid } from '../refusal.ts';

const hourMs = 3_600_000;
const defaultHours = 168;

export const createTeamInvite = operation({
  id: 'createTeamInvite',
  method: 'POST',
  path: '/team-invites',
  tag: 'console',
  noun: 'team invite',
  summary: 'Invite a person to the team',
  description:
    'Makes a link by which one person becomes a member. The answer shows it once; where this installation sends mails, another one goes to the address as well, and proves that the address is the person’s. Owners invite to every role; Managers creators and viewers. A repeat of the call makes another link.',
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
    const { inviteId, memberId, token, mailToken } = await create(deps, wanted, context, positions);
    const linkOf = (ofLink: string): string => `${deps.consoleUrl()}/join/${ofLink}`;
    const url = linkOf(token);
    const { mailer = null } = deps;
    const mailed = email !== null && mailer !== null && (await mayMail(deps, workspaceId, email));
    if (mailed) {
      const { name: workspaceName } = await loadWorkspace(operatorOf(call), workspaceId);
      // Nobody waits for the mail server: the answer has a link too. That of the mail proves the address, and nobody sees
      // it but who reads the mail.
      void mailer.send(inviteMail(email, workspaceName, linkOf(mailToken), expiresAt));
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

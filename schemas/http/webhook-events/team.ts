import { Type } from 'typebox';
import { Role, Uuid } from '#schemas/common.ts';
import { said } from '#schemas/published.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of the members of the workspace: ids and roles, never a name. */

const ids = { memberId: said(Uuid, 'Id of the member.'), ...noClient };
const member = { ...ids, role: said(Role, 'The role of the member from now on.') };
const exampleMember = { memberId: example.memberId, clientId: null };

export const teamPublic = {
  'team.member_added': publicEvent('A person became a member of the workspace.', Type.Object(member), {
    ...exampleMember,
    role: 'creator',
  }),
  'team.role_changed': publicEvent(
    'A member got another role.',
    Type.Object({ ...member, previousRole: said(Role, 'The role of the member until now.') }),
    { ...exampleMember, role: 'manager', previousRole: 'creator' },
  ),
  'team.member_removed': publicEvent(
    'A member left the workspace: the keys of the member stop working.',
    Type.Object({ ...ids, role: said(Role, 'The last role of the member.') }),
    { ...exampleMember, role: 'manager' },
  ),
};

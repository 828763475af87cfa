import { Type } from 'typebox';
import { Role, Uuid } from '#schemas/common.ts';
import { example, noClient, publicEvent } from './common.ts';

/** Events of the members of the workspace: ids and roles, never a name. */

const member = { memberId: Uuid, ...noClient, role: Role };
const exampleMember = { memberId: example.memberId, clientId: null };

export const teamPublic = {
  'team.member_added': publicEvent('A member joined the workspace.', Type.Object(member), {
    ...exampleMember,
    role: 'creator',
  }),
  'team.role_changed': publicEvent('A member has another role.', Type.Object({ ...member, previousRole: Role }), {
    ...exampleMember,
    role: 'manager',
    previousRole: 'creator',
  }),
  'team.member_removed': publicEvent('A member left the workspace; role is the last one.', Type.Object(member), {
    ...exampleMember,
    role: 'manager',
  }),
};

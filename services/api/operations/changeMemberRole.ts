import { IdParams } from '#schemas/http/common.ts';
import { MemberRoleChange, MemberShown } from '#schemas/http/console.ts';
import { exampleMember, manageMember, showMember } from '../console/team.ts';
import { operation } from '../operation.ts';

export const changeMemberRole = operation({
  id: 'changeMemberRole',
  method: 'PUT',
  path: '/members/{id}/role',
  tag: 'console',
  noun: 'member',
  summary: 'Change the role of a member',
  description:
    'From the next call of their keys, apps and sessions on. Owners change every role; Managers those of creators and viewers. The last Owner stays one.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  body: MemberRoleChange,
  answer: MemberShown,
  codes: [],
  example: { body: { role: 'owner' }, data: exampleMember },
  handle: async (call) => {
    const member = await manageMember(call, call.params.id, { type: 'ChangeRole', role: call.body.role });
    return { data: await showMember(call, call.params.id, member) };
  },
});

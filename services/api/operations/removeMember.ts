import { IdParams } from '#schemas/http/common.ts';
import { MemberShown } from '#schemas/http/console.ts';
import { exampleMember, manageMember, showMember } from '../console/team.ts';
import { operation } from '../operation.ts';

export const removeMember = operation({
  id: 'removeMember',
  method: 'DELETE',
  path: '/members/{id}',
  tag: 'console',
  noun: 'member',
  summary: 'Remove a member',
  description:
    'Their keys, apps and sessions lose all power in this workspace within a second. Owners remove everybody; Managers creators and viewers. The last Owner stays. GET /members/{id}/left lists what they leave.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: MemberShown,
  codes: [],
  example: { data: exampleMember },
  handle: async (call) => {
    const member = await manageMember(call, call.params.id, { type: 'RemoveMember' });
    return { data: await showMember(call, call.params.id, member) };
  },
});

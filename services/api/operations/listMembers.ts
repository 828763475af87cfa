import { inParallel } from '#runtime/work/in-parallel.ts';
import { MemberShown } from '#schemas/http/console.ts';
import { exampleMember, membersOf, showMember } from '../console/team.ts';
import { wholeList } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listMembers = operation({
  id: 'listMembers',
  method: 'GET',
  path: '/members',
  tag: 'console',
  noun: 'member',
  summary: 'List the members of the workspace',
  description: 'In the order in which they joined.',
  scope: 'agency.read',
  firstParty: true,
  idempotent: 'none',
  cost: 2,
  answer: MemberShown,
  list: true,
  codes: [],
  example: { data: exampleMember },
  handle: async (call) => {
    const members = Object.entries(await membersOf(call));
    const shown = new Map<string, Awaited<ReturnType<typeof showMember>>>();
    await inParallel(members, 8, async ([id, member]) => void shown.set(id, await showMember(call, id, member)));
    return wholeList(members.map(([id]) => shown.get(id)));
  },
});

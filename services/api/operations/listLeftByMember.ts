import { IdParams } from '#schemas/http/common.ts';
import { LeftBehind } from '#schemas/http/console.ts';
import { exampleLeft, leftBy } from '../console/left.ts';
import { wholeList } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listLeftByMember = operation({
  id: 'listLeftByMember',
  method: 'GET',
  path: '/members/{id}/left',
  tag: 'console',
  noun: 'member',
  summary: 'List what a member leaves',
  description:
    'What the member or their keys made that has not ended, in the live workspace and its sandbox: keys, links, webhook endpoints and recycled posts. It also answers for a member who was removed. Links and copies stop with the power of the member, and keys too; endpoints go on until somebody deletes them. Looks at the newest 200 of each kind.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 5,
  params: IdParams,
  answer: LeftBehind,
  list: true,
  codes: [],
  example: { data: exampleLeft },
  handle: async (call) => {
    await call.behind(['workspace', 'posts', 'webhooks']);
    return wholeList(await leftBy(call));
  },
});

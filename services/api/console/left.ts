import { workspace } from '#domain/workspace.ts';
import { IdParams } from '#schemas/http/common.ts';
import { LeftBehind } from '#schemas/http/console.ts';
import { leftBehind } from '#services/auth/left-behind.ts';
import { wholeList } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';
import { consoleTag } from './team.ts';

type Asking = Pick<Call<{ readonly id: string }>, 'deps' | 'principal' | 'params' | 'now'>;

/** @throws Refusal 404 for an id that is and was no member here */
const requireEverMember = async ({ deps, principal, params }: Asking): Promise<void> => {
  const { events } = await deps.store.load(workspace, principal.liveWorkspaceId);
  const isKnown = events.some(({ type, data }) => type === 'MemberAdded' && data.memberId === params.id);
  if (!isKnown) throw notFound('member');
};

const leftBy = async (call: Asking) => {
  await requireEverMember(call);
  const { deps, principal, params, now } = call;
  const left = await leftBehind(deps, { liveId: principal.liveWorkspaceId, memberId: params.id, now });
  return left.map((one) => ({ object: 'left_behind' as const, ...one }));
};

const exampleLeft = {
  object: 'left_behind',
  kind: 'connect_invite',
  id: '1aead3a6-9bb2-5915-8517-2397c2deda9e',
  parentId: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  mode: 'live',
  name: 'bluesky, threads',
  expiresAt: '2026-02-02T08:00:00.000Z',
};

export const listLeftByMember = operation({
  id: 'listLeftByMember',
  method: 'GET',
  path: '/members/{id}/left',
  tag: consoleTag,
  noun: 'member',
  summary: 'List what a member leaves',
  description:
    'What the member or their keys made that has not ended, in the live workspace and its sandbox: keys, links, webhook endpoints and recycled posts. It also answers for a member who was removed. Links and copies stop with the power of the member, and keys too; endpoints go on until somebody deletes them. Looks at the newest 200 of each kind.',
  scope: 'agency.read',
  limited: 'refused',
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

import { workspace } from '#domain/workspace.ts';
import { leftBehind } from '#services/auth/left-behind.ts';
import type { Call } from '../operation.ts';
import { notFound } from '../refusal.ts';

type Asking = Pick<Call<{ readonly id: string }>, 'deps' | 'principal' | 'params' | 'now'>;

/** @throws Refusal 404 for an id that is and was no member here */
const requireEverMember = async ({ deps, principal, params }: Asking): Promise<void> => {
  const { events } = await deps.store.load(workspace, principal.liveWorkspaceId);
  const isKnown = events.some(({ type, data }) => type === 'MemberAdded' && data.memberId === params.id);
  if (!isKnown) throw notFound('member');
};

export const leftBy = async (call: Asking) => {
  await requireEverMember(call);
  const { deps, principal, params, now } = call;
  const left = await leftBehind(deps, { liveId: principal.liveWorkspaceId, memberId: params.id, now });
  return left.map((one) => ({ object: 'left_behind' as const, ...one }));
};

export const exampleLeft = {
  object: 'left_behind',
  kind: 'connect_invite',
  id: '1aead3a6-9bb2-5915-8517-2397c2deda9e',
  parentId: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  mode: 'live',
  name: 'bluesky, threads',
  expiresAt: '2026-02-02T08:00:00.000Z',
};

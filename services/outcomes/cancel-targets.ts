import { type PostCommand, post } from '#domain/post.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { fanOut } from '#services/workflows/fan-out.ts';

/**
 * Cancels targets of one post: first the intent in the post's stream, then each target. After a crash in between, the
 * post's stream has the intent, and the post's row shows that its targets are behind.
 */
export const cancelTargets = async (
  store: DomainStore,
  postId: string,
  { targetIds, reason }: Pick<Extract<PostCommand, { type: 'CancelTargets' }>, 'targetIds' | 'reason'>,
  context: () => CommandContext,
): Promise<void> => {
  const intent = await execute(store, post, postId, { type: 'CancelTargets', targetIds, reason }, context());
  faultPoint('outcomes:after-intent');
  await fanOut(store, postId, context(), { loaded: intent });
};

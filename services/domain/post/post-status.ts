import type { PostEvent, PostStatus } from '#schemas/post.ts';
import { isAwaited } from './post-approval.ts';
import type { LivePost, PostState, TargetProgress } from './post-state.ts';

/** What a post as a whole is, from what its targets are. */

const standings = (state: LivePost): readonly TargetProgress[] => Object.values(state.targets);

/**
 * The state of the post that follows from its targets. Settled = published, failed or canceled; canceled targets do not
 * count further.
 */
export const statusOf = (state: PostState): PostStatus | null => {
  if (state.status === 'none') return null;
  if (state.status !== 'live') return state.status;
  const all = standings(state);
  const published = all.filter((one) => one.outcome === 'published').length;
  const failed = all.filter((one) => one.outcome === 'failed').length;
  if (all.some((one) => one.outcome === null)) {
    if (published + failed > 0) return 'publishing';
    return isAwaited(state, (id) => state.targets[id]?.outcome === null) ? 'pending_approval' : 'scheduled';
  }
  if (published + failed === 0) return 'canceled';
  if (failed === 0) return 'published';
  return published === 0 ? 'failed' : 'partially_published';
};

/** Instant the first target went out, null while none has. */
export const publishedAtOf = (state: PostState): string | null => {
  if (state.status !== 'live') return null;
  const instants = standings(state).flatMap((one) => one.publishedAt ?? []);
  return instants.sort()[0] ?? null;
};

/**
 * The outcome of the whole post after a settlement; null where the post has no outcome yet, or the outcome is already
 * recorded.
 */
export const wholeFact = (state: LivePost): readonly PostEvent[] => {
  const publishedAt = publishedAtOf(state) ?? '';
  switch (statusOf(state)) {
    case 'published':
      return [{ type: 'PostPublished', data: { publishedAt } }];
    case 'failed':
      return [{ type: 'PostFailed', data: {} }];
    case 'partially_published':
      return state.saidPartial ? [] : [{ type: 'PostPartiallyPublished', data: { publishedAt } }];
    case 'canceled':
      return state.saidCanceled ? [] : [{ type: 'PostCanceled', data: { reason: cancelReason(state) } }];
    default:
      return [];
  }
};

type WholeReason = Extract<PostEvent, { type: 'PostCanceled' }>['data']['reason'];

/** An archived client is the reason for the whole; disconnected accounts are where they are it for every target. */
const cancelReason = ({ intents, targets }: LivePost): WholeReason => {
  const cancels = intents.filter((intent) => intent.kind === 'cancel');
  if (cancels.some(({ reason }) => reason === 'client_archived')) return 'client_archived';
  if (cancels.some(({ reason }) => reason === 'approval_rejected')) return 'approval_rejected';
  if (cancels.some(({ reason }) => reason === 'copy_replaced')) return 'copy_replaced';
  const left = new Set(
    cancels
      .filter(({ reason }) => reason === 'account_disconnected')
      .flatMap(({ targetIds, skipped }) => targetIds.filter((id) => !skipped.includes(id))),
  );
  return Object.keys(targets).every((id) => left.has(id)) ? 'account_disconnected' : 'targets_canceled';
};

import { firstCommentOf } from '#domain/content.ts';
import type { FirstComment, ScheduledTarget } from '#domain/target.ts';
import type { Content } from './related-streams.ts';

/** When the first comment of a target that is published now is due; null: none is wanted. */
export const commentDueAt = ({ common }: ScheduledTarget, { overrides }: Content, now: string): string | null =>
  firstCommentOf(common.platform, overrides) === null ? null : now;

/** Milliseconds since the epoch at which the comment needs a worker: the due try, or the end of a call's time. */
export const commentInstant = (comment: FirstComment | null): number | null => {
  if (comment === null) return null;
  return Date.parse(comment.status === 'due' ? comment.dueAt : comment.deadline);
};

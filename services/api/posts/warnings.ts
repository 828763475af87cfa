import type { PostState } from '#domain/post.ts';
import type { Warning } from '#schemas/http/common.ts';

/** What a post has in it that does nothing. The same for a repeat of the call. */
export const postWarnings = (postId: string, state: PostState): readonly Warning[] => {
  if (state.status === 'none') return [];
  const { mode, platforms } = state.body.targetSelection;
  if (mode === 'group' || platforms === null) return [];
  const message = `\`targets.platforms\` narrows only a group: with mode ${mode} the post goes to every listed account.`;
  return [{ code: 'platforms_ignored', id: postId, message }];
};

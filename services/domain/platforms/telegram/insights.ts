/**
 * Telegram, Bot API 10. Source: core.telegram.org, `message_reaction_count` and `getChatMemberCount`. A bot hears
 * of changes while it listens and cannot ask for them; only clients of users see views and forwards.
 *
 * Of a post `{message_reaction_count, discussion}`: the newest update of the message, and the number of messages under it
 * in the linked group. Of an account `{getChatMemberCount}`.
 */
import { asCount, count, derived, items, orNull } from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    likes: orNull(
      derived('message_reaction_count.reactions[].total_count', (raw) =>
        items(raw, 'message_reaction_count.reactions')?.reduce(
          (sum, one) => asCount(sum + asCount(one.total_count, 'total_count'), 'the sum of reactions'),
          0,
        ),
      ),
    ),
    comments: orNull(count('discussion.messages')),
  }),
  account: { ...unreportedAccount, followerCount: count('getChatMemberCount') },
  demographics: null,
};

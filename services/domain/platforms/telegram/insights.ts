/**
 * Telegram, Bot API 10. Source: core.telegram.org, `message_reaction_count` and `getChatMemberCount`. A bot is told of
 * changes while it listens, and cannot ask: views and forwards are for users' clients alone.
 *
 * `{message_reaction_count, discussion}`: the newest update of the message, and how many messages of the linked group
 * were counted under it. Of an account `{getChatMemberCount}`.
 */
import { asCount, count, derived, items, orNull } from '#domain/platforms/figure-source.ts';
import { always, type InsightsTable, untold, untoldAccount } from '#domain/platforms/insights-table.ts';

export const insights: InsightsTable = {
  post: always({
    ...untold,
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
  account: { ...untoldAccount, followerCount: count('getChatMemberCount') },
  demographics: null,
};

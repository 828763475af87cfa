/**
 * Bluesky. Source: docs.bsky.app, `app.bsky.feed.getPosts` and `app.bsky.actor.getProfile`. `raw` is the post view, or
 * the profile.
 */
import { count, orNull } from '#domain/platforms/figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '#domain/platforms/insights-table.ts';

export const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    likes: count('likeCount'),
    comments: count('replyCount'),
    reposts: count('repostCount'),
    quotes: count('quoteCount'),
    // Not every app view has it.
    saves: orNull(count('bookmarkCount')),
  }),
  account: { ...unreportedAccount, followerCount: count('followersCount') },
  demographics: null,
};

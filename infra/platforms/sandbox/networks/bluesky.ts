import { hourMs } from '../curves.ts';
import { base32, letters } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';

const postInsights: Imitation['postInsights'] = ({ post }, of) => ({
  uri: post.externalId,
  likeCount: of.part('likes', 0.01, 0.06),
  replyCount: of.part('comments', 0.001, 0.01),
  repostCount: of.part('reposts', 0.002, 0.01),
  quoteCount: of.part('quotes', 0.0002, 0.002),
  bookmarkCount: of.part('saves', 0.0005, 0.004),
});

const accountInsights: Imitation['accountInsights'] = ({ followers }) => ({ followersCount: followers });

/** Bluesky as the sandbox imitates it. */
export const bluesky: Imitation = {
  refusals: {
    rate_limit: 'RateLimitExceeded',
    token_death: 'InvalidToken',
    reject: 'InvalidRequest',
    duplicate: 'InvalidRequest',
  },
  spreadMs: 10 * hourMs,
  accountId: (seed) => `did:plc:${letters(seed, base32, 24)}`,
  postIds: ({ account, key }) => ({ id: `at://${account}/app.bsky.feed.post/${key}`, code: key }),
  comments: { form: 'reply', forbidden: null },
  postInsights,
  pastDays: 'none',
  accountInsights,
};

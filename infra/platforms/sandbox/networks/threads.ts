import { metaCalls } from '../calls.ts';
import { hourMs } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';
import { insight, insights } from '../shapes.ts';

const postInsights: Imitation['postInsights'] = ({ post, permalink }, of) => ({
  media: { id: post.externalId, ...(permalink === null ? {} : { permalink }) },
  insights: insights({
    views: of.views,
    likes: of.part('likes', 0.01, 0.05),
    replies: of.part('comments', 0.001, 0.01),
    reposts: of.part('reposts', 0.001, 0.006),
    quotes: of.part('quotes', 0.0001, 0.002),
    shares: of.part('shares', 0.0005, 0.004),
  }),
});

const accountInsights: Imitation['accountInsights'] = ({ followers, visits, taps, follower_demographics }) => ({
  threads_insights: {
    data: [
      insight('views', visits, 'day'),
      { name: 'clicks', link_total_values: [{ value: taps, link_url: 'https://acme.example/' }] },
      { name: 'followers_count', total_value: { value: followers } },
    ],
  },
  follower_demographics,
});

/** Threads as the sandbox imitates it. */
export const threads: Imitation = {
  refusals: { rate_limit: '613', token_death: '190/463', reject: '100', duplicate: '506' },
  spreadMs: 10 * hourMs,
  accountId: (seed) => `2${digits(seed, 16)}`,
  postIds: ({ random, code }) => ({ id: `180${digits(random, 14)}`, code: `D${code}` }),
  comments: { form: 'reply', forbidden: null },
  calls: metaCalls,
  postInsights,
  pastDays: 'final',
  accountInsights,
};

import type { Json } from '#contracts/ports/platform.ts';
import { metaCalls } from '../calls.ts';
import { cut, hourMs } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';
import { insights, split } from '../shapes.ts';

const postInsights: Imitation['postInsights'] = ({ post: { externalId, use }, permalink }, of) => {
  const media = { id: externalId, ...(permalink === null ? {} : { permalink }) };
  const reach = of.part('reach', 0.6, 0.9);
  const replies = of.part('comments', 0.001, 0.006);
  const shares = of.part('shares', 0.001, 0.008);
  const reposts = of.part('reposts', 0.0002, 0.002);
  // "Not enough viewers for the media to show insights."
  if (use === 'story' && reach < 5) return { media, insights: { data: [] } };
  const seen = { views: of.views, reach, shares, reposts };
  const after = { follows: of.part('follows', 0.0002, 0.002), profile_visits: of.part('profile', 0.002, 0.02) };
  const activity = split(
    'profile_activity',
    'action_type',
    cut(of.part('activity', 0.001, 0.004), { BIO_LINK_CLICKED: 6, EMAIL: 2, CALL: 1 }),
  );
  if (use === 'story') {
    const values = {
      ...seen,
      ...after,
      replies,
      total_interactions: replies + shares + reposts,
      link_clicks: of.part('links', 0.002, 0.02),
    };
    const taps = cut(of.part('taps', 0.5, 0.9), { tap_forward: 14, tap_back: 2, tap_exit: 3, swipe_forward: 1 });
    return {
      media,
      insights: {
        data: [
          ...(insights(values).data as Json[]),
          activity,
          split('navigation', 'story_navigation_action_type', taps),
        ],
      },
    };
  }
  const likes = of.part('likes', 0.01, 0.06);
  const saved = of.part('saves', 0.001, 0.01);
  const values = { ...seen, likes, comments: replies, saved };
  const total_interactions = likes + replies + shares + reposts + saved;
  if (use === 'reel') {
    const averageMs = Math.floor(of.fixed('watched', 3_000, 15_000));
    return {
      media,
      insights: insights({
        ...values,
        total_interactions,
        ig_reels_avg_watch_time: averageMs,
        ig_reels_video_view_total_time: of.views * averageMs,
        reels_skip_rate: Math.round(of.fixed('skip', 20, 70) * 10) / 10,
      }),
    };
  }
  return {
    media,
    insights: { data: [...(insights({ ...values, ...after, total_interactions }).data as Json[]), activity] },
  };
};

const accountInsights: Imitation['accountInsights'] = ({
  followers,
  of,
  plays,
  visits,
  taps,
  follower_demographics,
}) => ({
  user: { followers_count: followers },
  insights: {
    data: [
      { name: 'profile_views', total_value: { value: visits } },
      { name: 'accounts_engaged', total_value: { value: of.part('engaged', 0.02, 0.1) } },
      { name: 'profile_links_taps', total_value: { value: taps } },
    ],
  },
  views: {
    data: [split('views', 'media_product_type', { REELS: plays, FEED: of.views - plays })],
  },
  follower_demographics,
});

/** Instagram as the sandbox imitates it. */
export const instagram: Imitation = {
  refusals: { rate_limit: '9/2207042', token_death: '190/460', reject: '36004/2207010', duplicate: '506' },
  spreadMs: 30 * hourMs,
  accountId: (seed) => `1784${digits(seed, 13)}`,
  postIds: ({ random, code }) => ({ id: `180${digits(random, 14)}`, code: `D${code}` }),
  comments: { form: 'comment', forbidden: '10', id: (random) => `178${digits(random, 14)}` },
  calls: metaCalls,
  postInsights,
  pastDays: 'final',
  accountInsights,
};

import { dayMs, hourMs, retention, watching } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';

/** X reports figures that are not public for 30 days only. */
const postInsights: Imitation['postInsights'] = ({ post, ageMs }, of) => {
  const likes = of.part('likes', 0.01, 0.05);
  const replies = of.part('comments', 0.001, 0.005);
  const reposts = of.part('reposts', 0.001, 0.008);
  const quotes = of.part('quotes', 0.0001, 0.001);
  const bookmarks = of.part('saves', 0.001, 0.006);
  const url_link_clicks = of.part('clicks', 0.002, 0.02);
  const engagements = likes + replies + reposts + quotes + bookmarks + url_link_clicks;
  const non_public_metrics = { url_link_clicks, engagements };
  const data = {
    id: post.externalId,
    public_metrics: {
      impression_count: of.views,
      like_count: likes,
      reply_count: replies,
      retweet_count: reposts,
      quote_count: quotes,
      bookmark_count: bookmarks,
    },
    ...(ageMs > 30 * dayMs ? {} : { non_public_metrics }),
  };
  const analytics = {
    shares: of.part('shares', 0.0005, 0.004),
    user_profile_clicks: of.part('profile', 0.001, 0.01),
    follows: of.part('follows', 0.0001, 0.001),
    unfollows: of.part('unfollows', 0, 0.0001),
  };
  if (!post.hasVideo) return { data, analytics };
  const { views, averageMs, watchedMs } = watching(of);
  const quarters = retention(of, 5).map((part) => String(Math.floor(views * part)));
  return {
    data,
    analytics,
    includes: { media: [{ type: 'video', duration_ms: averageMs * 3, public_metrics: { view_count: views } }] },
    media_analytics: {
      video_views: String(views),
      watch_time_ms: String(watchedMs),
      ...Object.fromEntries(quarters.map((count, quarter) => [`playback_${quarter * 25}_count`, count])),
    },
  };
};

const accountInsights: Imitation['accountInsights'] = ({ followers }) => ({
  data: { public_metrics: { followers_count: followers } },
});

/** X as the sandbox imitates it. */
export const x: Imitation = {
  refusals: {
    rate_limit: '429 rate-limit-exceeded',
    token_death: '401 Unauthorized',
    reject: '403 not permitted to perform this action',
    duplicate: '403 duplicate content',
  },
  spreadMs: 8 * hourMs,
  accountId: (seed) => `1${digits(seed, 18)}`,
  postIds: ({ random, code, nowMs }) => {
    const id = ((BigInt(nowMs) - 1_288_834_974_657n) << 22n) | (BigInt(`0x${random.toString('hex')}`) & 0x3fffffn);
    return { id: id.toString(), code };
  },
  comments: { form: 'reply', forbidden: null },
  postInsights,
  pastDays: 'none',
  accountInsights,
};

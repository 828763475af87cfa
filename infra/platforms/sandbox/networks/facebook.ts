import { metaCalls } from '../calls.ts';
import { cut, hourMs, retention, watching } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';
import { insights } from '../shapes.ts';

const postInsights: Imitation['postInsights'] = ({ post, permalink }, of) => {
  if (post.use === 'story') return { post: { id: post.externalId } };
  const likes = of.part('likes', 0.01, 0.05);
  const shares = of.part('shares', 0.0005, 0.006);
  const clicks = of.part('clicks', 0.01, 0.05);
  const answer = {
    post: {
      id: post.externalId,
      ...(permalink === null ? {} : { permalink_url: permalink }),
      reactions: { data: [], summary: { total_count: likes } },
      comments: { data: [], summary: { total_count: of.part('comments', 0.001, 0.008) } },
      ...(shares === 0 ? {} : { shares: { count: shares } }),
    },
    insights: insights({
      post_media_view: of.views,
      post_total_media_view_unique: of.part('reach', 0.6, 0.9),
      post_clicks: clicks,
      post_clicks_by_type: cut(clicks, { 'other clicks': 3, 'link clicks': 5, 'photo view': 2 }),
      post_reactions_by_type_total: cut(likes, { like: 80, love: 12, haha: 3, wow: 3, sorry: 1, anger: 1 }),
    }),
  };
  if (!post.hasVideo) return answer;
  const { views, averageMs, watchedMs } = watching(of);
  const graph = Object.fromEntries(retention(of, 40).map((ratio, place) => [String(place), ratio]));
  const watched = { post_video_avg_time_watched: averageMs, post_video_followers: of.part('follows', 0.0001, 0.001) };
  return {
    ...answer,
    video_insights: insights(
      post.use === 'reel'
        ? {
            ...watched,
            fb_reels_total_plays: views,
            total_video_view_total_time: watchedMs,
            post_video_retention_graph: graph,
          }
        : {
            ...watched,
            total_video_views: views,
            total_video_complete_views: Math.floor(views * of.fixed('completed', 0.05, 0.3)),
            total_video_view_total_time: watchedMs,
            total_video_retention_graph: graph,
          },
    ),
  };
};

const accountInsights: Imitation['accountInsights'] = ({
  followers,
  of,
  plays,
  watchedMs,
  visits,
  taps,
  country,
  city,
}) => ({
  page: { followers_count: followers },
  insights: insights(
    {
      page_media_view: of.views,
      page_views_total: visits,
      page_total_actions: taps,
      page_video_views: plays,
      page_video_view_time: watchedMs,
      page_follows_country: country,
      page_follows_city: city,
    },
    'day',
  ),
});

/** Facebook as the sandbox imitates it. */
export const facebook: Imitation = {
  refusals: { rate_limit: '80001', token_death: '190/460', reject: '100', duplicate: '506' },
  spreadMs: 20 * hourMs,
  accountId: (seed) => `1${digits(seed, 14)}`,
  postIds: ({ random, code, account }) => ({ id: `${account}_${digits(random, 15)}`, code }),
  comments: {
    form: 'comment',
    forbidden: '200',
    id: (random, postId) => `${postId.slice(postId.indexOf('_') + 1)}_${digits(random, 15)}`,
  },
  covers: { forbidden: '200' },
  processes: true,
  scheduler: { refusals: { outside_window: '100/1366046', too_late: '100/33' } },
  calls: metaCalls,
  postInsights,
  pastDays: 'revised',
  accountInsights,
};

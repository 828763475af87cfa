/**
 * Instagram. Sources: developers.facebook.com, "IG Media Insights" and "IG User Insights" (Graph API v25). Each
 * way to publish has its own set of metrics; a metric of another set fails the call.
 *
 * Of a post `{media, insights}`: the node (`permalink`), and all calls joined into one `data`. Of an account
 * `{user, insights, views, follower_demographics}`: the node (`followers_count`), the metrics of the day, `views` by
 * `media_product_type`, and the demographics by the breakdown they were asked with.
 */
import {
  count,
  type FigureSource,
  mapped,
  minutesOf,
  ofVideo,
  orNull,
  renamed,
  secondsOf,
  url,
} from '#domain/platforms/figure-source.ts';
import {
  type InsightsTable,
  type PostTable,
  unreportedAccount,
  unreportedPost,
} from '#domain/platforms/insights-table.ts';
import { followerDemographics, insight, insightAmount, insightBreakdown } from '#domain/platforms/meta-insights.ts';

/** `tap_forward` and `TAP_FORWARD` were both seen. */
const lowered = (source: FigureSource<Readonly<Record<string, number>>>) =>
  mapped(source, (reported) =>
    Object.fromEntries(Object.entries(reported).map(([label, n]) => [label.toLowerCase(), n])),
  );

const all: PostTable = {
  ...unreportedPost,
  // Instagram replaced `impressions` by `views` for media after 2024-07-02.
  impressions: insight('views'),
  reach: insight('reach'),
  shares: insight('shares'),
  totalInteractions: insight('total_interactions'),
  reposts: insight('reposts'),
  permalink: url('media.permalink'),
};

const afterwards = {
  follows: insight('follows'),
  profileVisits: insight('profile_visits'),
  profileActivity: insightBreakdown('profile_activity'),
};

const liked = { likes: insight('likes'), comments: insight('comments'), saves: insight('saved') };

/** Instagram documents no unit: a value over 1 is read as percent, since rates of 1 % and less were not seen. */
const fraction = (reported: number): string => (reported > 1 ? reported / 100 : reported).toFixed(4);

export const insights: InsightsTable = {
  post: {
    feed: { ...all, ...liked, ...afterwards },
    reel: {
      ...all,
      ...liked,
      videoViews: ofVideo(insight('views')),
      // Milliseconds as observed; Instagram documents no unit.
      watchTimeMinutes: ofVideo(minutesOf(insight('ig_reels_video_view_total_time'))),
      avgViewDurationSeconds: ofVideo(secondsOf(insight('ig_reels_avg_watch_time'))),
      skipRate: ofVideo(mapped(insightAmount('reels_skip_rate'), fraction)),
    },
    // Updated for 24 hours, and reported from 5 viewers on.
    story: {
      ...all,
      ...afterwards,
      comments: insight('replies'),
      navigation: renamed(lowered(insightBreakdown('navigation')), {
        forward: 'tap_forward',
        tap_back: 'tap_back',
        exit: 'tap_exit',
        next_story: 'swipe_forward',
      }),
      linkClicks: insight('link_clicks'),
    },
  },
  account: {
    ...unreportedAccount,
    followerCount: count('user.followers_count'),
    // Announced as removed on 2025-01-08, and still answered.
    profileViews: orNull(insight('profile_views')),
    accountsEngaged: insight('accounts_engaged'),
    profileLinkTaps: insight('profile_links_taps'),
    // Every kind that had views is listed.
    videoViews: mapped(insightBreakdown('views', 'views'), (reported) => reported.REELS ?? 0),
    contentPlays: insight('views', 'views'),
  },
  // From 100 followers on.
  demographics: followerDemographics,
};

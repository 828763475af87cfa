/**
 * Instagram. Sources: developers.facebook.com, "IG Media Insights" and "IG User Insights" (Graph API v25): sets of metrics
 * by how the media went out, one that does not fit fails its call.
 *
 * `{media, insights}`: the node (`permalink`), and the answers of all calls joined into one `data`. Of an account
 * `{user, insights, views, follower_demographics}`: the node (`followers_count`), the metrics of the day, `views` by
 * `media_product_type`, and the demographics by the breakdown they were asked with.
 */
import {
  count,
  mapped,
  minutesOf,
  ofVideo,
  orNull,
  renamed,
  type Source,
  secondsOf,
  url,
} from '#domain/platforms/figure-source.ts';
import { type InsightsTable, type PostTable, untold, untoldAccount } from '#domain/platforms/insights-table.ts';
import { followerDemographics, insight, insightAmount, insightBreakdown } from '#domain/platforms/meta-insights.ts';

/** `tap_forward` and `TAP_FORWARD` were both seen. */
const lowered = (source: Source<Readonly<Record<string, number>>>) =>
  mapped(source, (told) => Object.fromEntries(Object.entries(told).map(([label, n]) => [label.toLowerCase(), n])));

const all: PostTable = {
  ...untold,
  // `impressions` is gone for media after 2024-07-02; `views` is what its network put in its place.
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

/** Percent or fraction: its unit is not documented, and under one percent it is not seen. */
const fraction = (told: number): string => (told > 1 ? told / 100 : told).toFixed(4);

export const insights: InsightsTable = {
  post: {
    feed: { ...all, ...liked, ...afterwards },
    reel: {
      ...all,
      ...liked,
      videoViews: ofVideo(insight('views')),
      // Milliseconds by what is seen; not documented.
      watchTimeMinutes: ofVideo(minutesOf(insight('ig_reels_video_view_total_time'))),
      avgViewDurationSeconds: ofVideo(secondsOf(insight('ig_reels_avg_watch_time'))),
      skipRate: ofVideo(mapped(insightAmount('reels_skip_rate'), fraction)),
    },
    // Updated for 24 hours, and told from 5 viewers on.
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
    ...untoldAccount,
    followerCount: count('user.followers_count'),
    // Said to be gone since 2025-01-08, and still answered.
    profileViews: orNull(insight('profile_views')),
    accountsEngaged: insight('accounts_engaged'),
    profileLinkTaps: insight('profile_links_taps'),
    // All kinds that had views are listed.
    videoViews: mapped(insightBreakdown('views', 'views'), (told) => told.REELS ?? 0),
    contentPlays: insight('views', 'views'),
  },
  // From 100 followers on.
  demographics: followerDemographics,
};

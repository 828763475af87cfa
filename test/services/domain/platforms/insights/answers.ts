/** Answers in the networks' own shapes, and the figures they are. */
import type { Platform } from '#schemas/common.ts';
import type { AccountFigures, Demographics, PostFigures } from '#schemas/insights.ts';

const insights = (values: Readonly<Record<string, unknown>>) => ({
  data: Object.entries(values).map(([name, value]) => ({ name, period: 'lifetime', values: [{ value }] })),
});
const breakdown = (name: string, key: string, labels: Readonly<Record<string, number>>) => ({
  name,
  period: 'lifetime',
  total_value: {
    value: Object.values(labels).reduce((sum, one) => sum + one, 0),
    breakdowns: [
      {
        dimension_keys: [key],
        results: Object.entries(labels).map(([label, value]) => ({ dimension_values: [label], value })),
      },
    ],
  },
});
const report = (columns: readonly string[], ...rows: readonly (readonly unknown[])[]) => ({
  kind: 'youtubeAnalytics#resultTable',
  columnHeaders: columns.map((name) => ({ name, columnType: 'METRIC', dataType: 'INTEGER' })),
  rows,
});
const demographics = (dimension: string, labels: Readonly<Record<string, number>>) => ({
  data: [breakdown('follower_demographics', dimension, labels)],
});

export const postAnswers: readonly {
  readonly name: string;
  readonly platform: Platform;
  readonly use: 'feed' | 'reel' | 'story' | 'carousel';
  readonly raw: unknown;
  readonly figures: PostFigures;
}[] = [
  {
    name: 'x',
    platform: 'x',
    use: 'feed',
    raw: {
      data: {
        id: '1',
        public_metrics: {
          impression_count: 1000,
          like_count: 50,
          reply_count: 5,
          retweet_count: 7,
          quote_count: 2,
          bookmark_count: 3,
        },
        non_public_metrics: { url_link_clicks: 9, engagements: 90 },
      },
      includes: {
        media: [
          { media_key: 'a', duration_ms: 20_000, public_metrics: { view_count: 300 } },
          { media_key: 'b', public_metrics: { view_count: 40 } },
        ],
      },
      analytics: { shares: 4, user_profile_clicks: '6', follows: '2', unfollows: 1 },
      media_analytics: {
        video_views: '300',
        watch_time_ms: '3000000',
        playback_0_count: '300',
        playback_25_count: '150',
        playback_50_count: '100',
        playback_75_count: '60',
        playback_100_count: '30',
      },
    },
    figures: {
      impressions: 1000,
      likes: 50,
      comments: 5,
      shares: 4,
      saves: 3,
      clicks: 9,
      profileVisits: 6,
      totalInteractions: 90,
      reposts: 7,
      quotes: 2,
      videoViews: 340,
      watchTimeMinutes: 50,
      avgViewDurationSeconds: 10,
      avgViewPercentage: 50,
      follows: 2,
      audienceRetention: [
        { position: 0, ratio: 1 },
        { position: 0.25, ratio: 0.5 },
        { position: 0.5, ratio: 0.3333 },
        { position: 0.75, ratio: 0.2 },
        { position: 1, ratio: 0.1 },
      ],
    },
  },
  {
    name: 'instagram about a picture',
    platform: 'instagram',
    use: 'carousel',
    raw: {
      media: { id: '180', permalink: 'https://www.instagram.com/p/Da/' },
      insights: {
        data: [
          ...insights({
            views: 900,
            reach: 523,
            likes: 40,
            comments: 4,
            shares: 3,
            saved: 2,
            total_interactions: 49,
            reposts: 1,
            follows: 1,
            profile_visits: 12,
          }).data,
          breakdown('profile_activity', 'action_type', { BIO_LINK_CLICKED: 3, EMAIL: 1 }),
        ],
      },
    },
    figures: {
      impressions: 900,
      reach: 523,
      likes: 40,
      comments: 4,
      shares: 3,
      saves: 2,
      permalink: 'https://www.instagram.com/p/Da/',
      profileActivity: { BIO_LINK_CLICKED: 3, EMAIL: 1 },
      follows: 1,
      profileVisits: 12,
      totalInteractions: 49,
      reposts: 1,
    },
  },
  {
    name: 'instagram about a reel',
    platform: 'instagram',
    use: 'reel',
    raw: {
      insights: insights({
        views: 900,
        reach: 523,
        likes: 40,
        comments: 4,
        shares: 3,
        saved: 2,
        total_interactions: 49,
        reposts: 1,
        ig_reels_avg_watch_time: 7_900,
        ig_reels_video_view_total_time: 7_110_000,
        reels_skip_rate: 48.3,
      }),
    },
    figures: {
      impressions: 900,
      reach: 523,
      likes: 40,
      comments: 4,
      shares: 3,
      saves: 2,
      totalInteractions: 49,
      reposts: 1,
      videoViews: 900,
      skipRate: '0.4830',
      watchTimeMinutes: 118,
      avgViewDurationSeconds: 7,
    },
  },
  {
    name: 'instagram about a story',
    platform: 'instagram',
    use: 'story',
    raw: {
      insights: {
        data: [
          ...insights({ views: 90, reach: 52, replies: 4, shares: 3, total_interactions: 9, link_clicks: 5 }).data,
          breakdown('navigation', 'story_navigation_action_type', { tap_forward: 31, TAP_EXIT: 9, SWIPE_FORWARD: 2 }),
        ],
      },
    },
    figures: {
      impressions: 90,
      reach: 52,
      comments: 4,
      shares: 3,
      totalInteractions: 9,
      navigation: { forward: 31, exit: 9, next_story: 2 },
      linkClicks: 5,
    },
  },
  {
    name: 'tiktok',
    platform: 'tiktok',
    use: 'feed',
    raw: {
      id: '7',
      share_url: 'https://www.tiktok.com/@acme/video/7',
      view_count: 800,
      like_count: 60,
      comment_count: 5,
      share_count: 0,
    },
    figures: {
      likes: 60,
      comments: 5,
      shares: 0,
      permalink: 'https://www.tiktok.com/@acme/video/7',
      videoViews: 800,
    },
  },
  {
    name: 'youtube',
    platform: 'youtube',
    use: 'feed',
    raw: {
      video: { id: 'dQ', statistics: { viewCount: '1203', likeCount: '88', commentCount: '9' } },
      totals: report(
        [
          'views',
          'likes',
          'shares',
          'estimatedMinutesWatched',
          'averageViewDuration',
          'averageViewPercentage',
          'subscribersGained',
          'subscribersLost',
        ],
        [1100, 80, 6, 2000, '109', 42.5, 4, 1],
      ),
      retention: report(['elapsedVideoTimeRatio', 'audienceWatchRatio'], [0.01, 1.2], [1, 0.3]),
      traffic: report(
        ['insightTrafficSourceType', 'views', 'estimatedMinutesWatched'],
        ['YT_SEARCH', 700, 1200],
        ['EXT_URL', 400, 800],
      ),
      viewers: report(
        ['ageGroup', 'gender', 'viewerPercentage'],
        ['age18-24', 'female', 25.5],
        ['age18-24', 'male', 24.5],
        ['age25-34', 'male', 50],
      ),
      countries: report(['country', 'views'], ['DE', 900], ['AT', 200]),
      devices: report(['deviceType', 'views'], ['MOBILE', 1100]),
    },
    figures: {
      likes: 88,
      comments: 9,
      shares: 6,
      videoViews: 1203,
      watchTimeMinutes: 2000,
      avgViewDurationSeconds: 109,
      avgViewPercentage: 42.5,
      subscribersGained: 4,
      subscribersLost: 1,
      audienceRetention: [
        { position: 0.01, ratio: 1.2 },
        { position: 1, ratio: 0.3 },
      ],
      trafficSources: { YT_SEARCH: 700, EXT_URL: 400 },
      audienceBreakdown: {
        ageGroup: { 'age18-24': 50, 'age25-34': 50 },
        gender: { female: 25.5, male: 74.5 },
        country: { DE: 900, AT: 200 },
        deviceType: { MOBILE: 1100 },
      },
    },
  },
  {
    name: 'youtube while its reports are not there yet',
    platform: 'youtube',
    use: 'feed',
    raw: {
      video: { statistics: { viewCount: '3', commentCount: '0' } },
      totals: { columnHeaders: [{ name: 'views' }] },
    },
    figures: { comments: 0, videoViews: 3 },
  },
  {
    name: 'facebook about a video',
    platform: 'facebook',
    use: 'feed',
    raw: {
      post: {
        id: '1_2',
        permalink_url: 'https://www.facebook.com/1_2',
        reactions: { data: [], summary: { total_count: 49 } },
        comments: { data: [], summary: { total_count: 5 } },
        shares: { count: 3 },
      },
      insights: {
        data: [
          {
            name: 'post_media_view',
            values: [
              { value: 900, is_from_ads: '0' },
              { value: 30, is_from_ads: '1' },
            ],
          },
          ...insights({
            post_total_media_view_unique: 610,
            post_clicks: 31,
            post_clicks_by_type: { 'link clicks': 11, 'photo view': 20 },
            post_reactions_by_type_total: { like: 41, love: 7, anger: 1 },
            post_video_view_time: 6_059_999,
          }).data,
        ],
      },
      video_insights: insights({
        total_video_views: 300,
        total_video_complete_views: 40,
        total_video_retention_graph: { '10': 0.5, '0': 1, '2': 0.75 },
        post_video_followers: 2,
        post_video_avg_time_watched: 20_200,
      }),
    },
    figures: {
      impressions: 930,
      reach: 610,
      likes: 49,
      comments: 5,
      shares: 3,
      clicks: 31,
      permalink: 'https://www.facebook.com/1_2',
      reactionsByType: { like: 41, love: 7, angry: 1 },
      clicksByType: { 'link clicks': 11, 'photo view': 20 },
      follows: 2,
      videoViews: 300,
      videoCompletions: 40,
      watchTimeMinutes: 100,
      avgViewDurationSeconds: 20,
      audienceRetention: [
        { position: 0, ratio: 1 },
        { position: 0.05, ratio: 0.75 },
        { position: 0.25, ratio: 0.5 },
      ],
    },
  },
  {
    name: 'linkedin about a post of an organization',
    platform: 'linkedin',
    use: 'feed',
    raw: {
      organizationalEntityShareStatistics: {
        elements: [
          {
            share: 'urn:li:share:7',
            totalShareStatistics: {
              impressionCount: 930,
              uniqueImpressionsCount: 610,
              clickCount: 31,
              likeCount: 22,
              commentCount: 4,
              shareCount: 2,
              engagement: 0.0634,
            },
          },
        ],
      },
      videoAnalytics: {
        VIDEO_VIEW: { elements: [{ value: 200 }] },
        TIME_WATCHED: { elements: [{ value: 1_200_000 }] },
      },
      socialMetadata: {
        reactionSummaries: {
          LIKE: { reactionType: 'LIKE', count: 18 },
          EMPATHY: { reactionType: 'EMPATHY', count: 3 },
          PRAISE: { reactionType: 'PRAISE', count: 1 },
        },
      },
    },
    figures: {
      impressions: 930,
      reach: 610,
      likes: 22,
      comments: 4,
      shares: 2,
      clicks: 31,
      reactionsByType: { like: 18, love: 3 },
      videoViews: 200,
      watchTimeMinutes: 20,
    },
  },
  {
    name: 'linkedin about a post of a member',
    platform: 'linkedin',
    use: 'feed',
    raw: {
      memberCreatorPostAnalytics: {
        elements: [
          { count: 412, metricType: 'IMPRESSION' },
          { count: 300, metricType: { 'com.linkedin.metrics': 'MEMBERS_REACHED' } },
          { count: 9, metricType: 'REACTION' },
          { count: 2, metricType: 'COMMENT' },
          { count: 1, metricType: 'RESHARE' },
          { count: 4, metricType: 'POST_SAVE' },
          { count: 5, metricType: 'LINK_CLICKS' },
          { count: 0, metricType: 'FOLLOWER_GAINED_FROM_CONTENT' },
          { count: 8, metricType: 'PROFILE_VIEW_FROM_CONTENT' },
        ],
      },
      memberCreatorVideoAnalytics: {
        elements: [
          { count: 100, metricType: 'VIDEO_PLAY' },
          { count: 60_000, metricType: 'VIDEO_WATCH_TIME' },
        ],
      },
    },
    figures: {
      impressions: 412,
      reach: 300,
      likes: 9,
      comments: 2,
      shares: 1,
      saves: 4,
      follows: 0,
      profileVisits: 8,
      clicksByType: { LINK_CLICKS: 5 },
      videoViews: 100,
      watchTimeMinutes: 1,
    },
  },
  {
    name: 'threads',
    platform: 'threads',
    use: 'feed',
    raw: {
      media: { permalink: 'https://www.threads.com/@acme/post/Da' },
      insights: insights({ views: 500, likes: 20, replies: 3, reposts: 2, quotes: 1, shares: 4 }),
    },
    figures: {
      impressions: 500,
      likes: 20,
      comments: 3,
      shares: 4,
      permalink: 'https://www.threads.com/@acme/post/Da',
      totalInteractions: 30,
      reposts: 2,
      quotes: 1,
    },
  },
  {
    name: 'pinterest about a video',
    platform: 'pinterest',
    use: 'feed',
    raw: {
      analytics: {
        all: {
          daily_metrics: [],
          summary_metrics: {
            IMPRESSION: 700,
            PIN_CLICK: 30,
            OUTBOUND_CLICK: 8,
            SAVE: 12,
            SAVE_RATE: 0.017,
            USER_FOLLOW: 1,
            PROFILE_VISIT: 6,
            VIDEO_MRC_VIEW: 200,
            QUARTILE_95_PERCENT_VIEW: 20,
            VIDEO_V50_WATCH_TIME: 1_800_000,
            VIDEO_AVG_WATCH_TIME: 9_000,
          },
          lifetime_metrics: { TOTAL_COMMENTS: 2, TOTAL_REACTIONS: 14 },
        },
      },
      pin: { pin_metrics: { lifetime_metrics: { impression: 720, reaction: 14 } } },
    },
    figures: {
      impressions: 700,
      likes: 14,
      comments: 2,
      saves: 12,
      clicks: 30,
      clicksByType: { pin_click: 30, outbound_click: 8 },
      follows: 1,
      profileVisits: 6,
      videoViews: 200,
      videoCompletions: 20,
      watchTimeMinutes: 30,
      avgViewDurationSeconds: 9,
    },
  },
  {
    name: 'bluesky',
    platform: 'bluesky',
    use: 'feed',
    raw: {
      uri: 'at://did:plc:a/app.bsky.feed.post/3',
      likeCount: 10,
      replyCount: 2,
      repostCount: 3,
      quoteCount: 0,
      bookmarkCount: 1,
    },
    figures: { likes: 10, comments: 2, saves: 1, reposts: 3, quotes: 0 },
  },
  {
    name: 'telegram',
    platform: 'telegram',
    use: 'feed',
    raw: {
      message_reaction_count: {
        reactions: [
          { type: { type: 'emoji', emoji: '👍' }, total_count: 8 },
          { type: { type: 'emoji', emoji: '🔥' }, total_count: 3 },
        ],
      },
      discussion: { messages: 4 },
    },
    figures: { likes: 11, comments: 4 },
  },
];

export const accountAnswers: readonly {
  readonly platform: Platform;
  readonly raw: unknown;
  readonly figures: AccountFigures;
  readonly demographics: Demographics | null | undefined;
}[] = [
  {
    platform: 'x',
    raw: { data: { public_metrics: { followers_count: 1200, following_count: 3 } } },
    figures: { followerCount: 1200 },
    demographics: null,
  },
  {
    platform: 'instagram',
    raw: {
      user: { followers_count: 5000 },
      insights: {
        data: [
          { name: 'accounts_engaged', total_value: { value: 230 } },
          { name: 'profile_links_taps', total_value: { value: 7 } },
          { name: 'profile_views', total_value: { value: 90 } },
        ],
      },
      views: { data: [breakdown('views', 'media_product_type', { REELS: 400, FEED: 100 })] },
      follower_demographics: {
        country: demographics('country', { DE: 210, AT: 40 }),
        age: demographics('age', { '18-24': 100 }),
      },
    },
    figures: {
      followerCount: 5000,
      profileViews: 90,
      accountsEngaged: 230,
      profileLinkTaps: 7,
      videoViews: 400,
      contentPlays: 500,
    },
    demographics: { country: { DE: 210, AT: 40 }, age: { '18-24': 100 } },
  },
  { platform: 'tiktok', raw: { follower_count: 9 }, figures: { followerCount: 9 }, demographics: null },
  {
    platform: 'youtube',
    raw: {
      channel: { statistics: { subscriberCount: '12300', hiddenSubscriberCount: false } },
      day: report(['day', 'views', 'estimatedMinutesWatched'], ['2026-01-01', 400, 900]),
    },
    figures: { followerCount: 12_300, videoViews: 400, videoWatchTimeMinutes: 900 },
    demographics: null,
  },
  {
    platform: 'facebook',
    raw: {
      page: { followers_count: 800 },
      insights: insights({
        page_media_view: 600,
        page_views_total: 30,
        page_total_actions: 4,
        page_video_views: 90,
        page_video_view_time: 1_200_000,
        page_follows_country: { DE: 700, AT: 100 },
        page_follows_city: { 'Berlin, Germany': 300 },
      }),
    },
    figures: {
      followerCount: 800,
      profileViews: 30,
      profileLinkTaps: 4,
      videoViews: 90,
      videoWatchTimeMinutes: 20,
      contentPlays: 600,
    },
    demographics: { country: { DE: 700, AT: 100 }, city: { 'Berlin, Germany': 300 } },
  },
  {
    platform: 'linkedin',
    raw: {
      networkSizes: { firstDegreeSize: 310 },
      organizationPageStatistics: {
        elements: [{ totalPageStatistics: { views: { allPageViews: { pageViews: 44 } } } }],
      },
      organizationalEntityFollowerStatistics: {
        elements: [
          {
            followerCountsByGeoCountry: [
              {
                geo: 'urn:li:geo:101282230',
                followerCounts: { organicFollowerCount: 200, paidFollowerCount: 5 },
              },
            ],
            followerCountsBySeniority: [
              { seniority: 'urn:li:seniority:4', followerCounts: { organicFollowerCount: 90, paidFollowerCount: 0 } },
            ],
          },
        ],
      },
    },
    figures: { followerCount: 310, profileViews: 44 },
    demographics: { geo: { 'urn:li:geo:101282230': 205 }, seniority: { 'urn:li:seniority:4': 90 } },
  },
  {
    platform: 'threads',
    raw: {
      threads_insights: {
        data: [
          { name: 'views', values: [{ value: 40, end_time: '2026-01-01T08:00:00+0000' }, { value: 2 }] },
          { name: 'clicks', link_total_values: [{ value: 3, link_url: 'https://a.example' }, { value: 1 }] },
          { name: 'followers_count', total_value: { value: 700 } },
        ],
      },
      follower_demographics: { gender: demographics('gender', { F: 400, M: 200, U: 100 }) },
    },
    figures: { followerCount: 700, profileViews: 42, profileLinkTaps: 4 },
    demographics: { gender: { F: 400, M: 200, U: 100 } },
  },
  {
    platform: 'pinterest',
    raw: {
      user_account: { follower_count: 60 },
      analytics: {
        all: {
          summary_metrics: {
            PROFILE_VISIT: 3,
            VIDEO_MRC_VIEW: 40,
            VIDEO_V50_WATCH_TIME: 600_000,
            VIDEO_START: 80,
          },
        },
      },
    },
    figures: { followerCount: 60, profileViews: 3, videoViews: 40, videoWatchTimeMinutes: 10, contentPlays: 80 },
    demographics: null,
  },
  {
    platform: 'bluesky',
    raw: { followersCount: 25, followsCount: 2 },
    figures: { followerCount: 25 },
    demographics: null,
  },
  { platform: 'telegram', raw: { getChatMemberCount: 31 }, figures: { followerCount: 31 }, demographics: null },
];

const children = (value: unknown): readonly string[] =>
  typeof value === 'object' && value !== null ? Object.keys(value) : [];

/** A copy with the value at one place, counted over all of them, put in place of what is there. */
export const broken = (raw: unknown, where: number, value: unknown): unknown => {
  const copy = structuredClone(raw) as Record<string, unknown>;
  const places: (readonly [Record<string, unknown>, string])[] = [];
  const visit = (node: Record<string, unknown>) => {
    for (const key of children(node)) {
      places.push([node, key]);
      visit(node[key] as Record<string, unknown>);
    }
  };
  visit(copy);
  const place = places[where % places.length];
  if (place !== undefined) place[0][place[1]] = value;
  return copy;
};

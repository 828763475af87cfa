import { deepEqual, equal, ok } from 'node:assert/strict';
import { accountFieldsOf, fieldsOf } from '#domain/platforms/read-figures.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { AccountFigures, Demographics, PostFigures } from '#schemas/insights.ts';
import { most, ofAccounts, ofPosts, type PostField } from '#test/support/reported-by.ts';
import { suite } from '#test/support/suite.ts';

/** Told by networks the spec does not name, and why. */
const beyond: Readonly<Partial<Record<PostField, Readonly<Partial<Record<Platform, string>>>>>> = {
  shares: { tiktok: 'share_count of a video', youtube: 'shares of the channel report' },
  saves: {
    x: 'bookmark_count',
    bluesky: 'bookmarkCount, where the app view has it',
    linkedin: 'POST_SAVE of a member’s post',
  },
  clicks: { x: 'url_link_clicks of the last 30 days' },
  permalink: { tiktok: 'share_url' },
  reactionsByType: { linkedin: 'three of its kinds have a place of ours' },
  clicksByType: { pinterest: 'closeups and outbound clicks', linkedin: 'LINK_CLICKS of a member’s post' },
  follows: {
    x: 'follows of the post analytics',
    facebook: 'post_video_followers',
    linkedin: 'FOLLOWER_GAINED_FROM_CONTENT of a member’s post',
    pinterest: 'USER_FOLLOW',
  },
  profileVisits: {
    x: 'user_profile_clicks of the post analytics',
    linkedin: 'PROFILE_VIEW_FROM_CONTENT of a member’s post',
    pinterest: 'PROFILE_VISIT',
  },
  totalInteractions: { x: 'engagements, its own total' },
  reposts: { x: 'retweet_count', bluesky: 'repostCount', instagram: 'reposts, since 2025' },
  quotes: { x: 'quote_count', bluesky: 'quoteCount' },
  videoViews: {
    x: 'view_count of the media',
    tiktok: 'view_count, its only figure of views',
    youtube: 'viewCount',
    linkedin: 'VIDEO_VIEW and VIDEO_PLAY',
    pinterest: 'VIDEO_MRC_VIEW',
  },
  videoCompletions: { pinterest: 'QUARTILE_95_PERCENT_VIEW' },
  watchTimeMinutes: {
    x: 'watch_time_ms of the media analytics',
    instagram: 'ig_reels_video_view_total_time',
    linkedin: 'TIME_WATCHED and VIDEO_WATCH_TIME',
    pinterest: 'VIDEO_V50_WATCH_TIME',
  },
  avgViewDurationSeconds: {
    x: 'watch time by plays',
    instagram: 'ig_reels_avg_watch_time',
    facebook: 'post_video_avg_time_watched',
    pinterest: 'VIDEO_AVG_WATCH_TIME',
  },
  avgViewPercentage: { x: 'watch time by plays and length' },
  audienceRetention: { x: 'plays that reached each quarter' },
};

const uses = ['feed', 'reel', 'story'] as const;
const tells = (platform: Platform, field: PostField): boolean =>
  uses.some((use) => fieldsOf(platform, use)[field] !== null);

const accountBeyond: Readonly<Partial<Record<keyof typeof ofAccounts, Readonly<Partial<Record<Platform, string>>>>>> = {
  profileViews: {
    facebook: 'page_views_total',
    threads: 'views, which are those of the profile',
    pinterest: 'PROFILE_VISIT',
    linkedin: 'page views of an organization',
  },
  profileLinkTaps: { facebook: 'page_total_actions', threads: 'clicks on the links of the profile' },
  videoViews: { instagram: 'views of reels', youtube: 'views of the day', pinterest: 'VIDEO_MRC_VIEW' },
  videoWatchTimeMinutes: { youtube: 'estimatedMinutesWatched of the day', pinterest: 'VIDEO_V50_WATCH_TIME' },
  contentPlays: { instagram: 'views', pinterest: 'VIDEO_START' },
  demographics: { linkedin: 'follower statistics of an organization' },
};

const held = (
  field: string,
  reported: readonly Platform[],
  wanted: readonly Platform[] | typeof most,
  more: Readonly<Partial<Record<Platform, string>>>,
) => {
  if (wanted === most) return ok(reported.length > platforms.length / 2, `${field}: ${reported}`);
  deepEqual([...reported].sort(), [...new Set([...wanted, ...Object.keys(more)])].sort(), field);
  for (const platform of wanted) ok(!(platform in more), `${field}: the spec names ${platform} itself`);
};

/** The networks that the words of a figure name. */
const namedIn = (schema: unknown): readonly string[] => {
  const { description = '' } = schema as { readonly description?: string };
  const [, names = ''] = /Reported by ([a-z, ]+)\./.exec(description) ?? [];
  return names === 'every network' ? platforms : names.split(', ').filter((one) => one !== '');
};

suite('metrics tables and the spec', (t) => {
  t('each figure of a post has the networks of the spec, and further ones listed here with the reason', () => {
    deepEqual(Object.keys(ofPosts), Object.keys(PostFigures.properties));
    for (const [field, wanted] of Object.entries(ofPosts) as [PostField, (typeof ofPosts)[PostField]][]) {
      held(
        field,
        platforms.filter((platform) => tells(platform, field)),
        wanted,
        beyond[field] ?? {},
      );
    }
  });

  t('each figure of an account too', () => {
    deepEqual(Object.keys(ofAccounts), [...Object.keys(AccountFigures.properties), 'demographics']);
    for (const [field, wanted] of Object.entries(ofAccounts) as [keyof typeof ofAccounts, typeof most][]) {
      const reported = platforms.filter((platform) => accountFieldsOf(platform)[field] !== null);
      held(field, reported, wanted, accountBeyond[field] ?? {});
    }
  });

  t('the words of each figure name the networks that report it', () => {
    for (const [field, schema] of Object.entries(PostFigures.properties)) {
      const reporters = platforms.filter((platform) => tells(platform, field as PostField));
      deepEqual([...namedIn(schema)].sort(), [...reporters].sort(), field);
    }
    for (const [field, schema] of Object.entries({ ...AccountFigures.properties, demographics: Demographics })) {
      const reporters = platforms.filter((one) => accountFieldsOf(one)[field as keyof typeof ofAccounts] !== null);
      deepEqual([...namedIn(schema)].sort(), [...reporters].sort(), field);
    }
  });

  t('all networks that have impressions report them', () => {
    deepEqual(
      platforms.filter((platform) => !tells(platform, 'impressions')),
      ['tiktok', 'youtube', 'bluesky', 'telegram'],
    );
  });

  t('figures that the spec has for stories or reels exist for these alone', () => {
    const of = (use: (typeof uses)[number]) => fieldsOf('instagram', use);
    for (const field of ['navigation', 'linkClicks'] as const) {
      deepEqual(
        uses.filter((use) => of(use)[field] !== null),
        ['story'],
        field,
      );
    }
    for (const field of ['skipRate', 'videoViews', 'watchTimeMinutes'] as const) {
      deepEqual(
        uses.filter((use) => of(use)[field] !== null),
        ['reel'],
        field,
      );
    }
    equal(of('reel').follows, null);
    deepEqual(fieldsOf('instagram', 'carousel'), of('feed'));
  });

  t('names are the names of the network', () => {
    equal(fieldsOf('instagram', 'feed').saves, 'saved');
    equal(fieldsOf('instagram', 'story').comments, 'replies');
    equal(fieldsOf('x', 'feed').likes, 'data.public_metrics.like_count');
    equal(fieldsOf('youtube', 'feed').watchTimeMinutes, 'totals.estimatedMinutesWatched');
    equal(fieldsOf('threads', 'feed').totalInteractions, 'derived');
    equal(fieldsOf('tiktok', 'feed').impressions, null);
  });
});

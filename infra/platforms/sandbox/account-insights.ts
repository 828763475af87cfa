/** Counts of an account in each network's own members and shapes: of the days before, and its followers now. */
import { accountDays } from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { countingOfDay, cut, followersOf } from './curves.ts';
import { insight, insights, type Members, report, split } from './shapes.ts';

const demographics = (followers: number) => {
  const by = {
    country: cut(followers, { DE: 60, AT: 15, CH: 10, US: 10, GB: 5 }),
    city: cut(Math.floor(followers * 0.4), { 'Berlin, Germany': 5, 'Vienna, Austria': 3, 'Zurich, Switzerland': 2 }),
    age: cut(followers, { '25-34': 40, '18-24': 25, '35-44': 20, '45-54': 10, '55-64': 5 }),
    gender: cut(followers, { F: 52, M: 44, U: 4 }),
  };
  return {
    ...by,
    // Each is the answer of a call with that breakdown.
    follower_demographics: Object.fromEntries(
      Object.entries(by).map(([dimension, labels]) => [
        dimension,
        { data: [split('follower_demographics', dimension, labels)] },
      ]),
    ),
  };
};

/** Networks that tell the days before again; the others tell followers alone. */
const listing: readonly Platform[] = ['instagram', 'youtube', 'facebook', 'linkedin', 'threads', 'pinterest'];
const revising: readonly Platform[] = ['youtube', 'facebook'];

export interface AccountTold {
  /** Of the day before. */
  readonly raw: Members;
  /** Of the days before that, the newest first. */
  readonly earlier: readonly Members[];
}

export function accountAnswer(platform: Platform, externalId: string, nowMs: number): AccountTold {
  const earlier = listing.includes(platform) ? Array.from({ length: accountDays - 1 }, (_, place) => place + 2) : [];
  return {
    raw: answerOf(platform, externalId, nowMs, 1),
    earlier: earlier.map((daysAgo) => withoutNow(answerOf(platform, externalId, nowMs, daysAgo))),
  };
}

/** What is told of now, not of a day. */
const ofNow = [
  ...['user', 'channel', 'page', 'networkSizes', 'user_account', 'follower_demographics'],
  'organizationalEntityFollowerStatistics',
];
const insightsOfNow = ['followers_count', 'page_follows_country', 'page_follows_city'];

const withoutNow = (answer: Members): Members =>
  Object.fromEntries(
    Object.entries(answer)
      .filter(([member]) => !ofNow.includes(member))
      .map(([member, told]) => {
        const { data } = told as Members;
        if (!Array.isArray(data)) return [member, told];
        return [member, { data: data.filter((one) => !insightsOfNow.includes(String((one as Members).name))) }];
      }),
  );

function answerOf(platform: Platform, externalId: string, nowMs: number, daysAgo: number): Members {
  const followers = followersOf(externalId, nowMs);
  const of = countingOfDay(externalId, nowMs, daysAgo, revising.includes(platform));
  const { country, city, follower_demographics } = demographics(followers);
  const plays = of.part('video views', 0.3, 0.6);
  const watchedMs = plays * Math.floor(of.fixed('watched', 4_000, 40_000));
  const visits = of.part('profile', 0.01, 0.05);
  const taps = of.part('taps', 0.001, 0.006);
  switch (platform) {
    case 'x':
      return { data: { public_metrics: { followers_count: followers } } };
    case 'instagram':
      return {
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
      };
    case 'tiktok':
      return { follower_count: followers };
    case 'youtube':
      return {
        // Rounded to three digits.
        channel: { statistics: { subscriberCount: String(Number(followers.toPrecision(3))) } },
        day: report(['views', 'estimatedMinutesWatched'], [[of.views, Math.floor(watchedMs / 60_000)]]),
      };
    case 'facebook':
      return {
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
      };
    case 'linkedin':
      return {
        networkSizes: { firstDegreeSize: followers },
        organizationPageStatistics: {
          elements: [{ totalPageStatistics: { views: { allPageViews: { pageViews: visits } } } }],
        },
        organizationalEntityFollowerStatistics: {
          elements: [
            {
              followerCountsByGeoCountry: Object.entries(country).map(([label, organicFollowerCount]) => ({
                geo: `urn:li:country:${label.toLowerCase()}`,
                followerCounts: { organicFollowerCount, paidFollowerCount: 0 },
              })),
            },
          ],
        },
      };
    case 'threads':
      return {
        threads_insights: {
          data: [
            insight('views', visits, 'day'),
            { name: 'clicks', link_total_values: [{ value: taps, link_url: 'https://acme.example/' }] },
            { name: 'followers_count', total_value: { value: followers } },
          ],
        },
        follower_demographics,
      };
    case 'pinterest':
      return {
        user_account: { follower_count: followers },
        analytics: {
          all: {
            summary_metrics: {
              PROFILE_VISIT: visits,
              VIDEO_MRC_VIEW: plays,
              VIDEO_V50_WATCH_TIME: watchedMs,
              VIDEO_START: plays + taps,
            },
          },
        },
      };
    case 'bluesky':
      return { followersCount: followers };
    case 'telegram':
      return { getChatMemberCount: followers };
  }
}

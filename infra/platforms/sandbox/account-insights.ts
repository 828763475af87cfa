/** Figures of an account in each network's own members and shapes: those of past days, and its followers now. */
import { accountDays } from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import type { Members } from '../shared/members.ts';
import { countingOfDay, cut, followersOf } from './curves.ts';
import { imitations } from './imitations.ts';
import { split } from './shapes.ts';

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

export interface AccountAnswer {
  /** Of yesterday. */
  readonly raw: Members;
  /** Of the days before yesterday, the newest first. */
  readonly earlier: readonly Members[];
}

export function accountAnswer(platform: Platform, externalId: string, nowMs: number): AccountAnswer {
  const earlier =
    imitations[platform].pastDays !== 'none' ? Array.from({ length: accountDays - 1 }, (_, place) => place + 2) : [];
  return {
    raw: answerOf(platform, externalId, nowMs, 1),
    earlier: earlier.map((daysAgo) => withoutNow(answerOf(platform, externalId, nowMs, daysAgo))),
  };
}

/** Members that describe the present moment, not a day. */
const ofNow = [
  ...['user', 'channel', 'page', 'networkSizes', 'user_account', 'follower_demographics'],
  'organizationalEntityFollowerStatistics',
];
const insightsOfNow = ['followers_count', 'page_follows_country', 'page_follows_city'];

const withoutNow = (answer: Members): Members =>
  Object.fromEntries(
    Object.entries(answer)
      .filter(([member]) => !ofNow.includes(member))
      .map(([member, value]) => {
        const { data } = value as Members;
        if (!Array.isArray(data)) return [member, value];
        return [member, { data: data.filter((one) => !insightsOfNow.includes(String((one as Members).name))) }];
      }),
  );

function answerOf(platform: Platform, externalId: string, nowMs: number, daysAgo: number): Members {
  const followers = followersOf(externalId, nowMs);
  const of = countingOfDay(externalId, nowMs, daysAgo, imitations[platform].pastDays === 'revised');
  const { country, city, follower_demographics } = demographics(followers);
  const plays = of.part('video views', 0.3, 0.6);
  const watchedMs = plays * Math.floor(of.fixed('watched', 4_000, 40_000));
  const visits = of.part('profile', 0.01, 0.05);
  const taps = of.part('taps', 0.001, 0.006);
  const day = { followers, of, plays, watchedMs, visits, taps, country, city, follower_demographics };
  return imitations[platform].accountInsights(day);
}

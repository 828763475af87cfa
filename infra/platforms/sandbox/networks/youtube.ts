import { countingOf, cut, dayMs, hourMs, retention } from '../curves.ts';
import type { Imitation } from '../imitation.ts';
import { report } from '../shapes.ts';

const spreadMs = 15 * dayMs;

/** YouTube reports two to three days late; until then its answer has no rows. */
const postInsights: Imitation['postInsights'] = ({ post, ageMs }, of) => {
  const statistics = {
    viewCount: String(of.views),
    likeCount: String(of.part('likes', 0.01, 0.06)),
    commentCount: String(of.part('comments', 0.0005, 0.004)),
  };
  const video = { kind: 'youtube#videoStats', id: post.externalId, statistics };
  const lagMs = 48 * hourMs + of.fixed('lag', 0, 24 * hourMs);
  const then = countingOf(spreadMs, post.externalId, ageMs - lagMs);
  const columns = [
    'views',
    'likes',
    'comments',
    'shares',
    'estimatedMinutesWatched',
    'averageViewDuration',
    'averageViewPercentage',
    'subscribersGained',
    'subscribersLost',
  ];
  if (ageMs < lagMs || then.views === 0) return { video, totals: { columnHeaders: columns.map((name) => ({ name })) } };
  const seconds = Math.floor(then.fixed('watched', 40, 300));
  const percent = Math.round(then.fixed('percent', 20, 70) * 100) / 100;
  const sources = cut(then.views, { YT_SEARCH: 3, RELATED_VIDEO: 4, SUBSCRIBER: 2, EXT_URL: 1 });
  return {
    video,
    totals: report(columns, [
      [
        then.views,
        then.part('likes', 0.01, 0.06),
        then.part('comments', 0.0005, 0.004),
        then.part('shares', 0.0005, 0.005),
        Math.floor((then.views * seconds) / 60),
        seconds,
        percent,
        then.part('gained', 0.0005, 0.004),
        then.part('lost', 0, 0.0004),
      ],
    ]),
    retention: report(
      ['elapsedVideoTimeRatio', 'audienceWatchRatio'],
      retention(then, 100).map((ratio, place) => [(place + 1) / 100, ratio]),
    ),
    traffic: report(['insightTrafficSourceType', 'views'], Object.entries(sources)),
    viewers: report(
      ['ageGroup', 'gender', 'viewerPercentage'],
      [
        ['age18-24', 'female', 22.5],
        ['age18-24', 'male', 17.5],
        ['age25-34', 'female', 31],
        ['age25-34', 'male', 29],
      ],
    ),
    countries: report(['country', 'views'], Object.entries(cut(then.views, { DE: 7, AT: 2, CH: 1 }))),
    devices: report(['deviceType', 'views'], Object.entries(cut(then.views, { MOBILE: 7, DESKTOP: 2, TV: 1 }))),
  };
};

const accountInsights: Imitation['accountInsights'] = ({ followers, of, watchedMs }) => ({
  // YouTube rounds the count to three digits.
  channel: { statistics: { subscriberCount: String(Number(followers.toPrecision(3))) } },
  day: report(['views', 'estimatedMinutesWatched'], [[of.views, Math.floor(watchedMs / 60_000)]]),
});

/** "VideoCategories: list" of the region DE, those that can be assigned. */
const categories: Readonly<Record<string, string>> = {
  '1': 'Film & Animation',
  '2': 'Autos & Vehicles',
  '10': 'Music',
  '15': 'Pets & Animals',
  '17': 'Sports',
  '19': 'Travel & Events',
  '20': 'Gaming',
  '22': 'People & Blogs',
  '23': 'Comedy',
  '24': 'Entertainment',
  '25': 'News & Politics',
  '26': 'Howto & Style',
  '27': 'Education',
  '28': 'Science & Technology',
  '29': 'Nonprofits & Activism',
};

/** YouTube as the sandbox imitates it. */
export const youtube: Imitation = {
  refusals: {
    rate_limit: 'rateLimitExceeded',
    token_death: 'invalid_grant',
    reject: 'invalidVideoMetadata',
    duplicate: 'duplicate',
  },
  spreadMs,
  accountId: (seed) => `UC${seed.toString('base64url').slice(0, 22)}`,
  choices: {
    categoryId: () => Object.entries(categories).map(([value, label]) => ({ value, label, about: null })),
  },
  handleId: (random) => random.toString('base64url'),
  postIds: ({ random, code }) => ({ id: random.toString('base64url').slice(0, 11), code }),
  comments: {
    form: 'comment',
    forbidden: 'insufficientPermissions',
    id: (random) => `Ug${random.toString('base64url').slice(0, 24)}`,
  },
  covers: { forbidden: 'forbidden' },
  processes: true,
  scheduler: { refusals: { outside_window: 'invalidPublishAt', too_late: 'forbidden' } },
  postInsights,
  pastDays: 'revised',
  accountInsights,
};

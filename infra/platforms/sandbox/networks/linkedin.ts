import { linkedinCalls } from '../calls.ts';
import { cut, dayMs, watching } from '../curves.ts';
import { digits, sha256 } from '../id-parts.ts';
import type { Choosing, Imitation } from '../imitation.ts';

const postInsights: Imitation['postInsights'] = ({ post }, of) => {
  const likes = of.part('likes', 0.01, 0.05);
  const statistics = {
    impressionCount: of.views,
    uniqueImpressionsCount: of.part('reach', 0.55, 0.85),
    clickCount: of.part('clicks', 0.01, 0.04),
    likeCount: likes,
    commentCount: of.part('comments', 0.001, 0.006),
    shareCount: of.part('shares', 0.0005, 0.004),
  };
  const kinds = cut(likes, { LIKE: 80, EMPATHY: 10, PRAISE: 7, ENTERTAINMENT: 3 });
  const { views, watchedMs } = watching(of);
  return {
    // A post without any activity is left out of the list.
    organizationalEntityShareStatistics: {
      elements: of.views === 0 ? [] : [{ share: post.externalId, totalShareStatistics: statistics }],
    },
    socialMetadata: {
      reactionSummaries: Object.fromEntries(
        Object.entries(kinds).map(([reactionType, count]) => [reactionType, { reactionType, count }]),
      ),
    },
    ...(post.hasVideo
      ? {
          videoAnalytics: {
            VIDEO_VIEW: { elements: [{ value: views }] },
            TIME_WATCHED: { elements: [{ value: watchedMs }] },
          },
        }
      : {}),
  };
};

const accountInsights: Imitation['accountInsights'] = ({ followers, visits, country }) => ({
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
});

/** An account whose name begins like this is a person, whose posts LinkedIn shows to nobody; the others are pages. */
const person = 'member-';

/** The page itself, or that of the person, and another one of the same login. */
const organizationsOf = ({ username, externalId }: Choosing) => [
  {
    value: username.startsWith(person) ? `urn:li:organization:${digits(sha256(externalId), 8)}` : externalId,
    label: username,
    about: 'ADMINISTRATOR',
  },
  {
    value: `urn:li:organization:${digits(sha256(`${externalId}/second`), 8)}`,
    label: `${username} second`,
    about: 'CONTENT_ADMINISTRATOR',
  },
];

/** LinkedIn as the sandbox imitates it. */
export const linkedin: Imitation = {
  refusals: { rate_limit: '429/101', token_death: '401/65601', reject: 'PARAM_INVALID', duplicate: '422' },
  spreadMs: 2 * dayMs,
  accountId: (seed, username) =>
    username.startsWith(person)
      ? `urn:li:person:${seed.toString('base64url').slice(0, 10)}`
      : `urn:li:organization:${digits(seed, 8)}`,
  choices: { organization: organizationsOf },
  postIds: ({ random, code }) => ({ id: `urn:li:share:7${digits(random, 18)}`, code }),
  comments: {
    form: 'comment',
    forbidden: null,
    id: (random, postId) => `urn:li:comment:(${postId},7${digits(random, 18)})`,
  },
  calls: linkedinCalls,
  postInsights,
  pastDays: 'final',
  accountInsights,
};

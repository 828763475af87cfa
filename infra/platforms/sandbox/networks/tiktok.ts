import { tiktokCalls } from '../calls.ts';
import { dayMs } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';

const postInsights: Imitation['postInsights'] = ({ post, permalink }, of) => ({
  id: post.externalId,
  ...(permalink === null ? {} : { share_url: permalink }),
  view_count: of.views,
  like_count: of.part('likes', 0.02, 0.1),
  comment_count: of.part('comments', 0.001, 0.01),
  share_count: of.part('shares', 0.001, 0.01),
});

const accountInsights: Imitation['accountInsights'] = ({ followers }) => ({ follower_count: followers });

/** As the app shows them. */
const levelNames = {
  PUBLIC_TO_EVERYONE: 'Everyone',
  FOLLOWER_OF_CREATOR: 'Followers',
  MUTUAL_FOLLOW_FRIENDS: 'Friends',
  SELF_ONLY: 'Only you',
} as const;

/** As TikTok offers them: a public account has no followers-only level, and a private one is never public. */
const levelsOf = (username: string): readonly (keyof typeof levelNames)[] => [
  /^private\b/.test(username) ? 'FOLLOWER_OF_CREATOR' : 'PUBLIC_TO_EVERYONE',
  'MUTUAL_FOLLOW_FRIENDS',
  'SELF_ONLY',
];

/** TikTok as the sandbox imitates it. */
export const tiktok: Imitation = {
  refusals: {
    rate_limit: 'spam_risk_too_many_posts',
    token_death: 'access_token_invalid',
    reject: 'invalid_params',
    duplicate: 'spam_risk',
  },
  spreadMs: 3 * dayMs,
  accountId: (seed) => `-000${seed.toString('base64url').slice(0, 32)}`,
  choices: {
    privacyLevel: ({ username }) =>
      levelsOf(username).map((value) => ({ value, label: levelNames[value], about: null })),
  },
  facts: (username) => ({
    allows: { privacyLevel: levelsOf(username) },
    // 180 s and more in truth: tests have no such videos.
    maxDurationMs: username.startsWith('brief-') ? 1_000 : 600_000,
  }),
  scopes: (username) => levelsOf(username).map((level) => `privacy_level.${level}`),
  handleId: (random) => `v_pub_file~v2-1.7${digits(random, 18)}`,
  postIds: ({ random, code }) => ({ id: `7${digits(random, 18)}`, code }),
  comments: null,
  processes: true,
  unproven: 'url_ownership_unverified',
  calls: tiktokCalls,
  postInsights,
  pastDays: 'none',
  accountInsights,
};

import { dayMs, watching } from '../curves.ts';
import { digits, sha256 } from '../id-parts.ts';
import type { Choosing, Imitation } from '../imitation.ts';

const postInsights: Imitation['postInsights'] = ({ post }, of) => {
  const { views, averageMs, watchedMs } = watching(of);
  const summary_metrics = {
    IMPRESSION: of.views,
    PIN_CLICK: of.part('clicks', 0.01, 0.05),
    OUTBOUND_CLICK: of.part('links', 0.002, 0.01),
    SAVE: of.part('saves', 0.003, 0.02),
    USER_FOLLOW: of.part('follows', 0.0001, 0.001),
    PROFILE_VISIT: of.part('profile', 0.001, 0.006),
    ...(post.hasVideo
      ? {
          VIDEO_MRC_VIEW: views,
          QUARTILE_95_PERCENT_VIEW: Math.floor(views * of.fixed('completed', 0.05, 0.3)),
          VIDEO_V50_WATCH_TIME: watchedMs,
          VIDEO_AVG_WATCH_TIME: averageMs,
        }
      : {}),
  };
  const lifetime_metrics = {
    TOTAL_REACTIONS: of.part('likes', 0.002, 0.02),
    TOTAL_COMMENTS: of.part('comments', 0.0002, 0.002),
  };
  return { analytics: { all: { summary_metrics, lifetime_metrics } } };
};

const accountInsights: Imitation['accountInsights'] = ({ followers, plays, watchedMs, visits, taps }) => ({
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
});

const boardNames = ['Autumn', 'Home', 'Ideas', 'Recipes', 'Spring', 'Summer', 'Travel', 'Winter'];
/** More than one answer holds. */
const manyBoards = 2_100;

/** An account whose name begins with `many-boards-` has more boards than are ever shown; the last of the others is secret. */
const boardsOf = ({ username, externalId }: Choosing) => {
  const names = username.startsWith('many-boards-')
    ? Array.from({ length: manyBoards }, (_, at) => `Board ${String(at + 1).padStart(4, '0')}`)
    : boardNames;
  return names.map((label) => ({
    value: `5${digits(sha256(`${externalId}/${label}`), 17)}`,
    label,
    about: label === 'Winter' ? 'SECRET' : 'PUBLIC',
  }));
};

/** Pinterest as the sandbox imitates it. */
export const pinterest: Imitation = {
  refusals: { rate_limit: '429/8', token_death: '401/2', reject: '400/1', duplicate: '400/1' },
  spreadMs: 30 * dayMs,
  accountId: (seed) => `9${digits(seed, 17)}`,
  choices: { boardId: boardsOf },
  postIds: ({ random, code }) => ({ id: `1${digits(random, 17)}`, code }),
  comments: null,
  postInsights,
  pastDays: 'final',
  accountInsights,
};

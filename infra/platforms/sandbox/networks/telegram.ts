import { cut, hourMs } from '../curves.ts';
import { digits } from '../id-parts.ts';
import type { Imitation } from '../imitation.ts';

const postInsights: Imitation['postInsights'] = (_shown, of) => {
  const likes = of.part('likes', 0.01, 0.06);
  const emoji = cut(likes, { '👍': 6, '❤': 3, '🔥': 1 });
  const reactions = Object.entries(emoji).map(([one, total_count]) => ({
    type: { type: 'emoji', emoji: one },
    total_count,
  }));
  return {
    // Telegram sends no update before the first reaction.
    ...(likes === 0 ? {} : { message_reaction_count: { reactions } }),
    discussion: { messages: of.part('comments', 0.0005, 0.005) },
  };
};

const accountInsights: Imitation['accountInsights'] = ({ followers }) => ({ getChatMemberCount: followers });

/** Telegram as the sandbox imitates it. */
export const telegram: Imitation = {
  refusals: { rate_limit: '429', token_death: '401', reject: '400', duplicate: '400' },
  spreadMs: 14 * hourMs,
  accountId: (seed) => `-1001${digits(seed, 9)}`,
  postIds: ({ account }) => ({ id: `${account}:#`, code: '#' }),
  comments: { form: 'reply', forbidden: null },
  postInsights,
  pastDays: 'none',
  accountInsights,
};

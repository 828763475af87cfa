import { evening } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { showsNothing } from '#domain/platforms/visible-text.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** Pinterest, API v5. Figures: developers.pinterest.com, OpenAPI description 5.23, "Create Pin". */
export const pinterest: NetworkRules = {
  platform: 'pinterest',
  name: 'Pinterest',
  text: {
    limits: [{ unit: 'code_points', limit: 800 }],
    note: 'The text is the description: 800 characters.',
  },
  media,
  // "Create Pin": `alt_text` of 500 characters, one for the pin.
  altTexts: [{ kinds: ['image', 'video'], limits: [{ unit: 'code_points', limit: 500 }] }],
  capabilities: {
    thread: false,
    firstComment: false,
    native: false,
    textOnly: false,
    altText: true,
    cover: true,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.pinterest.com/pin/{id}/'],
  },
  overrides: {
    boardId: {
      about: 'Id of the board that the pin goes to. Without it the target fails when it is published.',
      type: 'string',
      required: { code: 'pinterest_board_required', message: 'Pinterest needs the override boardId' },
    },
    title: { about: 'Headline of at most 100 characters; the content is the description.', type: 'string', max: 100 },
    link: { about: 'Address that the pin leads to.', type: 'url', max: 2048 },
  },
  title: (_content, { title }) => (typeof title === 'string' && !showsNothing(title) ? title : null),
  banned: [],
  aiKey: null,
  insights,
  priorTimes: evening,
};

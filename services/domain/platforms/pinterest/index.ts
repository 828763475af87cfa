import type { PlatformRules } from '#domain/platforms/rules.ts';

/** Pinterest, API v5. Figures: developers.pinterest.com, OpenAPI description 5.23, "Create Pin". */
export const pinterest: PlatformRules = {
  platform: 'pinterest',
  name: 'Pinterest',
  text: {
    limits: [{ unit: 'code_points', limit: 800 }],
    note: 'The text is the description: 800 characters.',
  },
  // "Images must have the same width/height ratios."
  media: [
    { use: 'feed', kinds: ['image'], min: 1, max: 5, sameAspect: true },
    { use: 'feed', kinds: ['video'], min: 1, max: 1 },
  ],
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
    settleWindowMs: 600_000,
    permalinks: ['https://www.pinterest.com/pin/{id}/'],
  },
  overrides: {
    boardId: { type: 'string', required: 'pinterest_board_required' },
    title: { type: 'string', max: 100 },
    link: { type: 'url', max: 2048 },
  },
  banned: [],
  aiKey: null,
};

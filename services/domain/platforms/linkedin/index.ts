import { office } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';

/** LinkedIn, Posts API. Figures: learn.microsoft.com/linkedin, "Posts API", "Comments API", "MultiImage API". */
export const linkedin: NetworkRules = {
  platform: 'linkedin',
  name: 'LinkedIn',
  text: {
    limits: [{ unit: 'code_points', limit: 3000 }],
    note: 'Commentary of 3,000 characters, counted before the escapes of little text format.',
  },
  media,
  // "Images API", "MultiImage API": `altText` of 4,086 characters; a video has none.
  altTexts: [{ kinds: ['image', 'gif'], limits: [{ unit: 'code_points', limit: 4086 }] }],
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: false,
  },
  nativeWindow: null,
  publish: {
    handle: 'none',
    absenceIsProof: false,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.linkedin.com/feed/update/{id}/'],
  },
  overrides: {
    visibility: { about: 'Who sees the post.', type: 'enum', values: ['PUBLIC', 'CONNECTIONS'], default: 'PUBLIC' },
    firstComment: {
      about:
        'A comment on the published post, at most 1,250 characters. If it fails, the post stays published and `firstCommentIssue` says why.',
      type: 'comment',
      asPost: false,
      max: 1250,
    },
  },
  banned: [],
  aiKey: null,
  insights,
  priorTimes: office,
};

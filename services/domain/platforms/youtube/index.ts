import { evening } from '#domain/platforms/prior-times.ts';
import type { NetworkRules } from '#domain/platforms/rules.ts';
import { insights } from './insights.ts';
import { media } from './media.ts';
import { youtubeTitle } from './text.ts';

/** YouTube, Data API v3. Figures: developers.google.com/youtube, "Videos" resource, "Resumable uploads". */
export const youtube: NetworkRules = {
  platform: 'youtube',
  name: 'YouTube',
  text: {
    limits: [{ unit: 'utf8_bytes', limit: 5000 }],
    replacedBy: 'description',
    refused: {
      pattern: /[<>]/,
      code: 'youtube_description_invalid',
      message: 'YouTube takes no < or > in a description',
    },
    note: 'The text is the description: 5,000 UTF-8 bytes, without < and >.',
  },
  media,
  capabilities: {
    thread: false,
    firstComment: true,
    native: true,
    textOnly: false,
    altText: false,
    cover: true,
    aiLabel: true,
  },
  // status.publishAt must be ahead when the upload is done, so the near end is ours: a quarter of an hour to upload in.
  nativeWindow: { minMs: 900_000, maxMs: 548 * 86_400_000 },
  publish: {
    // The upload session answers afterwards whether it made a video, and makes one only.
    handle: 'upload',
    absenceIsProof: true,
    readsBack: 'own_posts',
    settleWindowMs: 600_000,
    permalinks: ['https://www.youtube.com/watch?v={id}'],
  },
  overrides: {
    title: {
      type: 'string',
      max: 100,
      required: {
        code: 'youtube_title_required',
        message:
          'YouTube needs a title: the override title, or a first line of content, of 1 to 100 characters without < and >',
        usable: (content, overrides) => youtubeTitle(content, overrides) !== null,
      },
    },
    privacyStatus: { type: 'enum', values: ['public', 'unlisted', 'private'] },
    categoryId: {
      type: 'enum',
      values: ['1', '2', '10', '15', '17', '19', '20', '22', '23', '24', '25', '26', '27', '28', '29'],
      default: '22',
    },
    madeForKids: { type: 'boolean', default: false },
    tags: { type: 'list', commas: true, maxChars: 500 },
    license: { type: 'enum', values: ['youtube', 'creativeCommon'] },
    description: { type: 'string', maxBytes: 5000 },
    firstComment: { type: 'comment', asPost: false },
  },
  banned: [],
  aiKey: 'containsSyntheticMedia',
  insights,
  priorTimes: evening,
};

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
  altTexts: [],
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
  // A video with publishAt becomes public at that time, whatever its privacyStatus is to be.
  nativeWindow: { minMs: 900_000, maxMs: 548 * 86_400_000, refuses: { privacyStatus: ['unlisted', 'private'] } },
  publish: {
    // The upload session answers afterwards whether it made a video, and makes one only.
    handle: 'upload',
    absenceIsProof: true,
    readsBack: 'own_posts',
    listsOwnPosts: true,
    settleWindowMs: 600_000,
    permalinks: ['https://www.youtube.com/watch?v={id}'],
  },
  overrides: {
    title: {
      about:
        'Title of 1 to 100 characters, without < and >. Absent: the first line of the content that has text; without a usable title the target fails when it is published.',
      type: 'string',
      max: 100,
      required: {
        code: 'youtube_title_required',
        message:
          'YouTube needs a title: the override title, or a first line of content, of 1 to 100 characters without < and >',
        fallback: true,
        usable: (content, overrides) => youtubeTitle(content, overrides) !== null,
      },
    },
    privacyStatus: {
      about: 'Who sees the video. Absent: as the channel decides.',
      type: 'enum',
      values: ['public', 'unlisted', 'private'],
    },
    categoryId: {
      about:
        'Category: 1 Film and Animation, 2 Autos and Vehicles, 10 Music, 15 Pets and Animals, 17 Sports, 19 Travel and Events, 20 Gaming, 22 People and Blogs, 23 Comedy, 24 Entertainment, 25 News and Politics, 26 Howto and Style, 27 Education, 28 Science and Technology, 29 Nonprofits and Activism.',
      type: 'enum',
      values: ['1', '2', '10', '15', '17', '19', '20', '22', '23', '24', '25', '26', '27', '28', '29'],
      default: '22',
    },
    madeForKids: { about: 'Whether the video is made for children; always sent.', type: 'boolean', default: false },
    tags: {
      about: 'Tags, at most 500 characters together. One string with commas is read too.',
      type: 'list',
      commas: true,
      maxChars: 500,
    },
    license: {
      about: 'Licence of the video. Absent: the standard licence.',
      type: 'enum',
      values: ['youtube', 'creativeCommon'],
    },
    description: {
      about: 'Replaces the content as the description: at most 5,000 UTF-8 bytes, without < and >.',
      type: 'string',
      maxBytes: 5000,
    },
    firstComment: {
      about:
        'A top-level comment on the published video, at most 10,000 characters. If it fails, the video stays published and `firstCommentIssue` says why. Without the permission to comment on its connection, the network refuses it.',
      type: 'comment',
      asPost: false,
      // Practice: no page of the API names it.
      max: 10_000,
    },
  },
  title: youtubeTitle,
  banned: [],
  aiKey: 'containsSyntheticMedia',
  insights,
  priorTimes: evening,
};

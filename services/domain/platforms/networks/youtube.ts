import {
  asAmount,
  asDigits,
  asLabel,
  asList,
  type Counted,
  counted,
  derived,
  dig,
  digits,
  type FigureSource,
  first,
  items,
} from '../figure-source.ts';
import { anyUse, type InsightsTable, unreportedAccount, unreportedPost } from '../insights-table.ts';
import { about, anySize, eightBit420, h264, tenBits, upToMB, vp8 } from '../media-blocks.ts';
import type { CodecRule, MediaUseRules, NetworkMedia } from '../media-rules.ts';
import { evening } from '../prior-times.ts';
import type { NetworkRules, Overrides } from '../rules.ts';
import { showsNothing } from '../visible-text.ts';

/** The title as it is sent: the override, else the first line of the content that has text; null when it is unusable. */
export function youtubeTitle(content: string, overrides: Overrides): string | null {
  const own = overrides.title;
  const set = typeof own === 'string' && !showsNothing(own);
  const title = set
    ? own.trim()
    : (content.split(/\r\n|[\n\r\u2028\u2029]/u).find((line) => !showsNothing(line)) ?? '').trim();
  // A line that is too long is not cut: a target without a usable title fails, it is not degraded in silence.
  return title === '' || [...title].length > 100 || /[<>]/.test(title) ? null : title;
}

const sounds = ['aac', 'opus', 'vorbis', 'mp3', 'flac', 'ac3', 'pcm_s16le', 'pcm_s24le'];
const any = (codec: string): CodecRule => ({ codec, profiles: null });

const files: MediaUseRules = {
  feed: {
    image: null,
    video: {
      ...anySize,
      containers: ['mp4', 'mov', 'webm', 'matroska', 'avi', 'mpegts'],
      codecs: [h264, ...tenBits, vp8, any('prores'), any('mpeg4'), any('mpeg2video')],
      // Ten bits and 4:2:2 are taken of codecs that are made for them.
      pixelFormats: [...eightBit420, 'yuv422p', 'yuv422p10le', 'yuv420p10le'],
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(256_000),
      // Fifteen minutes for a channel that is not verified, which its adapter knows of.
      durationMs: { min: 1, max: 12 * 3_600_000 },
      indexFirst: false,
      noEditList: false,
      // It makes renditions of each size and range of its own: support.google.com, "Recommended upload encoding", "Upload HDR".
      hdr: true,
      turned: true,
      audio: { codecs: sounds.map(any), maxChannels: 6, maxSampleRate: 96_000, maxKbps: null },
      target: '2160',
    },
    gif: null,
    document: null,
  },
  cover: {
    // 50 MB since 2026-09-14; 2 MB holds everywhere.
    image: {
      ...anySize,
      formats: ['jpeg', 'png'],
      bytes: upToMB(2),
      aspect: about(16 / 9, 16 / 9),
      width: { min: 640, max: 3840 },
      target: 'thumbnail',
    },
    video: null,
    gif: null,
    document: null,
  },
};

/** YouTube. Figures: developers.google.com/youtube, "Videos: insert", "Thumbnails: set"; support.google.com, formats. */
const media: NetworkMedia = {
  shapes: [{ use: 'feed', kinds: ['video'], min: 1, max: 1 }],
  files,
  // "thumbnails.set" needs the id of the video.
  coverAfter: ['feed'],
};

/** The rows of a report, each as a function from a column to its cell; undefined where the report has no rows. */
const rowsOf = (raw: unknown, report: string) => {
  const columns = items(raw, `${report}.columnHeaders`);
  const rows = dig(raw, `${report}.rows`);
  if (!columns || rows === null || rows === undefined) return undefined;
  const names = columns.map(({ name }) => asLabel(name, `${report}.columnHeaders`));
  return asList(rows, `${report}.rows`).map((row) => {
    const cells = asList(row, `${report}.rows`);
    return (column: string): unknown => cells[names.indexOf(column)];
  });
};

const cell = <T>(report: string, column: string, check: (value: unknown, name: string) => T): FigureSource<T> => ({
  ...digits(column),
  name: `${report}.${column}`,
  read: (raw) => {
    const value = rowsOf(raw, report)?.[0]?.(column);
    return value === undefined || value === null ? value : check(value, column);
  },
});
const total = (column: string) => cell('totals', column, asDigits);

const byLabel = (
  report: string,
  column: string,
  value: string,
  check: (value: unknown, name: string) => number,
): FigureSource<Counted> =>
  derived(`${report}: ${value} by ${column}`, (raw) => {
    const rows = rowsOf(raw, report);
    return rows && counted(rows.map((row) => [asLabel(row(column), column), check(row(value), value)] as const));
  });

const breakdowns = {
  ageGroup: byLabel('viewers', 'ageGroup', 'viewerPercentage', asAmount),
  gender: byLabel('viewers', 'gender', 'viewerPercentage', asAmount),
  country: byLabel('countries', 'country', 'views', asDigits),
  deviceType: byLabel('devices', 'deviceType', 'views', asDigits),
};

/**
 * YouTube, Data API v3 and Analytics API v2. Sources: developers.google.com/youtube, "videos.batchGetStats" (decimal
 * strings, fresh), "Channel reports" (columns and rows, 48 to 72 hours late; no rows where there is nothing yet).
 *
 * Of a post `{video, totals, retention, traffic, viewers, countries, devices}`: the video, and one report for each kind of
 * row. Of an account `{channel, day}`.
 */
const insights: InsightsTable = {
  post: anyUse({
    ...unreportedPost,
    // Missing where the channel hides its likes.
    likes: first(digits('video.statistics.likeCount'), total('likes')),
    comments: first(digits('video.statistics.commentCount'), total('comments')),
    shares: total('shares'),
    videoViews: first(digits('video.statistics.viewCount'), total('views')),
    watchTimeMinutes: total('estimatedMinutesWatched'),
    avgViewDurationSeconds: total('averageViewDuration'),
    avgViewPercentage: cell('totals', 'averageViewPercentage', asAmount),
    subscribersGained: total('subscribersGained'),
    subscribersLost: total('subscribersLost'),
    // Above 1 where viewers watch a part again.
    audienceRetention: derived('retention: audienceWatchRatio by elapsedVideoTimeRatio', (raw) =>
      rowsOf(raw, 'retention')?.map((row) => ({
        position: asAmount(row('elapsedVideoTimeRatio'), 'elapsedVideoTimeRatio'),
        ratio: asAmount(row('audienceWatchRatio'), 'audienceWatchRatio'),
      })),
    ),
    trafficSources: byLabel('traffic', 'insightTrafficSourceType', 'views', asDigits),
    audienceBreakdown: derived('viewers, countries, devices', (raw) => {
      const found = Object.entries(breakdowns).flatMap(([dimension, source]) => {
        const reported = source.read(raw);
        return reported === null || reported === undefined ? [] : [[dimension, reported] as const];
      });
      return found.length === 0 ? undefined : Object.fromEntries(found);
    }),
  }),
  account: {
    ...unreportedAccount,
    followerCount: digits('channel.statistics.subscriberCount'),
    videoViews: cell('day', 'views', asDigits),
    videoWatchTimeMinutes: cell('day', 'estimatedMinutesWatched', asDigits),
  },
  demographics: null,
};

/** YouTube, Data API v3. Figures: developers.google.com/youtube, "Videos" resource, "Resumable uploads". */
export const youtube: NetworkRules = {
  platform: 'youtube',
  name: 'YouTube',
  app: {
    addresses: {
      ...{ api: 'https://www.googleapis.com/youtube/v3', authorize: 'https://accounts.google.com/o/oauth2/v2/auth' },
      ...{ tokens: 'https://oauth2.googleapis.com', uploads: 'https://www.googleapis.com/upload/youtube/v3' },
      figures: 'https://youtubeanalytics.googleapis.com/v2',
    },
    countsCalls: true,
  },
  text: {
    limits: [{ unit: 'utf8_bytes', limit: 5000 }],
    replacedBy: 'description',
    refused: {
      pattern: /[<>]/,
      code: 'youtube_description_invalid',
      message: 'YouTube takes no < or > in a description',
    },
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
  // "Quota calculator", June 2026: uploads have a bucket of their own, which a project may have raised.
  appBudget: { name: 'videos.insert', limit: 100, zone: 'America/Los_Angeles', every: 'day', counts: 'calls' },
  // The same page: everything else, by what a call costs.
  appUnits: { name: 'units', limit: 10_000, zone: 'America/Los_Angeles', every: 'day', counts: 'calls' },
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
      about:
        'Who sees the video. Absent: everybody: YouTube’s API makes such a video public, whatever the channel has as its default.',
      type: 'enum',
      values: ['public', 'unlisted', 'private'],
      default: 'public',
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
  // "VideoCategories: list": those of a region to which a video can be assigned.
  choices: { categoryId: 'The categories that a video of the channel can have.' },
  title: youtubeTitle,
  banned: [],
  aiKey: 'containsSyntheticMedia',
  insights,
  priorTimes: evening,
};

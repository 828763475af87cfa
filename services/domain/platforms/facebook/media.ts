import {
  aac,
  about,
  anySize,
  av1,
  eightBit420,
  h264,
  hevc,
  nineBySixteen,
  seconds,
  upToMB,
  vp9,
} from '#domain/platforms/media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia, VideoRules } from '#domain/platforms/media-rules.ts';

/** Facebook Pages. Figures: developers.facebook.com, "Page Photos", "Page Videos", "Page Video Reels", "Page Stories". */

// 10 MB are documented, but error 1366046 speaks of 4 MB of JPEG or PNG.
const image: ImageRules = { ...anySize, formats: ['jpeg', 'png'], bytes: upToMB(4), target: 'large' };

const feedVideo: VideoRules = {
  ...anySize,
  containers: ['mp4', 'mov'],
  codecs: [h264],
  pixelFormats: eightBit420,
  fps: { min: 1, max: 60 },
  constantRate: false,
  maxKbps: null,
  // Both are commonly cited and unconfirmed.
  bytes: upToMB(10_000),
  durationMs: { min: 1, max: 4 * 3_600_000 },
  aspect: about(9 / 16, 16 / 9),
  indexFirst: false,
  noEditList: false,
  audio: aac,
  target: '1080',
};

const reel: VideoRules = {
  ...feedVideo,
  containers: ['mp4'],
  codecs: [h264, hevc, vp9, av1],
  fps: { min: 24, max: 60 },
  constantRate: true,
  // Undocumented; the older limit of the page's own composer.
  bytes: upToMB(1000),
  durationMs: seconds(3, 90),
  aspect: nineBySixteen,
  long: { min: 960, max: 1920 },
  short: { min: 540, max: 1080 },
};

/** A still gif would be taken, a moving one would stand still: it is published as a video. */
const none = { gif: null, document: null };

const files: MediaUseRules = {
  feed: { ...none, image, video: feedVideo },
  reel: { ...none, image: null, video: reel },
  story: { ...none, image, video: { ...reel, durationMs: seconds(3, 60) } },
  cover: { ...none, image: { ...image, target: 'thumbnail' }, video: null },
};

export const media: NetworkMedia = {
  // Photos and a video do not go together; ten photos are practice, not documentation.
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 10 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
  files,
  useOf: (asked) => asked ?? 'feed',
};

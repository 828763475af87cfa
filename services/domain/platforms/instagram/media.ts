import { aac, anySize, eightBit420, h264, hevc, seconds, upToMB, within } from '#domain/platforms/media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia, VideoRules } from '#domain/platforms/media-rules.ts';

/** Instagram. Figures: developers.facebook.com, "IG User Media": image, reel and story specifications. */

const image: ImageRules = {
  ...anySize,
  formats: ['jpeg'],
  bytes: upToMB(8),
  aspect: within(4 / 5, 1.91),
  width: { min: 320, max: 1440 },
  target: 'social',
};

const reel: VideoRules = {
  ...anySize,
  containers: ['mp4', 'mov'],
  codecs: [h264, hevc],
  pixelFormats: eightBit420,
  fps: { min: 23, max: 60 },
  constantRate: false,
  maxKbps: 25_000,
  // One vendor reports 1 GB by now: unconfirmed.
  bytes: upToMB(300),
  durationMs: seconds(3, 900),
  aspect: within(0.01, 10),
  width: { min: 1, max: 1920 },
  indexFirst: true,
  noEditList: true,
  audio: { ...aac, maxKbps: 128 },
  target: '1080',
};

/** A gif is published as a video; documents are not. */
const none = { gif: null, document: null };

const files: MediaUseRules = {
  // A video of a feed post is published as a reel.
  feed: { ...none, image, video: reel },
  // The figures of videos in a carousel are practice, not documentation. Pictures are cropped to the first one's ratio.
  carousel: { ...none, image, video: { ...reel, bytes: upToMB(100), durationMs: seconds(3, 60) } },
  reel: { ...none, image: null, video: reel },
  story: {
    ...none,
    // 9:16 is advice: others are shown with bars by Instagram itself.
    image: { ...image, aspect: within(0.1, 10) },
    video: { ...reel, bytes: upToMB(100), durationMs: seconds(3, 60), aspect: within(0.1, 10) },
  },
  cover: { ...none, image: { ...image, aspect: within(0.1, 10) }, video: null },
};

export const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image'], min: 1, max: 1 },
    { use: 'carousel', kinds: ['image', 'video'], min: 2, max: 10 },
    { use: 'reel', kinds: ['video'], min: 1, max: 1 },
    // Several would be as many stories, each a post of its own.
    { use: 'story', kinds: ['image', 'video'], min: 1, max: 1 },
  ],
  files,
  useOf: (asked, kinds) => {
    if (asked !== null) return asked;
    if (kinds.length > 1) return 'carousel';
    // A single video is published as a reel whatever contentType says ("IG User Media", since 2023-07).
    return kinds[0] === 'video' || kinds[0] === 'gif' ? 'reel' : 'feed';
  },
};

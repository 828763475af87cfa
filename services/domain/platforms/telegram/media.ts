import { aac, anySize, eightBit420, h264, pdf, upToMB, within } from '#domain/platforms/media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** Telegram. Figures: core.telegram.org/bots/api, "Sending files", "sendPhoto", "sendVideo", "sendAnimation". */

const image: ImageRules = {
  ...anySize,
  formats: ['jpeg', 'png', 'webp'],
  bytes: upToMB(10),
  aspect: within(1 / 20, 20),
  maxSum: 10_000,
  target: 'large',
};

const files: MediaUseRules = {
  feed: {
    image,
    video: {
      ...anySize,
      containers: ['mp4'],
      codecs: [h264],
      pixelFormats: eightBit420,
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(50),
      durationMs: { min: 1, max: 12 * 3_600_000 },
      // It plays while it loads only then.
      indexFirst: true,
      noEditList: false,
      audio: aac,
      target: '720',
    },
    // A silent video is an animation, and stands in an album too, where a gif does not.
    gif: null,
    document: { contentTypes: pdf, bytes: upToMB(50) },
  },
  cover: { image: { ...image, target: 'thumbnail' }, video: null, gif: null, document: null },
};

export const media: NetworkMedia = {
  // "sendMediaGroup": photos and videos together, documents only with documents.
  shapes: [
    { use: 'feed', kinds: ['image', 'video'], min: 0, max: 10 },
    { use: 'feed', kinds: ['document'], min: 0, max: 10 },
  ],
  files,
};

import { aac, anySize, eightBit420, h264, hevc, seconds, upToMB, within } from '#domain/platforms/media-blocks.ts';
import type { ImageRules, MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** Pinterest. Figures: developers.pinterest.com, "Create Pin", "Media"; help.pinterest.com, product specifications. */

// 20 MB now, 10 MB on older pages; about 200 px is where "image too small" was seen.
const image: ImageRules = {
  ...anySize,
  formats: ['jpeg', 'png'],
  bytes: upToMB(10),
  short: { min: 200, max: 10_000 },
  target: 'large',
};

const files: MediaUseRules = {
  feed: {
    image,
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264, hevc],
      pixelFormats: eightBit420,
      // Sides and rate are unconfirmed.
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(2000),
      durationMs: seconds(4, 900),
      aspect: within(1 / 2, 1.91),
      short: { min: 240, max: 4096 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    gif: null,
    document: null,
  },
  cover: { image: { ...image, target: 'thumbnail' }, video: null, gif: null, document: null },
};

export const media: NetworkMedia = {
  // "Images must have the same width/height ratios."
  shapes: [
    { use: 'feed', kinds: ['image'], min: 1, max: 5, sameAspect: true },
    { use: 'feed', kinds: ['video'], min: 1, max: 1 },
  ],
  files,
};

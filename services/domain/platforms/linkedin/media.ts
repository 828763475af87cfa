import {
  aac,
  anySize,
  eightBit420,
  h264,
  minUpToMB,
  pdf,
  seconds,
  upTo,
  upToMB,
  within,
} from '#domain/platforms/media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** LinkedIn. Figures: learn.microsoft.com/linkedin, "Images API", "Videos API", "Documents API". */

// "Fewer than 36,152,320 pixels."
const maxPixels = 36_152_319;

const files: MediaUseRules = {
  feed: {
    // No limit of bytes is documented; 8 MB is practice.
    image: { ...anySize, formats: ['jpeg', 'png', 'gif'], bytes: upToMB(8), maxPixels, target: 'large' },
    video: {
      ...anySize,
      containers: ['mp4'],
      codecs: [h264],
      pixelFormats: eightBit420,
      // Rate, ratio and sides are those of the ads and help pages: unconfirmed here.
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      // "Videos API": 75 KB to 500 MB.
      bytes: minUpToMB(500),
      durationMs: seconds(3, 1800),
      aspect: within(1 / 2.4, 2.4),
      long: upTo(4096),
      short: upTo(2304),
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    gif: { ...anySize, bytes: upToMB(8), maxPixels, maxFrames: 250, maxPixelsOfAll: null },
    document: { contentTypes: pdf, bytes: upToMB(100) },
  },
};

export const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image', 'gif'], min: 0, max: 20 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
    { use: 'feed', kinds: ['document'], min: 0, max: 1 },
  ],
  files,
};

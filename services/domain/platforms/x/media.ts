import { aac, anySize, eightBit420, h264, upTo, upToMB, within } from '#domain/platforms/media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** X. Figures: docs.x.com, "Media best practices", "Upload media". */
const files: MediaUseRules = {
  feed: {
    image: { ...anySize, formats: ['jpeg', 'png', 'webp', 'gif'], bytes: upToMB(5), target: 'large' },
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264],
      pixelFormats: eightBit420,
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(512),
      // Longer only for some subscribers, of a length that is written nowhere.
      durationMs: { min: 500, max: 140_000 },
      aspect: within(1 / 3, 3),
      // 1280x1024 is documented; 1080p is taken from subscribers only.
      long: { min: 32, max: 1280 },
      short: { min: 32, max: 1024 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '720',
    },
    gif: {
      ...anySize,
      bytes: upToMB(15),
      width: upTo(1280),
      height: upTo(1080),
      maxFrames: 350,
      maxPixelsOfAll: 300_000_000,
    },
    document: null,
  },
};

export const media: NetworkMedia = {
  // docs.x.com, "Media best practices": four photos, or one animated GIF, or one video.
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 4 },
    { use: 'feed', kinds: ['gif'], min: 0, max: 1 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
  ],
  files,
};

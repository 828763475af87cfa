import { aac, anySize, eightBit420, h264, hevc, upTo, upToMB, within } from '#domain/platforms/media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** Threads. Figures: developers.facebook.com/docs/threads, "Overview": image and video specifications. */
const files: MediaUseRules = {
  feed: {
    image: {
      ...anySize,
      formats: ['jpeg', 'png'],
      bytes: upToMB(8),
      aspect: within(0.1, 10),
      width: { min: 320, max: 1440 },
      target: 'social',
    },
    video: {
      ...anySize,
      containers: ['mp4', 'mov'],
      codecs: [h264, hevc],
      pixelFormats: eightBit420,
      fps: { min: 23, max: 60 },
      constantRate: false,
      maxKbps: 100_000,
      bytes: upToMB(1000),
      durationMs: { min: 1, max: 300_000 },
      aspect: within(0.01, 10),
      width: upTo(1920),
      indexFirst: true,
      noEditList: true,
      audio: { ...aac, maxKbps: 128 },
      target: '1080',
    },
    gif: null,
    document: null,
  },
};

export const media: NetworkMedia = {
  shapes: [{ use: 'feed', kinds: ['image', 'video'], min: 0, max: 20 }],
  files,
};

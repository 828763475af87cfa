import { aac, anySize, eightBit420, h264, upToMB } from '#domain/platforms/media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** Bluesky. Figures: lexicons app.bsky.embed.images and app.bsky.embed.video; docs.bsky.app, "Video". */
const files: MediaUseRules = {
  feed: {
    // 2 MB since 2026; a personal data server with older lexicons takes 1 MB.
    image: { ...anySize, formats: ['jpeg', 'png', 'webp'], bytes: upToMB(1), target: 'social' },
    video: {
      ...anySize,
      containers: ['mp4'],
      codecs: [h264],
      pixelFormats: eightBit420,
      fps: { min: 1, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(300),
      durationMs: { min: 1, max: 600_000 },
      indexFirst: false,
      noEditList: false,
      audio: aac,
      target: '1080',
    },
    // An image would stand still; a video is shown as a gif is (`presentation: "gif"`).
    gif: null,
    document: null,
  },
};

export const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['image'], min: 0, max: 10 },
    { use: 'feed', kinds: ['video'], min: 0, max: 1 },
  ],
  files,
};

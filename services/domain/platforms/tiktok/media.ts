import {
  aac,
  anySize,
  eightBit420,
  h264,
  hevc,
  seconds,
  upTo,
  upToMB,
  vp8,
  vp9,
} from '#domain/platforms/media-blocks.ts';
import type { MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** TikTok. Figures: developers.tiktok.com, "Media transfer guide", "Direct Post" (video and photo restrictions). */
const files: MediaUseRules = {
  feed: {
    // PNG is refused.
    image: {
      ...anySize,
      formats: ['jpeg', 'webp'],
      bytes: upToMB(20),
      long: upTo(1920),
      short: upTo(1080),
      target: 'social',
    },
    video: {
      ...anySize,
      containers: ['mp4', 'mov', 'webm'],
      codecs: [h264, hevc, vp8, vp9],
      pixelFormats: eightBit420,
      fps: { min: 23, max: 60 },
      constantRate: false,
      maxKbps: null,
      bytes: upToMB(4000),
      // The interface's ceiling; a creator's own may be lower and is asked for before each post. The low end is unconfirmed.
      durationMs: seconds(3, 600),
      long: { min: 360, max: 4096 },
      short: { min: 360, max: 4096 },
      indexFirst: false,
      noEditList: false,
      audio: {
        ...aac,
        codecs: [...aac.codecs, { codec: 'opus', profiles: null }, { codec: 'vorbis', profiles: null }],
      },
      target: '1080',
    },
    gif: null,
    document: null,
  },
};

export const media: NetworkMedia = {
  shapes: [
    { use: 'feed', kinds: ['video'], min: 1, max: 1 },
    { use: 'feed', kinds: ['image'], min: 1, max: 35 },
  ],
  files,
  // "video_cover_timestamp_ms" ("Direct Post"); it takes no picture as a cover.
  coverFrame: true,
};

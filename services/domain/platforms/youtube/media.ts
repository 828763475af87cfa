import { about, anySize, eightBit420, h264, tenBits, upToMB, vp8 } from '#domain/platforms/media-blocks.ts';
import type { CodecRule, MediaUseRules, NetworkMedia } from '#domain/platforms/media-rules.ts';

/** YouTube. Figures: developers.google.com/youtube, "Videos: insert", "Thumbnails: set"; support.google.com, formats. */

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

export const media: NetworkMedia = {
  shapes: [{ use: 'feed', kinds: ['video'], min: 1, max: 1 }],
  files,
};

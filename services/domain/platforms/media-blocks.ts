import type { AspectBounds, AudioRules, Bounds, CodecRule, SizeRules } from './media-rules.ts';

/** Words that the tables of several networks are written in. */

const MB = 1_000_000;
/** Decimal: where a network says MB and means MiB, this is the safe reading. */
export const upToMB = (megabytes: number): Bounds => ({ min: 1, max: megabytes * MB });
/** What is made of a video is never smaller: an MP4 is filled up to it with an empty box. In bytes. */
export const minVideoBytes = 76_800;
/** For networks that take no smaller file either. */
export const minUpToMB = (megabytes: number): Bounds => ({ min: minVideoBytes, max: megabytes * MB });
export const seconds = (min: number, max: number): Bounds => ({ min: min * 1000, max: max * 1000 });
export const upTo = (max: number): Bounds => ({ min: 1, max });

export const anySize: SizeRules = {
  aspect: null,
  width: null,
  height: null,
  long: null,
  short: null,
  maxPixels: null,
  maxSum: null,
};

/** Ratios that are held to the figure. */
export const within = (min: number, max: number): AspectBounds => ({ min, max, nominal: { min, max } });
/** Ratios of sizes that networks name in whole pixels (854x480 is 16:9): rounding makes no other ratio. */
const slack = 0.008;
export const about = (min: number, max: number): AspectBounds => ({
  min: min * (1 - slack),
  max: max * (1 + slack),
  nominal: { min, max },
});
export const nineBySixteen = about(9 / 16, 9 / 16);

export const h264: CodecRule = { codec: 'h264', profiles: ['constrained baseline', 'baseline', 'main', 'high'] };
/** Main 10 carries ten bits. */
export const hevc: CodecRule = { codec: 'hevc', profiles: ['main'] };
const hevc10: CodecRule = { codec: 'hevc', profiles: ['main', 'main 10'] };
export const vp8: CodecRule = { codec: 'vp8', profiles: null };
export const vp9: CodecRule = { codec: 'vp9', profiles: ['profile 0'] };
const vp9of10: CodecRule = { codec: 'vp9', profiles: ['profile 0', 'profile 2'] };
/** Its main profile carries ten bits as well. */
export const av1: CodecRule = { codec: 'av1', profiles: ['main'] };
/** What HDR comes in, for networks that show it. */
export const tenBits: readonly CodecRule[] = [hevc10, vp9of10, av1];

/** 4:2:0 of eight bits, the only one that every player of every network shows. */
export const eightBit420: readonly string[] = ['yuv420p', 'yuvj420p'];

const aacLc: CodecRule = { codec: 'aac', profiles: ['lc'] };
export const aac: AudioRules = { codecs: [aacLc], maxChannels: 2, maxSampleRate: 48_000, maxKbps: null };

export const pdf: readonly string[] = ['application/pdf'];

import type { ImageClass, VideoClass } from '#domain/platforms/media-rules.ts';
import type { Box } from './canvas.ts';

/**
 * The sizes and rates of renditions. All networks share these few, so that one rendition serves several networks: a
 * network names a class, and its limits decide how far down the ladder the rendition starts.
 */

export interface Rung {
  readonly box: Box;
  /** Ceilings for up to 30 pictures a second; half as much again above. */
  readonly videoKbps: number;
  readonly audioKbps: number;
}

const box = (long: number, short: number): Box => ({ long, short, width: long });
const rung = (size: Box, videoKbps: number, audioKbps: number): Rung => ({ box: size, videoKbps, audioKbps });

const uhd = box(3840, 2160);
const quad = box(2560, 1440);
const full = box(1920, 1080);
const hd = box(1280, 720);
const sd = box(854, 480);
const small = box(640, 360);

/** From the best down. Below the last rung a video is too coarse to watch or to listen to. */
const rungs: readonly Rung[] = [
  // What YouTube advises for these at 30 pictures a second.
  rung(uhd, 40_000, 128),
  rung(quad, 16_000, 128),
  rung(full, 6000, 128),
  rung(full, 3000, 128),
  // X advises at least 5 Mbit/s at this size.
  rung(hd, 5000, 128),
  rung(hd, 2500, 128),
  rung(hd, 1500, 128),
  rung(sd, 2000, 128),
  rung(sd, 1000, 96),
  rung(small, 1200, 128),
  rung(small, 600, 64),
  rung(small, 300, 64),
];

const boxOfClass: Readonly<Record<VideoClass, Box>> = { '2160': uhd, '1080': full, '720': hd };

/** Whether a picture of these sides lies inside it, either way round. */
const holds = ({ long, short }: Box, width: number, height: number): boolean =>
  Math.max(width, height) <= long && Math.min(width, height) <= short;

/**
 * The rungs at which one source may be encoded for one class, each cheaper than the one before. A source that is
 * smaller than the class begins at the smallest box that holds it, because more bits would add no detail.
 */
export const rungsFor = (target: VideoClass, width: number, height: number): readonly Rung[] => {
  const start =
    [small, sd, hd, full, quad, uhd].find((one) => one === boxOfClass[target] || holds(one, width, height)) ?? full;
  const below = rungs.slice(rungs.findIndex((one) => one.box === start));
  return below.filter((one, index) => below.slice(0, index).every(({ videoKbps }) => videoKbps > one.videoKbps));
};

export interface ImageShape {
  readonly box: Box;
  readonly quality: number;
  readonly maxBytes: number;
}

export const imageShapes: Readonly<Record<ImageClass, ImageShape>> = {
  large: { box: box(2048, 2048), quality: 88, maxBytes: 4_000_000 },
  social: { box: { long: 1920, short: 1080, width: 1440 }, quality: 86, maxBytes: 1_000_000 },
  thumbnail: { box: box(1280, 1280), quality: 85, maxBytes: 1_000_000 },
};

/** Frame rates that players are made for, pictures a second. */
const houseRates = [24, 25, 30, 50, 60] as const;

/**
 * Null keeps the source's own rate: steady and between 23.95 and 60.05. Others get the house rate that shows them best:
 * a slow one a multiple of its own, a faster one 30, an unsteady one the nearest.
 */
export const rateFor = (fps: number | null, steady: boolean): number | null => {
  if (fps === null || fps <= 0 || fps > 60.05) return 30;
  if (fps < 23.95)
    return houseRates.slice(0, 3).find((rate) => Math.abs(rate / fps - Math.round(rate / fps)) < 0.01) ?? 30;
  if (steady) return null;
  return houseRates.reduce<number>((best, rate) => (Math.abs(rate - fps) < Math.abs(best - fps) ? rate : best), 30);
};

/** An upper bound of the size of a file of this length: rates overshoot a little, and in the first seconds a lot. */
export const heaviest = (videoKbps: number, audioKbps: number, durationMs: number): number =>
  Math.ceil(((videoKbps * 1.1 + audioKbps * 1.05) * durationMs) / 8 + videoKbps * 250 + 65_536);

import { planRenditions } from '#domain/renditions/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaProbe, MediaUse } from '#schemas/media.ts';

/** Sources as probing would describe them: each fits all ten networks where that is possible, and takes what differs. */

type Video = NonNullable<MediaProbe['video']>;
type Image = NonNullable<MediaProbe['image']>;

const none = { width: null, height: null, durationMs: null, frames: null, image: null, video: null, audio: null };
const unmarked = { digitalSourceType: null };

const plainVideo: Video = {
  container: 'mp4',
  codec: 'h264',
  profile: 'high',
  pixelFormat: 'yuv420p',
  rotation: 0,
  squarePixels: true,
  fps: 30,
  constantRate: true,
  interlaced: false,
  hdr: false,
  bitrate: 4_000_000,
  indexFirst: true,
  editList: false,
  located: false,
};
const plainAudio: NonNullable<MediaProbe['audio']> = {
  codec: 'aac',
  profile: 'LC',
  channels: 2,
  sampleRate: 48_000,
  bitrate: 128_000,
};
const plainImage: Image = { format: 'jpeg', alpha: false, srgb: true, upright: true, located: false };

/** 30 s, 720x1280, H.264 and AAC. */
export const videoProbe = (over: Partial<Omit<MediaProbe, 'video'>> = {}, video: Partial<Video> = {}): MediaProbe => ({
  ...none,
  ...unmarked,
  kind: 'video',
  contentType: 'video/mp4',
  bytes: 15_000_000,
  width: 720,
  height: 1280,
  durationMs: 30_000,
  frames: 900,
  audio: plainAudio,
  ...over,
  video: { ...plainVideo, ...video },
});

/** A JPEG of 1080x1080. */
export const imageProbe = (over: Partial<Omit<MediaProbe, 'image'>> = {}, image: Partial<Image> = {}): MediaProbe => ({
  ...none,
  ...unmarked,
  kind: 'image',
  contentType: 'image/jpeg',
  bytes: 400_000,
  width: 1080,
  height: 1080,
  frames: 1,
  ...over,
  image: { ...plainImage, ...image },
});

/** 5 s of 480x480 at 10 pictures a second. */
export const gifProbe = (over: Partial<MediaProbe> = {}): MediaProbe => ({
  ...none,
  ...unmarked,
  kind: 'gif',
  contentType: 'image/gif',
  bytes: 2_000_000,
  width: 480,
  height: 480,
  durationMs: 5000,
  frames: 50,
  image: { ...plainImage, format: 'gif' },
  video: {
    ...plainVideo,
    container: 'gif',
    codec: 'gif',
    profile: null,
    pixelFormat: 'bgra',
    fps: 10,
    bitrate: null,
    indexFirst: false,
  },
  ...over,
});

export const documentProbe = (over: Partial<MediaProbe> = {}): MediaProbe => ({
  ...none,
  ...unmarked,
  kind: 'document',
  contentType: 'application/pdf',
  bytes: 1_000_000,
  ...over,
});

/** What a network gets of a source, and whether it takes the source as it is. */
export const plansOf = (platform: Platform) => {
  const planOf = (probe: MediaProbe, use: MediaUse = 'feed') => planRenditions(probe, [{ platform, use }])[0];
  return { planOf, fits: (probe: MediaProbe, use?: MediaUse): boolean => planOf(probe, use)?.outcome === 'fits' };
};

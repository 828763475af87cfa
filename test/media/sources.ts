/** The sources of `make test-media`. */
import sharp, { type Sharp } from 'sharp';
import { type Clip, makeClip, makeGif } from '#test/support/media/clips.ts';
import { gradient, save } from '#test/support/media/pictures.ts';

export interface Source {
  readonly name: string;
  readonly long: boolean;
  make(folder: string): Promise<string>;
}

const clip = (name: string, options: Clip): Source => ({
  name,
  long: (options.seconds ?? 1) > 60,
  make: (folder) => makeClip(folder, { seconds: 4, width: 1_280, height: 720, ...options }),
});

const picture = (name: string, ending: string, make: () => Sharp): Source => ({
  name,
  long: false,
  make: (folder) => save(folder, ending, make()),
});

export const sources: readonly Source[] = [
  clip('video landscape 1080p30', { width: 1_920, height: 1_080 }),
  clip('video portrait 1080p30', { width: 1_080, height: 1_920 }),
  clip('video square 24', { width: 720, height: 720, fps: 24 }),
  clip('video 60', { fps: 60 }),
  clip('video 29.97', { fps: '30000/1001' }),
  clip('video 15', { fps: 15 }),
  clip('video of a changing rate', { fps: 60, variable: true }),
  clip('video that fits', { width: 720, height: 1_280, streamable: true, seconds: 6 }),
  clip('video hevc', { codec: 'hevc' }),
  clip('video vp9', { codec: 'vp9', container: 'webm' }),
  clip('video prores', { codec: 'prores', container: 'mov' }),
  clip('video mpeg4 avi', { codec: 'mpeg4', container: 'avi' }),
  clip('video matroska', { container: 'mkv' }),
  clip('video transport stream', { container: 'ts' }),
  clip('video turned', { rotate: 90 }),
  clip('video silent', { sound: false }),
  clip('video interlaced', { interlaced: true, fps: 25 }),
  clip('video pq', { hdr: 'pq' }),
  clip('video hlg', { hdr: 'hlg' }),
  clip('video located', { container: 'mov', metadata: { location: '+48.1+011.5/' } }),
  clip('video wide', { width: 1_920, height: 400 }),
  clip('video tall', { width: 240, height: 1_280 }),
  clip('video tiny', { width: 64, height: 48 }),
  clip('video odd sides', { width: 854, height: 482 }),
  clip('video 4K', { width: 3_840, height: 2_160 }),
  clip('video 4K pq turned', { width: 3_840, height: 2_160, hdr: 'pq', rotate: 90, container: 'mov', seconds: 0.5 }),
  clip('video loud', { audioKbps: 320 }),
  clip('video half a second', { seconds: 0.5 }),
  clip('video heavy', { width: 1_920, height: 1_080, picture: 'mandelbrot', kbps: 40_000 }),
  clip('video minutes', { seconds: 200, width: 640, height: 360 }),
  clip('video ten minutes', { seconds: 600, width: 1_280, height: 720 }),
  { name: 'gif', long: false, make: (folder) => makeGif(folder, 30) },
  { name: 'gif short', long: false, make: (folder) => makeGif(folder, 5) },
  { name: 'gif large', long: false, make: (folder) => makeGif(folder, 60, 1_400, 1_100, 20) },
  picture('image jpeg', 'jpg', () => gradient(1_600, 1_200).jpeg()),
  picture('image that fits', 'jpg', () => gradient(1_080, 1_080).flatten().jpeg()),
  picture('image png with alpha', 'png', () => gradient(1_200, 900, true).png()),
  picture('image webp', 'webp', () => gradient(800, 800, true).webp()),
  picture('image avif', 'avif', () => gradient(800, 600).avif()),
  picture('image tiff', 'tiff', () => gradient(800, 600).tiff()),
  picture('image cmyk', 'jpg', () => gradient(800, 600).flatten().toColourspace('cmyk').jpeg()),
  picture('image turned', 'jpg', () => gradient(900, 600).withMetadata({ orientation: 6 }).jpeg()),
  picture('image wide', 'jpg', () => gradient(3_000, 100).jpeg()),
  picture('image tall', 'jpg', () => gradient(200, 3_000).jpeg()),
  picture('image of one pixel', 'png', () => gradient(1, 1).png()),
  picture('image located', 'jpg', () =>
    gradient(900, 600)
      .withExif({ IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1' } })
      .jpeg(),
  ),
  picture('image 12000 by 12000', 'jpg', () =>
    sharp({ create: { width: 12_000, height: 12_000, channels: 3, background: 'teal' } }).jpeg(),
  ),
];

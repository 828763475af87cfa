import type { SniffedType } from '#contracts/ports/transcoder.ts';
import type { MediaProbe } from '#schemas/media.ts';
import { budgetOf } from './budget.ts';
import { type Bytes, withBytes } from './bytes.ts';
import { bomb, empty, unreadable, unsupported } from './failures.ts';
import { gifFrames } from './gif.ts';
import { maxPixels, workOnImage } from './images.ts';
import { heaviest, marksOf } from './marks.ts';
import { probeVideo } from './probe-video.ts';
import { refuseSeveral } from './stills.ts';
import type { Tools } from './tools.ts';

const nothing = { durationMs: null, frames: null, image: null, video: null, audio: null, digitalSourceType: null };

const refuseHuge = (width: number, height: number): void => {
  if (width * height > maxPixels) throw bomb(`The picture is ${width} by ${height} pixels; 144 million are taken.`);
};

const probeImage = async (path: string, bytes: Bytes, { contentType }: SniffedType, signal: AbortSignal) => {
  await refuseSeveral(bytes, contentType, budgetOf(signal));
  const job = { path, contentType, threads: 1, digitalSourceType: null, outputs: null };
  const { found } = await workOnImage(job, signal);
  if (found === undefined) throw new Error('the child did not probe the picture');
  refuseHuge(found.width, found.height);
  const { format, width, height, pages, alpha, srgb, upright, located, sourceTypes } = found;
  if (`image/${format}` !== contentType) throw unreadable(`The picture is not the ${contentType} that it begins as.`);
  if (pages > 1 && format === 'webp') throw unsupported('Animated WebP is not taken; send a GIF or a video.');
  // C2PA manifests are stored uncompressed.
  const { sourceType } = await marksOf(bytes, budgetOf(signal));
  return {
    ...nothing,
    kind: 'image' as const,
    contentType,
    bytes: bytes.size,
    width,
    height,
    frames: 1,
    image: { format, alpha, srgb, upright, located },
    digitalSourceType: heaviest(sourceType === null ? sourceTypes : [...sourceTypes, sourceType]),
  };
};

/** Limits for unpacking a GIF: pictures, and pixels of all of them together (300 s of 1080p). */
const maxGifFrames = 10_000;
const maxGifPixels = 20_000_000_000;

const probeGif = async (path: string, bytes: Bytes, signal: AbortSignal): Promise<MediaProbe> => {
  const { frames, durationMs, width, height, evenly, transparent } = await gifFrames(bytes, maxGifFrames + 1);
  if (frames > maxGifFrames) throw bomb(`The GIF has more than ${maxGifFrames} pictures.`);
  if (width === 0 || height === 0) throw unreadable('The GIF has no size.');
  refuseHuge(width, height);
  if (width * height * frames > maxGifPixels) throw bomb('The GIF unpacks to more pixels than are taken.');
  // Decodes the first picture.
  await workOnImage({ path, contentType: 'image/gif', threads: 1, digitalSourceType: null, outputs: null }, signal);
  return {
    kind: 'gif',
    contentType: 'image/gif',
    bytes: bytes.size,
    width,
    height,
    durationMs,
    frames,
    image: { format: 'gif', alpha: transparent, srgb: true, upright: true, located: false },
    video: {
      container: 'gif',
      codec: 'gif',
      profile: null,
      pixelFormat: 'bgra',
      rotation: 0,
      squarePixels: true,
      fps: Math.round((frames * 1_000_000) / durationMs) / 1_000,
      constantRate: evenly,
      interlaced: false,
      hdr: false,
      bitrate: Math.round((bytes.size * 8_000) / durationMs),
      indexFirst: true,
      editList: false,
      located: false,
    },
    audio: null,
    digitalSourceType: (await marksOf(bytes, budgetOf(signal))).sourceType,
  };
};

const endBytes = 65_536;

/** Documents pass through unchanged, so only both ends are checked. */
const probeDocument = async (bytes: Bytes, { contentType }: SniffedType): Promise<MediaProbe> => {
  const end = await bytes.read(Math.max(0, bytes.size - endBytes), endBytes);
  if (!end.includes('%%EOF', 0, 'latin1')) throw unreadable('The PDF is cut off.');
  return { ...nothing, kind: 'document', contentType, bytes: bytes.size, width: null, height: null };
};

/** @throws TranscodeError */
export const probe = (tools: Tools, path: string, sniffed: SniffedType, signal: AbortSignal): Promise<MediaProbe> =>
  withBytes(path, async (bytes): Promise<MediaProbe> => {
    if (bytes.size === 0) throw empty();
    switch (sniffed.kind) {
      case 'image':
        return probeImage(path, bytes, sniffed, signal);
      case 'gif':
        return probeGif(path, bytes, signal);
      case 'video':
        return probeVideo(tools, path, bytes, sniffed, signal);
      case 'document':
        return probeDocument(bytes, sniffed);
    }
  });

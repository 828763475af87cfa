import type { MediaProbe } from '#schemas/media.ts';
import type {
  AudioRules,
  Bounds,
  CodecRule,
  DocumentRules,
  GifRules,
  ImageRules,
  SizeRules,
  UseRules,
  VideoRules,
} from './media-rules.ts';

/**
 * Why a file does not suit a use as it is. An unknown property counts as unsuitable: a rendition costs time, a refusal by
 * the network costs the post.
 */
export type Violation =
  | 'kind'
  | 'bytes'
  | 'too_light'
  | 'too_short'
  | 'too_long'
  | 'aspect'
  | 'size'
  | 'container'
  | 'codec'
  | 'pixel_format'
  | 'rate'
  | 'bitrate'
  | 'rotated'
  | 'pixel_shape'
  | 'interlaced'
  | 'hdr'
  | 'sound'
  | 'index'
  | 'edit_list'
  | 'located'
  | 'format'
  | 'colours'
  | 'frames'
  | 'content_type';

/** Violations of the container alone: copying the streams into a new file mends them. */
export const wrapping: ReadonlySet<Violation> = new Set(['container', 'index', 'edit_list', 'located', 'too_light']);

/** Measured rates vary: networks take 23.976 for 24, and sound of 128 kbit/s is never exactly that. */
const rateSlack = 0.05;
const bitrateSlack = 1.1;

const isWithin = (value: number, range: Bounds | null): boolean =>
  range === null || (value >= range.min && value <= range.max);
const known = (rules: readonly CodecRule[], codec: string, profile: string | null): boolean =>
  rules.some(
    (rule) =>
      rule.codec === codec &&
      (rule.profiles === null || (profile !== null && rule.profiles.includes(profile.toLowerCase()))),
  );
const moreThan = (bitsPerSecond: number | null, kbps: number | null): boolean =>
  kbps !== null && (bitsPerSecond === null || bitsPerSecond > kbps * 1000 * bitrateSlack);

const listed = (...found: readonly (readonly [boolean, Violation])[]): readonly Violation[] =>
  found.flatMap(([is, violation]) => (is ? [violation] : []));

const sizeViolations = (rules: SizeRules, width: number | null, height: number | null): readonly Violation[] => {
  if (width === null || height === null) return ['size'];
  const { maxPixels, maxSum } = rules;
  const fits =
    isWithin(width, rules.width) &&
    isWithin(height, rules.height) &&
    isWithin(Math.max(width, height), rules.long) &&
    isWithin(Math.min(width, height), rules.short) &&
    (maxPixels === null || width * height <= maxPixels) &&
    (maxSum === null || width + height <= maxSum);
  return listed([!isWithin(width / height, rules.aspect), 'aspect'], [!fits, 'size']);
};

const soundFits = (rules: AudioRules, sound: MediaProbe['audio']): boolean =>
  sound === null ||
  (known(rules.codecs, sound.codec, sound.profile) &&
    sound.channels <= rules.maxChannels &&
    sound.sampleRate <= rules.maxSampleRate &&
    !moreThan(sound.bitrate, rules.maxKbps));

const isMp4 = (container: string): boolean => container === 'mp4' || container === 'mov';

const videoViolations = (rules: VideoRules, probe: MediaProbe): readonly Violation[] => {
  const { video, durationMs } = probe;
  if (video === null || durationMs === null) return ['codec'];
  const { fps } = video;
  const inRate = fps !== null && fps >= rules.fps.min - rateSlack && fps <= rules.fps.max + rateSlack;
  return [
    ...sizeViolations(rules, probe.width, probe.height),
    ...listed(
      [probe.bytes > rules.bytes.max, 'bytes'],
      [probe.bytes < rules.bytes.min, 'too_light'],
      [durationMs < rules.durationMs.min, 'too_short'],
      [durationMs > rules.durationMs.max, 'too_long'],
      [!rules.containers.includes(video.container), 'container'],
      [!known(rules.codecs, video.codec, video.profile), 'codec'],
      [video.pixelFormat === null || !rules.pixelFormats.includes(video.pixelFormat), 'pixel_format'],
      [!inRate || (rules.constantRate && !video.constantRate), 'rate'],
      [moreThan(video.bitrate, rules.maxKbps), 'bitrate'],
      [video.rotation !== 0 && !rules.turned, 'rotated'],
      [!video.squarePixels, 'pixel_shape'],
      [video.interlaced, 'interlaced'],
      [video.hdr && !rules.hdr, 'hdr'],
      [!soundFits(rules.audio, probe.audio), 'sound'],
      [rules.indexFirst && isMp4(video.container) && !video.indexFirst, 'index'],
      [rules.noEditList && video.editList, 'edit_list'],
      [video.located, 'located'],
    ),
  ];
};

const imageViolations = (rules: ImageRules, probe: MediaProbe): readonly Violation[] => {
  const { image } = probe;
  if (image === null) return ['format'];
  return [
    ...sizeViolations(rules, probe.width, probe.height),
    ...listed(
      [!isWithin(probe.bytes, rules.bytes), 'bytes'],
      [!rules.formats.includes(image.format), 'format'],
      [!image.srgb, 'colours'],
      [!image.upright, 'rotated'],
      [image.located, 'located'],
      [(probe.frames ?? 1) > 1, 'frames'],
    ),
  ];
};

const gifViolations = (rules: GifRules, probe: MediaProbe): readonly Violation[] => {
  const { frames, width, height } = probe;
  const { maxFrames, maxPixelsOfAll } = rules;
  const tooMany =
    frames === null ||
    frames > maxFrames ||
    (maxPixelsOfAll !== null && (width ?? 0) * (height ?? 0) * frames > maxPixelsOfAll);
  return [
    ...sizeViolations(rules, width, height),
    ...listed([!isWithin(probe.bytes, rules.bytes), 'bytes'], [tooMany, 'frames']),
  ];
};

const documentViolations = (rules: DocumentRules, probe: MediaProbe): readonly Violation[] =>
  listed(
    [!isWithin(probe.bytes, rules.bytes), 'bytes'],
    [!rules.contentTypes.includes(probe.contentType), 'content_type'],
  );

/** A gif of one picture is an image. */
export const isStill = ({ kind, frames }: MediaProbe): boolean => kind === 'image' || (kind === 'gif' && frames === 1);

/** Every rule of the use that the file breaks; empty: it fits. */
export const violations = (rules: UseRules, probe: MediaProbe): readonly Violation[] => {
  if (isStill(probe)) return rules.image === null ? ['kind'] : imageViolations(rules.image, probe);
  if (probe.kind === 'video') return rules.video === null ? ['kind'] : videoViolations(rules.video, probe);
  if (probe.kind === 'gif') return rules.gif === null ? ['kind'] : gifViolations(rules.gif, probe);
  return rules.document === null ? ['kind'] : documentViolations(rules.document, probe);
};

/** Whether a JPEG that was made for another purpose, such as a poster frame, fits the use as it is. */
export const jpegFits = (
  rules: UseRules,
  file: { readonly bytes: number; readonly width: number | null; readonly height: number | null },
): boolean =>
  rules.image?.formats.includes('jpeg') === true &&
  isWithin(file.bytes, rules.image.bytes) &&
  sizeViolations(rules.image, file.width, file.height).length === 0;

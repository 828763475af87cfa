import { useRules } from '#domain/platforms/index.ts';
import type {
  AudioRules,
  Bounds,
  CodecRule,
  ImageRules,
  SizeRules,
  VideoRules,
} from '#domain/platforms/media-rules.ts';
import type { MediaNeed, MediaProbe, RenditionSpec } from '#schemas/media.ts';

/** Holds a source, or what a spec promises of a rendition, against the data of the rules. Shares no code with the planner. */

type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;
type ImageSpec = Exclude<RenditionSpec, { kind: 'video' }>;
type Complaints = string[];

const out = (range: Bounds | null, value: number): boolean =>
  range !== null && !(range.min <= value && value <= range.max);

const sizeComplaints = (rules: SizeRules, width: number, height: number): Complaints => {
  const found: Complaints = [];
  if (out(rules.aspect, width / height)) found.push(`aspect ${width}/${height}`);
  if (out(rules.width, width)) found.push(`width ${width}`);
  if (out(rules.height, height)) found.push(`height ${height}`);
  if (out(rules.long, Math.max(width, height))) found.push('long side');
  if (out(rules.short, Math.min(width, height))) found.push('short side');
  if (rules.maxPixels !== null && width * height > rules.maxPixels) found.push('pixels');
  if (rules.maxSum !== null && width + height > rules.maxSum) found.push('sum of sides');
  return found;
};

const listed = (rules: readonly CodecRule[], codec: string, profile: string | null): boolean => {
  const rule = rules.find((one) => one.codec === codec);
  if (rule === undefined) return false;
  return rule.profiles === null || rule.profiles.some((one) => one === profile?.toLowerCase());
};

const soundComplaints = (rules: AudioRules, sound: NonNullable<MediaProbe['audio']>): Complaints => {
  const found: Complaints = [];
  if (!listed(rules.codecs, sound.codec, sound.profile)) found.push('sound codec');
  if (sound.channels > rules.maxChannels) found.push('channels');
  if (sound.sampleRate > rules.maxSampleRate) found.push('sample rate');
  if (rules.maxKbps !== null && (sound.bitrate ?? Number.POSITIVE_INFINITY) > rules.maxKbps * 1100)
    found.push('sound rate');
  return found;
};

/** Of the pictures and size in a video file: what copying them leaves as it is. */
const streamComplaints = (rules: VideoRules, probe: MediaProbe): Complaints => {
  const { video, width, height, durationMs } = probe;
  if (video === null || width === null || height === null || durationMs === null) return ['not seen into'];
  const found = sizeComplaints(rules, width, height);
  if (out(rules.durationMs, durationMs)) found.push('duration');
  if (probe.bytes > rules.bytes.max) found.push('bytes');
  if (!listed(rules.codecs, video.codec, video.profile)) found.push('codec');
  if (!rules.pixelFormats.includes(video.pixelFormat ?? '')) found.push('pixel format');
  if (video.fps === null || video.fps < rules.fps.min - 0.05 || video.fps > rules.fps.max + 0.05) found.push('rate');
  if (rules.constantRate && !video.constantRate) found.push('unsteady');
  if (rules.maxKbps !== null && (video.bitrate ?? Number.POSITIVE_INFINITY) > rules.maxKbps * 1100)
    found.push('bitrate');
  if (!video.squarePixels || video.interlaced) found.push('pictures');
  if (video.rotation > 0 && rules.turned !== true) found.push('turned');
  if (video.hdr && rules.hdr !== true) found.push('HDR');
  return found;
};

const audioComplaints = (rules: VideoRules, { audio }: MediaProbe): Complaints =>
  audio === null ? [] : soundComplaints(rules.audio, audio);

/** Sound that an MP4 can hold. */
const held = ['aac', 'mp3', 'ac3', 'eac3', 'opus', 'alac'];

const wrapComplaints = (rules: VideoRules, video: NonNullable<MediaProbe['video']>, bytes: number): Complaints => {
  const found: Complaints = [];
  if (bytes < rules.bytes.min) found.push('too light');
  const indexed = ['mp4', 'mov'].includes(video.container);
  if (!rules.containers.includes(video.container)) found.push('container');
  if (indexed && rules.indexFirst && !video.indexFirst) found.push('index last');
  if (rules.noEditList && video.editList) found.push('edit list');
  if (video.located) found.push('place');
  return found;
};

const imageComplaints = (rules: ImageRules, probe: MediaProbe): Complaints => {
  const { image, width, height } = probe;
  if (image === null || width === null || height === null) return ['not seen into'];
  const found = sizeComplaints(rules, width, height);
  if (out(rules.bytes, probe.bytes)) found.push('bytes');
  if (!rules.formats.includes(image.format)) found.push('format');
  if (image.located || !image.upright || !image.srgb) found.push('marks, turn or colours');
  if (probe.frames !== null && probe.frames > 1) found.push('moves');
  return found;
};

/** Why the source itself should not have been called fitting. */
export const sourceComplaints = ({ platform, use }: MediaNeed, probe: MediaProbe): Complaints => {
  const rules = useRules(platform, use);
  if (rules === null) return ['no such use'];
  const still = probe.kind === 'image' || (probe.kind === 'gif' && probe.frames === 1);
  if (still) return rules.image === null ? ['not taken'] : imageComplaints(rules.image, probe);
  if (probe.kind === 'document') {
    if (rules.document === null) return ['not taken'];
    return out(rules.document.bytes, probe.bytes) || probe.contentType !== 'application/pdf' ? ['document'] : [];
  }
  if (probe.kind === 'video') {
    if (rules.video === null || probe.video === null) return ['not taken'];
    const streams = [...streamComplaints(rules.video, probe), ...audioComplaints(rules.video, probe)];
    return [...streams, ...wrapComplaints(rules.video, probe.video, probe.bytes)];
  }
  const { gif } = rules;
  if (gif === null || probe.width === null || probe.height === null || probe.frames === null) return ['not taken'];
  const found = sizeComplaints(gif, probe.width, probe.height);
  if (out(gif.bytes, probe.bytes)) found.push('bytes');
  if (probe.frames > gif.maxFrames) found.push('frames');
  if (probe.width * probe.height * probe.frames > (gif.maxPixelsOfAll ?? Number.POSITIVE_INFINITY))
    found.push('pixels of all');
  return found;
};

/** Scaled: bent by no more than rounding to even sides does. Padded: on the one axis alone. Never enlarged needlessly. */
const canvasComplaints = (
  rules: SizeRules,
  source: { width: number; height: number },
  spec: RenditionSpec,
  step: number,
): Complaints => {
  const found = sizeComplaints(rules, spec.width, spec.height);
  const across = spec.width / source.width;
  const down = spec.height / source.height;
  // Two roundings and the one pixel that the rules' edge may ask for.
  const bent = Math.abs(Math.log(across / down));
  const rounding = (2 * step) / Math.min(spec.width, spec.height);
  if (spec.fit === 'scale' && bent > rounding) found.push(`bent: ${bent}`);
  const enlarged = Math.min(across, down);
  const least = Math.max(rules.width?.min ?? 1, rules.height?.min ?? 1, rules.short?.min ?? 1, rules.long?.min ?? 1);
  if (enlarged > 4 * (1 + rounding)) found.push('enlarged beyond sense');
  if (enlarged > 1 + rounding && Math.min(spec.width, spec.height) > least + 2 * step)
    found.push('enlarged needlessly');
  return found;
};

const madeSound = (rules: VideoRules, { kbps, ...sound }: NonNullable<VideoSpec['audio']>): Complaints =>
  soundComplaints(rules.audio, { codec: 'aac', profile: 'LC', bitrate: kbps * 1000, ...sound });

const videoComplaints = (rules: VideoRules, probe: MediaProbe, spec: VideoSpec): Complaints => {
  const { width, height, durationMs, video } = probe;
  if (width === null || height === null || durationMs === null || video === null) return ['planned blindly'];
  const range = rules.hdr === true && video.hdr ? 'hdr' : undefined;
  if (spec.mode === 'remux') {
    const found = streamComplaints(rules, probe);
    const received = audioComplaints(rules, probe);
    if (!rules.containers.includes('mp4')) found.push('mp4');
    if (wrapComplaints(rules, video, probe.bytes).length + received.length === 0) found.push('remuxed though it fits');
    const anew = received.length > 0 || (probe.audio !== null && !held.includes(probe.audio.codec));
    if ((spec.sound === 'encode') !== anew) found.push('sound made anew, or not');
    if (anew && spec.audio !== null) found.push(...madeSound(rules, spec.audio));
    if (spec.range !== range) found.push('range');
    const { maxBytes } = spec;
    if (maxBytes === null || out(rules.bytes, maxBytes) || maxBytes < probe.bytes) found.push('bytes');
    if (spec.width !== width || spec.height !== height || spec.fps !== null) found.push('does not repeat the source');
    if ((spec.audio === null) !== (probe.audio === null)) found.push('sound');
    return found;
  }
  const found = canvasComplaints(rules, { width, height }, spec, 2);
  if (spec.width % 2 !== 0 || spec.height % 2 !== 0) found.push('odd sides');
  const { rounds = 1 } = spec;
  const shownMs = rounds * durationMs;
  if (out(rules.durationMs, shownMs)) found.push('duration');
  if (rounds > 1 && (probe.kind !== 'gif' || durationMs >= rules.durationMs.min)) found.push('shown again for nothing');
  if (rounds > 1 && shownMs - durationMs > rules.durationMs.min + 50) found.push('shown too often');
  if (spec.range !== range) found.push('range');
  const [codec, profile, pixels] =
    range === 'hdr' ? (['hevc', 'main 10', 'yuv420p10le'] as const) : (['h264', 'high', 'yuv420p'] as const);
  if (!rules.containers.includes('mp4') || !listed(rules.codecs, codec, profile)) found.push(`${codec} in MP4`);
  if (!rules.pixelFormats.includes(pixels)) found.push('pixel format');
  const fps = spec.fps ?? video.fps ?? 0;
  if (fps < rules.fps.min - 0.05 || fps > rules.fps.max + 0.05) found.push(`rate ${fps}`);
  if (spec.fps === null && !video.constantRate) found.push('unsteady');
  if (rules.maxKbps !== null && spec.videoKbps > rules.maxKbps) found.push('bitrate');
  if (spec.audio !== null) found.push(...madeSound(rules, spec.audio));
  if ((spec.audio === null) !== (probe.audio === null || probe.kind === 'gif')) found.push('sound');
  const bytes = ((spec.videoKbps + (spec.audio?.kbps ?? 0)) * shownMs) / 8;
  if (spec.maxBytes === null || spec.maxBytes > rules.bytes.max || bytes > spec.maxBytes) found.push('bytes');
  return found;
};

const stillComplaints = (rules: ImageRules, probe: MediaProbe, spec: ImageSpec): Complaints => {
  const { width, height, durationMs } = probe;
  if (width === null || height === null) return ['planned blindly'];
  const found = canvasComplaints(rules, { width, height }, spec, 1);
  if (!rules.formats.includes(spec.format)) found.push('format');
  if (spec.maxBytes === null || spec.maxBytes > rules.bytes.max) found.push('bytes');
  if (spec.kind === 'frame' && spec.atMs > 0 && spec.atMs >= (durationMs ?? 0)) found.push('frame after the end');
  return found;
};

/** What a rendition made to the letter of its spec would break. */
export const specComplaints = ({ platform, use }: MediaNeed, probe: MediaProbe, spec: RenditionSpec): Complaints => {
  const rules = useRules(platform, use);
  if (spec.kind === 'video') return rules?.video ? videoComplaints(rules.video, probe, spec) : ['not taken'];
  return rules?.image ? stillComplaints(rules.image, probe, spec) : ['not taken'];
};

import { minVideoBytes } from '#domain/platforms/media-blocks.ts';
import type { VideoRules } from '#domain/platforms/media-rules.ts';
import { type Violation, wrapping } from '#domain/platforms/media-violations.ts';
import type { MediaNeed, MediaProbe, RenditionSpec } from '#schemas/media.ts';
import { canvasOf } from './canvas.ts';
import { tooHeavy, tooLong, tooShort, tooSmall, unknownFacts } from './failures.ts';
import { heaviest, type Rung, rateFor, rungsFor } from './ladder.ts';
import type { RenditionPlan, Unfitting } from './plan.ts';

type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;

/**
 * Plans the rendition of a moving picture that a network needs as a video: a video, or a gif shown as one. Its length
 * is never cut.
 * @param found the rules that the file breaks
 */
export const planVideo = (
  need: MediaNeed,
  rules: VideoRules,
  probe: MediaProbe,
  found: readonly Violation[],
): RenditionPlan => {
  const { kind, width, height, durationMs } = probe;
  if (width === null || height === null || durationMs === null) return { failure: unknownFacts(need, kind) };
  const rounds = kind === 'gif' ? roundsFor(rules, durationMs) : 1;
  const shownMs = rounds * durationMs;
  if (shownMs < rules.durationMs.min) return { failure: tooShort(need, kind, rules.durationMs.min, durationMs) };
  if (durationMs > rules.durationMs.max) return { failure: tooLong(need, kind, rules.durationMs.max, durationMs) };
  if (kind === 'video' && found.every((one) => wrapping.has(one) || one === 'sound')) {
    const spec = remuxOf(rules, probe, found);
    if (spec !== null) return { spec };
  }
  return encodeOf(need, rules, { ...probe, width, height, durationMs: shownMs }, rounds);
};

/** A file's last picture may end a little early. */
const tailMs = 50;
const maxRounds = 500;

/**
 * How often a gif is repeated so that a network does not find it too short; a gif loops anyway. A gif that is too long
 * is shown once.
 */
const roundsFor = ({ durationMs: { min, max } }: VideoRules, durationMs: number): number => {
  if (durationMs >= min) return 1;
  const rounds = Math.ceil((min + tailMs) / Math.max(1, durationMs));
  return rounds > maxRounds || rounds * durationMs > max ? 1 : rounds;
};

/** Streams that players know inside an MP4 (mp4ra.org, "Codecs"; no network documents any other there). */
const carried: readonly string[] = ['h264', 'hevc', 'vp9', 'av1', 'mpeg4', 'aac', 'mp3', 'ac3', 'eac3', 'opus', 'alac'];

/** The rate for a network that names none, and the highest rate for one that does. */
const soundOf = ({ maxKbps }: VideoRules['audio']): NonNullable<VideoSpec['audio']> => ({
  kbps: Math.min(128, maxKbps ?? 128),
  sampleRate: 48_000,
  channels: 2,
});

/**
 * Copies the pictures into another container, and the sound too unless the sound is what the network refuses. The copy
 * may be a little larger than the source; null where it could be too large, or where the container cannot hold the
 * pictures.
 */
const remuxOf = (rules: VideoRules, probe: MediaProbe, found: readonly Violation[]): VideoSpec | null => {
  const { video, audio, width, height, bytes, durationMs } = probe;
  if (video === null || width === null || height === null || durationMs === null) return null;
  if (!carried.includes(video.codec)) return null;
  const anew = audio !== null && (found.includes('sound') || !carried.includes(audio.codec));
  const sound = soundOf(rules.audio);
  const added = anew ? Math.ceil((sound.kbps * 1.05 * durationMs) / 8) : 0;
  const maxBytes = Math.max(minVideoBytes, Math.ceil(bytes * 1.01) + 65_536 + added);
  if (!rules.containers.includes('mp4') || maxBytes > rules.bytes.max) return null;
  const average = (bytes * 8) / Math.max(1, durationMs);
  const kbps = (bitrate: number | null, otherwise: number): number =>
    Math.max(1, Math.round(bitrate === null ? otherwise : bitrate / 1000));
  return {
    kind: 'video',
    mode: 'remux',
    width,
    height,
    fit: 'scale',
    fps: null,
    videoKbps: kbps(video.bitrate, average),
    audio:
      audio === null
        ? null
        : anew
          ? sound
          : { kbps: kbps(audio.bitrate, 128), sampleRate: audio.sampleRate, channels: audio.channels },
    ...(anew ? { sound: 'encode' } : {}),
    ...rangeOf(rules, probe),
    maxBytes,
  };
};

/** A spec lacks members that have no value, so that specs from before a member existed keep their ids. */
const rangeOf = (rules: VideoRules, { video }: MediaProbe): Pick<VideoSpec, 'range'> =>
  rules.hdr && video?.hdr ? { range: 'hdr' } : {};

type Seen = MediaProbe & { readonly width: number; readonly height: number; readonly durationMs: number };

/** The best rung of the house's ladder that the network's limits leave. */
const encodeOf = (
  need: MediaNeed,
  rules: VideoRules,
  probe: Seen,
  rounds: number,
): { spec: VideoSpec } | { failure: Unfitting } => {
  const { kind, width, height, durationMs } = probe;
  const specs = rungsFor(rules.target, width, height).map((rung) => specAt(rules, rung, probe, rounds));
  if (specs.includes(null)) return { failure: tooSmall(need, width, height) };
  const spec = specs.find((one) => one !== null && (one.maxBytes ?? 0) <= rules.bytes.max) ?? null;
  return spec === null ? { failure: tooHeavy(need, kind, rules.bytes.max, durationMs) } : { spec };
};

const specAt = (
  rules: VideoRules,
  { box, videoKbps, audioKbps }: Rung,
  probe: Seen,
  rounds: number,
): VideoSpec | null => {
  const canvas = canvasOf(rules, probe, box, 2);
  if (canvas === null) return null;
  const fps = rateFor(probe.video?.fps ?? null, probe.kind === 'video' && probe.video?.constantRate === true);
  const kbps = Math.round(videoKbps * ((fps ?? probe.video?.fps ?? 30) > 30.05 ? 1.5 : 1));
  const ceiling = Math.min(kbps, rules.maxKbps ?? kbps);
  // A gif has no sound.
  const sound = probe.kind === 'video' && probe.audio !== null;
  return {
    kind: 'video',
    mode: 'encode',
    ...canvas,
    fps,
    videoKbps: ceiling,
    audio: sound ? { kbps: audioKbps, sampleRate: 48_000, channels: 2 } : null,
    ...rangeOf(rules, probe),
    ...(rounds > 1 ? { rounds } : {}),
    // The size that the rung gives, not the size that the network allows, so that the same rung is the same file for
    // all networks.
    maxBytes: heaviest(ceiling, sound ? audioKbps : 0, probe.durationMs),
  };
};

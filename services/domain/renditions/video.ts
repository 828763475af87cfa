import { leastVideoBytes, misfits, type UseRules, type VideoRules, wrapping } from '#domain/platforms/media/index.ts';
import type { MediaFailure, MediaNeed, MediaProbe, RenditionSpec } from '#schemas/media.ts';
import { canvasOf } from './canvas.ts';
import { tooHeavy, tooLong, tooShort, tooSmall, unknownFacts } from './failures.ts';
import { heaviest, type Rung, rateFor, rungsFor } from './ladder.ts';
import type { Plan } from './plan.ts';

type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;

/** What moves and is wanted as a video: a video, or a gif that is shown as one. Its length is never cut. */
export const planVideo = (need: MediaNeed, uses: UseRules, rules: VideoRules, probe: MediaProbe): Plan => {
  const { kind, width, height, durationMs } = probe;
  if (width === null || height === null || durationMs === null) return { failure: unknownFacts(need, kind) };
  if (durationMs < rules.durationMs.min) return { failure: tooShort(need, kind, rules.durationMs.min, durationMs) };
  if (durationMs > rules.durationMs.max) return { failure: tooLong(need, kind, rules.durationMs.max, durationMs) };
  if (kind === 'video') {
    const found = misfits(uses, probe);
    if (found.length === 0) return 'fits';
    const spec = found.every((one) => wrapping.has(one)) ? remuxOf(rules, probe) : null;
    if (spec !== null) return { spec };
  }
  return encodeOf(need, rules, { ...probe, width, height, durationMs });
};

/** Streams that players know inside an MP4 (mp4ra.org, "Codecs"; no network documents any other there). */
const carried: readonly string[] = ['h264', 'hevc', 'vp9', 'av1', 'mpeg4', 'aac', 'mp3', 'ac3', 'eac3', 'opus', 'alac'];

/** Another wrapping may be a little larger than the one it replaces; null where that could be too large, or cannot hold it. */
const remuxOf = (rules: VideoRules, probe: MediaProbe): VideoSpec | null => {
  const { video, audio, width, height, bytes, durationMs } = probe;
  if (video === null || width === null || height === null || durationMs === null) return null;
  if (!carried.includes(video.codec) || (audio !== null && !carried.includes(audio.codec))) return null;
  const maxBytes = Math.max(leastVideoBytes, Math.ceil(bytes * 1.01) + 65_536);
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
        : { kbps: kbps(audio.bitrate, 128), sampleRate: audio.sampleRate, channels: audio.channels },
    maxBytes,
  };
};

type Seen = MediaProbe & { readonly width: number; readonly height: number; readonly durationMs: number };

/** The best rung of the house's ladder that the network's limits leave. */
const encodeOf = (need: MediaNeed, rules: VideoRules, probe: Seen): { spec: VideoSpec } | { failure: MediaFailure } => {
  const { kind, width, height, durationMs } = probe;
  const specs = rungsFor(rules.target, width, height).map((rung) => specAt(rules, rung, probe));
  if (specs.includes(null)) return { failure: tooSmall(need, width, height) };
  const spec = specs.find((one) => one !== null && (one.maxBytes ?? 0) <= rules.bytes.max) ?? null;
  return spec === null ? { failure: tooHeavy(need, kind, rules.bytes.max, durationMs) } : { spec };
};

const specAt = (rules: VideoRules, { box, videoKbps, audioKbps }: Rung, probe: Seen): VideoSpec | null => {
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
    // What the rung comes to, not what the network allows: the same rung is then the same file for all.
    maxBytes: heaviest(ceiling, sound ? audioKbps : 0, probe.durationMs),
  };
};

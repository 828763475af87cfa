/** The command lines of a render, built by fluent-ffmpeg; child.ts runs them. */
import ffmpeg from 'fluent-ffmpeg';
import type { SourceFile } from '#contracts/ports/transcoder.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import type { KeptColours } from './hdr.ts';
import { blockLimit, inputOptions, inputUrl, picturesOf, soundOf } from './input.ts';
import { type Colours, chainOf, graphOf, paceOf } from './picture.ts';

export type VideoSpec = Extract<RenditionSpec, { kind: 'video' }>;
export type FrameSpec = Extract<RenditionSpec, { kind: 'frame' }>;

export interface VideoOutput {
  readonly spec: VideoSpec;
  readonly to: string;
}

/**
 * Measured at 6 Mbit/s of 1080p with noise: `superfast` takes 12 s of processor at SSIM 0.917, `veryfast` 16 s at
 * 0.919, `faster` 20 s at 0.921, `medium` 28 s at 0.920. Networks encode the file again, so a higher quality is lost.
 */
const preset = 'veryfast';
const quality = 20;

/**
 * Threads of one encoder: pictures wait for each other, so more threads than processors keep those busy, as in x264's
 * own default. A render is pinned to these processors (processors.ts).
 */
export const encoderThreads = (processors: number): number => (processors === 1 ? 1 : Math.ceil(1.5 * processors));

const alone = ['-map_metadata', '-1', '-map_chapters', '-1', '-sn', '-dn'];
/**
 * Index first, and no edit list: the first picture and the first sound begin at 0, and the delay of reordered pictures
 * goes into the table of times. NOTE: if negative times were shifted as well, the first picture would last too long.
 */
const mp4 = [
  ...['-movflags', '+faststart+negative_cts_offsets', '-use_editlist', '0', '-avoid_negative_ts', 'disabled'],
  ...['-max_muxing_queue_size', '4096', '-f', 'mp4'],
];

const audioOptions = ({ probe }: SourceFile, { audio }: VideoSpec): readonly string[] =>
  audio === null || probe.audio === null
    ? ['-an']
    : [
        ...['-map', soundOf(0, probe.audio.stream), '-c:a', 'aac', '-b:a', `${audio.kbps}k`],
        ...['-ar', String(audio.sampleRate), '-ac', String(audio.channels)],
        // Fills holes of the source's sound, and a late beginning, with silence.
        ...['-af', 'aresample=async=1:first_pts=0'],
      ];

const sdr: readonly string[] = [
  ...['-c:v', 'libx264', '-preset', preset, '-profile:v', 'high', '-pix_fmt', 'yuv420p'],
  ...['-color_primaries', 'bt709', '-color_trc', 'bt709', '-colorspace', 'bt709', '-color_range', 'tv'],
];

/**
 * x265 takes four times the work of x264 at its `veryfast`; its `superfast` takes twice the work and still compresses
 * better.
 */
const hdrPreset = 'superfast';

/** NOTE: an old ffmpeg does not pass the colours to x265, and none before 7 passes the screen and the light. */
const hdr = ({ transfer, primaries, screen, light }: KeptColours, threads: number): readonly string[] => {
  const hdrOptions = [
    ...['log-level=error', `pools=${threads}`, 'open-gop=0', 'range=limited', 'colormatrix=bt2020nc'],
    ...[`colorprim=${primaries}`, `transfer=${transfer}`],
    ...(transfer === 'smpte2084' ? ['hdr10=1', 'hdr10-opt=1'] : []),
    ...(screen === null ? [] : [`master-display=${screen}`]),
    ...(light === null ? [] : [`max-cll=${light}`]),
  ];
  return [
    ...['-c:v', 'libx265', '-preset', hdrPreset, '-profile:v', 'main10', '-pix_fmt', 'yuv420p10le', '-tag:v', 'hvc1'],
    ...['-x265-params', hdrOptions.join(':')],
    ...['-color_primaries', primaries, '-color_trc', transfer, '-colorspace', 'bt2020nc', '-color_range', 'tv'],
  ];
};

const encodeOptions = (
  source: SourceFile,
  spec: VideoSpec,
  label: string,
  colours: Colours | null,
  threads: number,
): readonly string[] => {
  const pace = paceOf(spec, source.probe);
  return [
    ...['-map', `[${label}]`, ...(colours?.kind === 'kept' ? hdr(colours, threads) : sdr)],
    ...['-crf', String(quality), '-maxrate', `${spec.videoKbps}k`, '-bufsize', `${2 * spec.videoKbps}k`],
    // A closed group of pictures every 2 s.
    ...[
      '-g',
      String(Math.max(1, Math.round(2 * pace))),
      '-flags',
      '+cgop',
      '-force_key_frames',
      'expr:gte(t,n_forced*2)',
    ],
    ...['-threads', String(encoderThreads(threads))],
    ...audioOptions(source, spec),
    ...alone,
    ...mp4,
  ];
};

const quiet = ['-hide_banner', '-nostdin', '-v', 'error', '-y', ...blockLimit];

const begin = ({ path, probe }: SourceFile, threads: number, before: readonly string[] = []): ffmpeg.FfmpegCommand =>
  ffmpeg()
    .input(inputUrl(path))
    .inputOptions(...before, ...inputOptions(probe.contentType), '-threads', String(threads));

const finished = (command: ffmpeg.FfmpegCommand, global: readonly string[] = []): readonly string[] => [
  ...quiet,
  ...global,
  ...command._getArguments().filter((argument) => argument !== '-y'),
];

/** Milliseconds for which a rendition plays. */
export const shownMs = ({ probe }: SourceFile, { rounds = 1 }: VideoSpec): number => rounds * (probe.durationMs ?? 0);

/** A GIF states how long its last picture lasts, so one more round is started and cut off. */
const beforeRounds = ({ probe }: SourceFile, outputs: readonly VideoOutput[]): readonly string[] =>
  probe.kind === 'gif' ? ['-stream_loop', String(Math.max(...outputs.map(({ spec }) => spec.rounds ?? 1)))] : [];
const untilShown = (source: SourceFile, spec: VideoSpec): readonly string[] =>
  source.probe.kind === 'gif' && source.probe.durationMs !== null
    ? ['-t', (shownMs(source, spec) / 1_000).toFixed(3)]
    : [];

export const encodeCommand = (
  source: SourceFile,
  outputs: readonly VideoOutput[],
  colours: Colours | null,
  threads: number,
): readonly string[] => {
  const pictures = outputs.map(({ spec }) => spec);
  const { filters, labels } = graphOf(source.probe, pictures, colours);
  const command = begin(source, threads, beforeRounds(source, outputs)).complexFilter([...filters]);
  outputs.forEach(({ spec, to }, index) => {
    const options = encodeOptions(source, spec, labels[index] ?? '', colours, threads);
    command.output(to).outputOptions(...options, ...untilShown(source, spec));
  });
  return finished(command, ['-filter_complex_threads', String(threads), '-progress', 'pipe:1']);
};

/** Copies the streams, or the pictures alone, into a new MP4. `pictures`: the index of their stream. */
export const remuxCommand = (source: SourceFile, pictures: number, { spec, to }: VideoOutput): readonly string[] => {
  const { audio: sound } = source.probe;
  const copied = spec.audio === null || sound === null ? ['-an'] : ['-map', soundOf(0, sound.stream), '-c:a', 'copy'];
  const audio = spec.sound === 'encode' ? audioOptions(source, spec) : copied;
  // From Matroska it would become hev1, which Apple's players do not play.
  const tag = source.probe.video?.codec === 'hevc' ? ['-tag:v', 'hvc1'] : [];
  const command = begin(source, 1)
    .output(to)
    .outputOptions('-map', `0:${pictures}`, '-c:v', 'copy', ...tag, ...audio, ...alone, ...mp4);
  return finished(command);
};

/**
 * One picture as PNG; images.ts makes the requested output from it. `exactly`: decodes everything before it, and never
 * misses.
 */
export const frameCommand = (
  source: SourceFile,
  spec: FrameSpec,
  at: { readonly seconds: number; readonly exactly: boolean },
  to: string,
  colours: Colours | null,
): readonly string[] => {
  const seek = at.seconds > 0 ? ['-ss', at.seconds.toFixed(3)] : [];
  const chain = `${chainOf(source.probe, { ...spec, fps: null }, colours)},format=rgb24`;
  const command = begin(source, 1, at.exactly ? [] : seek)
    .complexFilter([`[${picturesOf(0, source.probe.video?.stream)}]${chain}[still]`])
    .output(to)
    .outputOptions(
      ...(at.exactly ? seek : []),
      ...['-map', '[still]', '-an'],
      ...['-frames:v', '1', '-c:v', 'png', '-f', 'image2', '-update', '1'],
    );
  return finished(command);
};

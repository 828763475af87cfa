import { rm, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { SniffedType } from '#contracts/ports/transcoder.ts';
import type { MediaProbe } from '#schemas/media.ts';
import type { Binaries } from './binaries.ts';
import type { Bytes } from './bytes.ts';
import { type Ended, limits, runTool } from './child.ts';
import { type Layout, layoutOf } from './containers.ts';
import { bomb, tooMuchWork, unreadable, unsupported } from './failures.ts';
import { input, notOnList, picturesOf } from './input.ts';
import { folderIn } from './isolation.ts';
import { heaviest, sourceTypesIn } from './marks.ts';
import { isPictures } from './streams.ts';
import type { Tools } from './tools.ts';

/** The members of ffprobe's JSON that are read. Numbers are text, and any member may be missing. */
export interface Stream {
  readonly index?: number;
  readonly codec_type?: string;
  readonly codec_name?: string;
  readonly codec_tag_string?: string;
  readonly profile?: string;
  readonly width?: number;
  readonly height?: number;
  readonly pix_fmt?: string;
  readonly sample_aspect_ratio?: string;
  readonly field_order?: string;
  readonly color_transfer?: string;
  readonly color_primaries?: string;
  readonly r_frame_rate?: string;
  readonly avg_frame_rate?: string;
  readonly duration?: string;
  readonly bit_rate?: string;
  readonly nb_frames?: string;
  readonly channels?: number;
  readonly sample_rate?: string;
  readonly disposition?: { readonly attached_pic?: number };
  readonly tags?: Readonly<Record<string, string>>;
  readonly side_data_list?: readonly { readonly rotation?: number }[];
}
interface Shown {
  readonly streams?: readonly Stream[];
  readonly format?: {
    readonly duration?: string;
    readonly bit_rate?: string;
    readonly tags?: Readonly<Record<string, string>>;
  };
  readonly packets?: readonly { readonly pts_time?: string; readonly dts_time?: string }[];
}

const maxStreams = 32;
const maxSide = 8_192;
const maxSeconds = 12 * 3_600;

const videoCodecs = new Set(
  'h264 hevc vp8 vp9 av1 prores mpeg4 mpeg2video mpeg1video mjpeg dnxhd dvvideo h263 msmpeg4v3 msmpeg4v2 wmv2 theora cinepak ffv1 rawvideo huffyuv qtrle png'.split(
    ' ',
  ),
);
const isAudioCodec = (codec: string): boolean =>
  /^(?:aac|mp3|mp2|ac3|eac3|opus|vorbis|flac|alac|pcm_\w+|amr_\w+)$/.test(codec);

/** By the type of the file, the one demuxer that may open it. */
const containers: Readonly<Record<string, string>> = {
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'matroska',
  'video/x-msvideo': 'avi',
  'video/mp2t': 'mpegts',
};

type Ask = (args: readonly string[]) => Promise<Shown>;

export const crashed = 128 + constants.signals.SIGSEGV;

/**
 * NOTE: the npm package's ffprobe crashes on every MPEG transport stream (its static C library cannot convert the names
 * of stations). Such streams are copied unchanged into another container and probed there.
 */
const withProbe = async (
  tools: Tools,
  path: string,
  contentType: string,
  signal: AbortSignal,
  ask: (asked: Ask) => Promise<MediaProbe>,
): Promise<MediaProbe> => {
  const { ffmpeg, ffprobe } = await tools.binaries();
  const run = (file: string, type: string, args: readonly string[]) =>
    runTool(ffprobe, [...args, ...input(file, type)], limits({ cpuSeconds: 60, reads: [file] }), signal);
  const first = contentType === 'video/mp2t' ? await run(path, contentType, ['-v', 'error']) : null;
  if (first?.code !== crashed) return ask(async (args) => answer(await run(path, contentType, args)));
  const folder = await folderIn(tools.workDir, 'probe-');
  try {
    const copy = join(folder, 'copy.mkv');
    const { size } = await stat(path);
    const args = ['-v', 'error', '-nostdin', ...input(path, contentType)];
    // Such a stream holds no covers.
    const to = ['-map', '0:v:0', '-map', '0:a:0?', '-c', 'copy', '-f', 'matroska', copy];
    const copying = limits({ fileBytes: 2 * size, reads: [path], writes: [copy] });
    answer({ ...(await runTool(ffmpeg, [...args, '-y', ...to], copying, signal)), stdout: '{}' });
    return await ask(async (asked) => answer(await run(copy, 'video/x-matroska', asked)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const answer = (ended: Ended): Shown => {
  if (ended.struck !== null) throw tooMuchWork('Looking into the video takes more work than it is given.');
  if (ended.code === 0) return JSON.parse(ended.stdout) as Shown;
  const codec = notOnList.exec(ended.stderr)?.[1];
  if (codec !== undefined) throw unsupported(`The file holds a stream in ${codec}, which is not taken.`);
  throw unreadable('The video is damaged, or the file is not a video.', new Error(ended.stderr));
};

const number = (text: string | undefined): number | null => {
  const value = Number(text);
  return text !== undefined && Number.isFinite(value) ? value : null;
};
const positive = (text: string | undefined): number | null => {
  const value = number(text);
  return value !== null && value > 0 ? Math.round(value) : null;
};
const ratio = (text: string | undefined, mark: string): number | null => {
  const [over, under] = (text ?? '').split(mark).map(Number);
  return over && under && Number.isFinite(over / under) ? over / under : null;
};

export const rotationOf = ({ tags, side_data_list: side }: Stream): number => {
  const counter = side?.find(({ rotation }) => rotation !== undefined)?.rotation;
  const degrees = counter === undefined ? (number(tags?.rotate) ?? 0) : -counter;
  return (((Math.round(degrees / 90) * 90) % 360) + 360) % 360;
};

const transfers = ['smpte2084', 'arib-std-b67'];
export const isHdr = ({ color_transfer: transfer = '', color_primaries: primaries }: Stream): boolean =>
  transfers.includes(transfer) || primaries === 'bt2020';

const namesPlace =
  /location|xyz$|gps|^make$|^model$|manufacturer|com\.apple\.quicktime\.(?:make|model|software|location)|^com\.android\./i;
/** Tracks in which cameras and phones store places. */
const placeTracks = new Set(['gpmd', 'camm', 'mebx', 'rtmd', 'fdsc']);

const isLocated = (shown: Shown): boolean =>
  [shown.format?.tags ?? {}, ...(shown.streams ?? []).map(({ tags }) => tags ?? {})].some((tags) =>
    Object.keys(tags).some((key) => namesPlace.test(key)),
  ) || (shown.streams ?? []).some(({ codec_tag_string: tag = '' }) => placeTracks.has(tag));

const samples = 120;
/** The most pictures that x264 and x265 reorder; a sample that ends among them has holes. */
const reordered = 16;

/** A picture that lasts half as long again as others means a variable rate. Rounding to a millisecond does not. */
const isSteady = (packets: NonNullable<Shown['packets']>): boolean =>
  [packets.slice(0, samples), packets.slice(samples)].every((sample) => {
    const shown = new Set(sample.map(({ pts_time, dts_time }) => number(pts_time) ?? number(dts_time)));
    const sorted = [...shown].filter((time) => time !== null).sort((a, b) => a - b);
    const times = sample.length < samples ? sorted : sorted.slice(0, -reordered);
    const steps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    return steps.length === 0 || Math.max(...steps) < 1.5 * Math.max(Math.min(...steps), 0.000_1);
  });

const sizeOf = (video: Stream, rotation: number) => {
  const { width = 0, height = 0 } = video;
  if (width < 1 || height < 1) throw unreadable('The video has no size.');
  if (Math.max(width, height) > maxSide) {
    throw bomb(`The video is ${width} by ${height} pixels; sides of ${maxSide} are taken.`);
  }
  const pixelAspect = ratio(video.sample_aspect_ratio, ':') ?? 1;
  if (pixelAspect < 1 / 8 || pixelAspect > 8) throw unreadable('The pixels of the video have no sensible shape.');
  const shownWidth = Math.max(1, Math.round(width * pixelAspect));
  const turned = rotation % 180 !== 0;
  return {
    width: turned ? height : shownWidth,
    height: turned ? shownWidth : height,
    squarePixels: Math.abs(pixelAspect - 1) < 0.001,
  };
};

/**
 * Decodes one picture at the beginning and one near the end: a file that is broken there is refused, not half
 * published.
 */
const decodes = async ({ ffmpeg }: Binaries, path: string, type: string, seconds: number, signal: AbortSignal) => {
  const from = Math.max(0, seconds - 2);
  const end = from > 0 ? ['-ss', from.toFixed(3), ...input(path, type)] : [];
  const args = ['-v', 'error', '-nostdin', '-threads', '1', ...input(path, type), ...end];
  const places = from > 0 ? [0, 1] : [0];
  const graph = places.map((place) => `[${picturesOf(place)}]null[p${place}]`).join(';');
  const maps = places.flatMap((place) => ['-map', `[p${place}]`]);
  const out = ['-filter_complex_threads', '1', '-filter_complex', graph, ...maps, '-frames:v', '1', '-f', 'null', '-'];
  const ended = await runTool(ffmpeg, [...args, ...out], limits({ cpuSeconds: 60, reads: [path] }), signal);
  if (ended.struck !== null) throw tooMuchWork('Decoding the video takes more work than it is given.');
  if (ended.code !== 0) throw unreadable('The video cannot be decoded.', new Error(ended.stderr));
};

/** @throws TranscodeError */
export const probeVideo = async (
  tools: Tools,
  path: string,
  bytes: Bytes,
  { contentType }: SniffedType,
  signal: AbortSignal,
): Promise<MediaProbe> => {
  const layout = await layoutOf(bytes, contentType, signal);
  return withProbe(tools, path, contentType, signal, (ask) =>
    look(tools, path, bytes, contentType, layout, ask, signal),
  );
};

const look = async (
  tools: Tools,
  path: string,
  bytes: Bytes,
  contentType: string,
  layout: Layout,
  ask: Ask,
  signal: AbortSignal,
): Promise<MediaProbe> => {
  const show = ['-v', 'error', '-of', 'json', '-show_format', '-show_streams'];
  const shown = await ask(show);
  const streams = shown.streams ?? [];
  if (streams.length > maxStreams) throw bomb(`The video has ${streams.length} streams; ${maxStreams} are taken.`);
  const video = streams.find(isPictures);
  if (video === undefined) throw unsupported('The file holds no moving pictures.');
  const codec = video.codec_name ?? 'unknown';
  if (!videoCodecs.has(codec)) throw unsupported(`Video in ${codec} is not taken.`);
  const audio = streams.find(({ codec_type: type }) => type === 'audio');
  const audioCodec = audio?.codec_name ?? 'unknown';
  if (audio !== undefined && !isAudioCodec(audioCodec)) throw unsupported(`Sound in ${audioCodec} is not taken.`);
  const rotation = rotationOf(video);
  const size = sizeOf(video, rotation);
  const seconds = number(shown.format?.duration) ?? number(video.duration);
  if (seconds === null || seconds <= 0) throw unreadable('The video does not say how long it is.');
  if (seconds > maxSeconds) throw unsupported('The video is longer than 12 hours.');
  await decodes(await tools.binaries(), path, contentType, seconds, signal);

  const places = `0%+#${samples},${(seconds / 2).toFixed(3)}%+#${samples}`;
  const pace = [
    '-select_streams',
    String(video.index ?? 0),
    '-read_intervals',
    places,
    '-show_entries',
    'packet=pts_time,dts_time',
  ];
  const { packets = [] } = await ask(['-v', 'error', '-of', 'json', ...pace]);
  const fps = ratio(video.avg_frame_rate, '/') ?? ratio(video.r_frame_rate, '/');
  const audioBitrate = positive(audio?.bit_rate);
  const measured = Math.round((bytes.size * 8) / seconds) - (audioBitrate ?? 0);
  const profile = video.profile?.toLowerCase();
  return {
    kind: 'video',
    contentType,
    bytes: bytes.size,
    width: size.width,
    height: size.height,
    durationMs: Math.round(seconds * 1_000),
    frames: positive(video.nb_frames),
    image: null,
    video: {
      container: containers[contentType] ?? 'unknown',
      codec,
      profile: profile === undefined || profile === 'unknown' ? null : profile,
      pixelFormat: video.pix_fmt ?? null,
      rotation,
      squarePixels: size.squarePixels,
      fps: fps === null ? null : Math.round(fps * 1_000) / 1_000,
      constantRate: isSteady(packets),
      interlaced: ['tt', 'bb', 'tb', 'bt'].includes(video.field_order ?? ''),
      hdr: isHdr(video),
      bitrate: positive(video.bit_rate) ?? Math.max(measured, 0),
      indexFirst: layout.indexFirst,
      editList: layout.editList,
      located: layout.located || isLocated(shown),
    },
    audio:
      audio === undefined
        ? null
        : {
            codec: audioCodec,
            profile: audio.profile?.toLowerCase() ?? null,
            channels: audio.channels ?? 0,
            sampleRate: positive(audio.sample_rate) ?? 0,
            bitrate: audioBitrate,
          },
    digitalSourceType: heaviest([
      ...(layout.sourceType === null ? [] : [layout.sourceType]),
      ...sourceTypesIn(JSON.stringify(shown.format?.tags ?? {})),
    ]),
  };
};
